"""Tests run against the source tree (python/ and build/), or against an installed Trena."""

import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
if "trena" not in sys.modules and os.path.isdir(os.path.join(ROOT, "build", "python", "trena")):
    sys.path.insert(0, os.path.join(ROOT, "python"))
