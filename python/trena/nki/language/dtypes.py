"""nki.language.dtypes: the element types of nki.language."""

from trena import dtypes as _dtypes

globals().update(_dtypes.ALL)
bool_ = _dtypes.ALL["bool"]
