"""neuronxcc.starfish.support.dtype: static_cast."""

from trena.shims.neuron_dtypes import static_cast  # noqa: F401
