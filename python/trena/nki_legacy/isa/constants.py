"""neuronxcc.nki.isa.constants: where older kernels look for the enums of nki.isa."""

from trena.nki.isa.constants import (  # noqa: F401
    dge_mode, dma_engine, engine, matmul_perf_mode, nc_version, oob_mode, reduce_cmd,
)
