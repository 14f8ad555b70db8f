"""Matrix products: the left operand is given transposed, [K, M], unless a kernel says otherwise."""

import trena.nki.isa as nisa
import trena.nki.language as nl
from trena.accuracy.kernels.parts import MOVING, PARTITIONS, hbm, load, product, psum, sbuf, span, store


def _operands(m, n, k, dtype):
    return hbm((k, m), dtype), hbm((k, n), dtype), hbm((m, n), nl.float32)


def _sums(rows, columns, moving):
    """rows x columns results; those narrower than a bank share one."""
    share = MOVING // moving
    shared = [psum((PARTITIONS, MOVING)) for _ in range((rows * columns + share - 1) // share)]
    places = [bank[:, span(i, moving)] for bank in shared for i in range(share)]
    return [[places[r * columns + c] for c in range(columns)] for r in range(rows)]


def accumulators(m, n, k, dtype, rows, columns=1, moving=MOVING):
    """`rows` x `columns` results grow side by side, so that a moving tile serves `rows` products and a stationary one
    `columns`; operand tiles are loaded where they are used."""
    lhs_t, rhs, result = _operands(m, n, k, dtype)
    for row in range(m // (rows * PARTITIONS)):
        for column in range(n // (columns * moving)):
            totals = _sums(rows, columns, moving)
            for depth in range(k // PARTITIONS):
                left = load(lhs_t[span(depth, PARTITIONS), span(row, rows * PARTITIONS)], dtype)
                right = load(rhs[span(depth, PARTITIONS), span(column, columns * moving)], dtype)
                for r in range(rows):
                    for c in range(columns):
                        nisa.nc_matmul(dst=totals[r][c], stationary=left[:, span(r, PARTITIONS)],
                                       moving=right[:, span(c, moving)])
            for r in range(rows):
                for c in range(columns):
                    tile = sbuf((PARTITIONS, moving))
                    nisa.tensor_copy(dst=tile, src=totals[r][c])
                    store(result[span(row * rows + r, PARTITIONS), span(column * columns + c, moving)], tile)


def every_operand_loaded(m, n, k, dtype):
    """Both operands of each product are loaded for it."""
    accumulators(m, n, k, dtype, rows=1)


def _load_rows(source, rows, columns, dtype):
    """One tile per 128 rows."""
    first, count = rows.start // PARTITIONS, (rows.stop - rows.start) // PARTITIONS
    return [load(source[span(first + i, PARTITIONS), columns], dtype) for i in range(count)]


def _add_product(output, stationary, moving, total):
    """output += product, through a copy in the output's type; PSUM is cleared first."""
    nisa.memset(dst=total, value=0.0)
    for left, right in zip(stationary, moving):
        nisa.nc_matmul(dst=total, stationary=left, moving=right, accumulate=True)
    partial = sbuf(output.shape, output.dtype)
    nisa.tensor_copy(dst=partial, src=total)
    nisa.tensor_tensor(dst=output, data1=output, data2=partial, op=nl.add)


def _zeros(shape, dtype):
    tile = sbuf(shape, dtype)
    nisa.memset(dst=tile, value=0.0)
    return tile


def column_blocks(size, dtype):
    """Square; blocks of 512 columns, 1024 of K, 512 rows; the sums of a column block stay in SBUF."""
    lhs_t, rhs = hbm((size, size), dtype), hbm((size, size), dtype)
    result = hbm((size, size), dtype)
    for n in range(size // 512):
        outputs = [_zeros((PARTITIONS, 512), dtype) for _ in range(size // PARTITIONS)]
        for k in range(size // 1024):
            moving = _load_rows(rhs, span(k, 1024), span(n, 512), dtype)
            for m in range(size // 512):
                stationary = _load_rows(lhs_t, span(k, 1024), span(m, 512), dtype)
                for i in range(4):
                    left = [tile[:, span(i, PARTITIONS)] for tile in stationary]
                    _add_product(outputs[m * 4 + i], left, moving, psum((PARTITIONS, 512)))
        for m, tile in enumerate(outputs):
            store(result[span(m, PARTITIONS), span(n, 512)], tile)


def row_blocks_transposed_by_dma(size, dtype):
    """The left operand comes as [M, K] and is transposed by DMA, 1024 x 1024 at a time; blocks of 512 columns."""
    lhs, rhs = hbm((size, size), dtype), hbm((size, size), dtype)
    result = hbm((size, size), dtype)
    for m in range(size // 1024):
        outputs = [_zeros((PARTITIONS, size), dtype) for _ in range(8)]
        for n in range(size // 512):
            for k in range(size // 1024):
                stationary = []
                for i in range(8):
                    tile = sbuf((PARTITIONS, 1024), dtype)
                    nisa.dma_transpose(dst=tile, src=lhs[span(m, 1024), span(k * 8 + i, PARTITIONS)])
                    stationary.append(tile)
                moving = _load_rows(rhs, span(k, 1024), span(n, 512), dtype)
                for i in range(8):
                    left = [tile[:, span(i, PARTITIONS)] for tile in stationary]
                    _add_product(outputs[i][:, span(n, 512)], left, moving, psum((PARTITIONS, 512)))
            for i in range(8):
                store(result[span(m * 8 + i, PARTITIONS), span(n, 512)], outputs[i][:, span(n, 512)])


def banks(size, dtype, count):
    """All of K in one sum; `count` banks of PSUM serve the results in turn, each cleared first."""
    lhs_t, rhs, result = hbm((size, size), dtype), hbm((size, size), dtype), hbm((size, size), dtype)
    stationary = _load_rows(lhs_t, slice(0, size), slice(0, size), dtype)
    moving = _load_rows(rhs, slice(0, size), slice(0, size), dtype)
    totals = [psum((PARTITIONS, MOVING)) for _ in range(count)]
    turn = 0
    for m in range(size // PARTITIONS):
        for n in range(size // MOVING):
            total = totals[turn % count]
            turn += 1
            nisa.memset(dst=total, value=0.0)
            product(total, [(left[:, span(m, PARTITIONS)], right[:, span(n, MOVING)])
                            for left, right in zip(stationary, moving)])
            tile = sbuf((PARTITIONS, MOVING), dtype)
            nisa.tensor_copy(dst=tile, src=total)
            store(result[span(m, PARTITIONS), span(n, MOVING)], tile)


def normalised(size, dtype):
    """rms_norm of the rows of the left operand [M, K], transposed by the tensor engine, then the product."""
    lhs, rhs, result = hbm((size, size), dtype), hbm((size, size), dtype), hbm((size, size), dtype)
    moving = _load_rows(rhs, slice(0, size), slice(0, size), dtype)
    for m in range(size // PARTITIONS):
        rows = load(lhs[span(m, PARTITIONS), 0:size], dtype)
        squares, total, scale = sbuf((PARTITIONS, size)), sbuf((PARTITIONS, 1)), sbuf((PARTITIONS, 1))
        nisa.activation_reduce(dst=squares, op=nl.square, data=rows, reduce_op=nl.add, reduce_res=total)
        nisa.activation(dst=scale, op=nl.rsqrt, data=total, scale=1.0 / size)
        scaled = sbuf((PARTITIONS, size), dtype)
        nisa.tensor_scalar(dst=scaled, data=rows, op0=nl.multiply, operand0=scale)
        stationary = []
        for k in range(size // PARTITIONS):
            turned, tile = psum((PARTITIONS, PARTITIONS), dtype), sbuf((PARTITIONS, PARTITIONS), dtype)
            nisa.nc_transpose(dst=turned, data=scaled[:, span(k, PARTITIONS)], engine=nisa.engine.tensor)
            nisa.tensor_copy(dst=tile, src=turned)
            stationary.append(tile)
        for n in range(size // MOVING):
            total_tile, tile = psum((PARTITIONS, MOVING)), sbuf((PARTITIONS, MOVING), dtype)
            product(total_tile, [(left, right[:, span(n, MOVING)]) for left, right in zip(stationary, moving)])
            nisa.tensor_copy(dst=tile, src=total_tile)
            store(result[span(m, PARTITIONS), span(n, MOVING)], tile)


def column_stripes(m, n, k, dtype, m_block, n_block):
    """All of K of `m_block` columns of the left operand stays; blocks of `n_block` columns of the right one pass."""
    lhs_t, rhs, result = _operands(m, n, k, dtype)
    for i in range(m // m_block):
        stationary = _load_rows(lhs_t, slice(0, k), span(i, m_block), dtype)
        for first in range(0, n, n_block):
            width = min(n_block, n - first)
            moving = _load_rows(rhs, slice(0, k), slice(first, first + width), dtype)
            for r in range(m_block // PARTITIONS):
                packed = sbuf((PARTITIONS, width))
                for column in range(0, width, MOVING):
                    columns = slice(column, min(column + MOVING, width))
                    total = psum((PARTITIONS, columns.stop - column))
                    product(total, [(left[:, span(r, PARTITIONS)], right[:, columns])
                                    for left, right in zip(stationary, moving)])
                    nisa.activation(dst=packed[:, columns], op=nl.copy, data=total)
                row = i * (m_block // PARTITIONS) + r
                store(result[span(row, PARTITIONS), first:first + width], packed)
