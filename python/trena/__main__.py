"""`python -m trena` is the command `trena`."""

import sys

from trena.cli import main

sys.exit(main())
