"""A matrix product at four stages of blocking, each with the tile sizes of the AWS optimisation tutorial.

`lhs_t` is [K, M], `rhs` is [K, N]; the result is float32 [M, N]. One tile product takes 128 rows of K, 128 columns of
`lhs_t` and 512 of `rhs`.
"""

import trena.nki as nki
import trena.nki.isa as nisa
import trena.nki.language as nl

K_TILE, M_TILE, N_TILE = 128, 128, 512


def _span(index, size):
    return slice(index * size, (index + 1) * size)


def _load(source, rows, columns):
    """A tile of an HBM matrix in SBUF: [rows of K, columns]."""
    tile = nl.ndarray((rows.stop - rows.start, columns.stop - columns.start), source.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=source[rows, columns])
    return tile


def _load_column(source, columns):
    """All K of one block of columns, one tile per 128 rows."""
    return [_load(source, _span(k, K_TILE), columns) for k in range(source.shape[0] // K_TILE)]


def _product(stationary_tiles, moving_tiles):
    """Σ over k of stationary_k · moving_k in one PSUM bank."""
    total = nl.ndarray((M_TILE, N_TILE), nl.float32, buffer=nl.psum)
    for stationary, moving in zip(stationary_tiles, moving_tiles):
        nisa.nc_matmul(dst=total, stationary=stationary, moving=moving)
    return total


def _store(result, m, n, total):
    """Out of PSUM, and to its place in HBM."""
    tile = nl.ndarray((M_TILE, N_TILE), nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=tile, src=total)
    nisa.dma_copy(dst=result[_span(m, M_TILE), _span(n, N_TILE)], src=tile)


def _new_result(lhs_t, rhs):
    return nl.ndarray((lhs_t.shape[1], rhs.shape[1]), nl.float32, buffer=nl.shared_hbm)


@nki.jit
def tiled(lhs_t, rhs):
    """Both operands are loaded for every tile product."""
    result = _new_result(lhs_t, rhs)
    for m in range(lhs_t.shape[1] // M_TILE):
        for n in range(rhs.shape[1] // N_TILE):
            total = nl.ndarray((M_TILE, N_TILE), nl.float32, buffer=nl.psum)
            for k in range(lhs_t.shape[0] // K_TILE):
                stationary = _load(lhs_t, _span(k, K_TILE), _span(m, M_TILE))
                moving = _load(rhs, _span(k, K_TILE), _span(n, N_TILE))
                nisa.nc_matmul(dst=total, stationary=stationary, moving=moving)
            _store(result, m, n, total)
    return result


@nki.jit
def hoisted(lhs_t, rhs):
    """A column of `lhs_t` stays for a whole row of results."""
    result = _new_result(lhs_t, rhs)
    for m in range(lhs_t.shape[1] // M_TILE):
        stationary = _load_column(lhs_t, _span(m, M_TILE))
        for n in range(rhs.shape[1] // N_TILE):
            moving = _load_column(rhs, _span(n, N_TILE))
            _store(result, m, n, _product(stationary, moving))
    return result


@nki.jit
def blocked_2x2(lhs_t, rhs):
    """Two columns of each operand serve four results."""
    result = _new_result(lhs_t, rhs)
    for m in range(lhs_t.shape[1] // (2 * M_TILE)):
        stationary = [_load_column(lhs_t, _span(2 * m + i, M_TILE)) for i in range(2)]
        for n in range(rhs.shape[1] // (2 * N_TILE)):
            moving = [_load_column(rhs, _span(2 * n + j, N_TILE)) for j in range(2)]
            for i in range(2):
                for j in range(2):
                    _store(result, 2 * m + i, 2 * n + j, _product(stationary[i], moving[j]))
    return result


@nki.jit
def blocked_16_2_8(lhs_t, rhs, m_tiles=16, n_tiles=2, k_tiles=8):
    """All three dimensions in blocks; partial sums of a block of N gather in SBUF over the blocks of K."""
    m_block, n_block, k_block = m_tiles * M_TILE, n_tiles * N_TILE, k_tiles * K_TILE
    result = _new_result(lhs_t, rhs)
    for n in range(rhs.shape[1] // n_block):
        sums = [[_zero_tile(lhs_t.dtype) for _ in range(n_tiles)] for _ in range(lhs_t.shape[1] // M_TILE)]
        for k in range(lhs_t.shape[0] // k_block):
            rows = [_span(k * k_tiles + i, K_TILE) for i in range(k_tiles)]
            moving = [_load(rhs, row, _span(n, n_block)) for row in rows]
            for m in range(lhs_t.shape[1] // m_block):
                stationary = [_load(lhs_t, row, _span(m, m_block)) for row in rows]
                for j in range(n_tiles):
                    for i in range(m_tiles):
                        total = _product(
                            [tile[0:K_TILE, _span(i, M_TILE)] for tile in stationary],
                            [tile[0:K_TILE, _span(j, N_TILE)] for tile in moving],
                        )
                        sum_tile = sums[m * m_tiles + i][j]
                        nisa.tensor_tensor(dst=sum_tile, data1=sum_tile, data2=total, op=nl.add)
        for m, row_of_sums in enumerate(sums):
            packed = nl.ndarray((M_TILE, n_block), nl.float32, buffer=nl.sbuf)
            for j, sum_tile in enumerate(row_of_sums):
                nisa.tensor_copy(dst=packed[0:M_TILE, _span(j, N_TILE)], src=sum_tile)
            nisa.dma_copy(dst=result[_span(m, M_TILE), _span(n, n_block)], src=packed)
    return result


def _zero_tile(dtype):
    tile = nl.ndarray((M_TILE, N_TILE), dtype, buffer=nl.sbuf)
    nisa.memset(dst=tile, value=0.0)
    return tile
