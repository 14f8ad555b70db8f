"""neuronxcc.nki.typing: annotations. They change nothing at run time."""

from trena.nki.typing import tensor  # noqa: F401
from trena.nki_legacy.tile import Tile as mutable_tensor  # noqa: F401
