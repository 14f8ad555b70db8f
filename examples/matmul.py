"""Kernel author: a blocked matrix product, its values checked against NumPy, its time and stalls printed by Trena.

    trena run --target trn2 examples/matmul.py

Nothing here knows Trena: with `trena run` the imports below find it; on a Trainium they find the vendor's compiler.
"""

import numpy as np

import nki
import nki.isa as nisa
import nki.language as nl

K_TILE, M_TILE, N_TILE = 128, 128, 512


@nki.jit
def matmul(lhs_t, rhs):
    """lhs_t [K, M] and rhs [K, N] in HBM; returns float32 [M, N]."""
    result = nl.ndarray((lhs_t.shape[1], rhs.shape[1]), nl.float32, buffer=nl.shared_hbm)
    k_tiles = lhs_t.shape[0] // K_TILE

    # All of lhs_t stays in SBUF: one [128, M] tile per 128 rows of K.
    stationary = []
    for k in range(k_tiles):
        tile = nl.ndarray((K_TILE, lhs_t.shape[1]), lhs_t.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=lhs_t[k * K_TILE : (k + 1) * K_TILE, :])
        stationary.append(tile)

    for n in nl.affine_range(rhs.shape[1] // N_TILE):
        columns = slice(n * N_TILE, (n + 1) * N_TILE)
        moving = []
        for k in range(k_tiles):
            tile = nl.ndarray((K_TILE, N_TILE), rhs.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=tile, src=rhs[k * K_TILE : (k + 1) * K_TILE, columns])
            moving.append(tile)
        for m in nl.affine_range(lhs_t.shape[1] // M_TILE):
            rows = slice(m * M_TILE, (m + 1) * M_TILE)
            total = nl.ndarray((M_TILE, N_TILE), nl.float32, buffer=nl.psum)
            for k in range(k_tiles):
                nisa.nc_matmul(dst=total, stationary=stationary[k][:, rows], moving=moving[k])
            tile = nl.ndarray((M_TILE, N_TILE), nl.float32, buffer=nl.sbuf)
            nisa.tensor_copy(dst=tile, src=total)
            nisa.dma_copy(dst=result[rows, columns], src=tile)
    return result


if __name__ == "__main__":
    generator = np.random.default_rng(0)
    lhs = generator.standard_normal((1024, 1024), dtype=np.float32)
    rhs = generator.standard_normal((1024, 2048), dtype=np.float32)
    product = matmul(np.ascontiguousarray(lhs.T), rhs)
    if product is None:
        print("With --time-only there are no values to compare")
    else:
        assert np.allclose(product, lhs @ rhs, rtol=1e-4, atol=1e-3), "Trena and NumPy differ"
        print("Trena and NumPy agree")
