"""Matrix products: lhs_t [K, M], rhs [K, N] -> float32 [M, N]."""

K_TILE, M_TILE, N_TILE = 128, 128, 512
M_BLOCK, N_BLOCK = 4 * M_TILE, 2 * N_TILE


def _span(index, size):
    return slice(index * size, (index + 1) * size)


def make(nki, nisa, nl):
    def load(source, rows, columns):
        tile = nl.ndarray((rows.stop - rows.start, columns.stop - columns.start), dtype=source.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=source[rows, columns])
        return tile

    def store(result, rows, columns, total):
        tile = nl.ndarray((M_TILE, N_TILE), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_copy(dst=tile, src=total)
        nisa.dma_copy(dst=result[rows, columns], src=tile)

    @nki.jit
    def blocked(lhs_t, rhs):
        """All of K for a block of columns of either operand stays in SBUF: few loads, all of them long."""
        depth = lhs_t.shape[0] // K_TILE
        result = nl.ndarray((lhs_t.shape[1], rhs.shape[1]), dtype=nl.float32, buffer=nl.shared_hbm)
        for n in range(rhs.shape[1] // N_BLOCK):
            moving = [load(rhs, _span(k, K_TILE), _span(n, N_BLOCK)) for k in range(depth)]
            for m in range(lhs_t.shape[1] // M_BLOCK):
                stationary = [load(lhs_t, _span(k, K_TILE), _span(m, M_BLOCK)) for k in range(depth)]
                for i in range(M_BLOCK // M_TILE):
                    for j in range(N_BLOCK // N_TILE):
                        total = nl.ndarray((M_TILE, N_TILE), dtype=nl.float32, buffer=nl.psum)
                        for k in range(depth):
                            nisa.nc_matmul(dst=total, stationary=stationary[k][:, _span(i, M_TILE)],
                                           moving=moving[k][:, _span(j, N_TILE)])
                        rows = slice(m * M_BLOCK + i * M_TILE, m * M_BLOCK + (i + 1) * M_TILE)
                        store(result, rows, _span(n * (N_BLOCK // N_TILE) + j, N_TILE), total)
        return result

    @nki.jit
    def tiled(lhs_t, rhs):
        """Both operands are loaded for every tile product: many calls, nothing else."""
        result = nl.ndarray((lhs_t.shape[1], rhs.shape[1]), dtype=nl.float32, buffer=nl.shared_hbm)
        for m in range(lhs_t.shape[1] // M_TILE):
            for n in range(rhs.shape[1] // N_TILE):
                total = nl.ndarray((M_TILE, N_TILE), dtype=nl.float32, buffer=nl.psum)
                for k in range(lhs_t.shape[0] // K_TILE):
                    stationary = load(lhs_t, _span(k, K_TILE), _span(m, M_TILE))
                    moving = load(rhs, _span(k, K_TILE), _span(n, N_TILE))
                    nisa.nc_matmul(dst=total, stationary=stationary, moving=moving)
                store(result, _span(m, M_TILE), _span(n, N_TILE), total)
        return result

    return {"blocked": blocked, "tiled": tiled}
