"""What `import neuronxcc` finds: the compiler's package, of which Trena answers for `nki`."""

from trena import nki_legacy as nki

__version__ = "0+trena"
