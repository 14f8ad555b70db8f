"""Where scripts of 2024 import the kernel decorator from."""

from trena.nki_legacy import jit as nki_jit  # noqa: F401
