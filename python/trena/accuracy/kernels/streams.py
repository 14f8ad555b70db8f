"""Kernels that mostly move: sums of vectors, transposes, HBM read and written, the selective scan."""

import trena.nki.isa as nisa
import trena.nki.language as nl
from trena.accuracy.kernels.parts import PARTITIONS, copy, hbm, load, psum, sbuf, span, store, transpose

# A stream keeps its rate from here on (published as flat from 1 to 12 GiB): more only takes host time.
_LONG_STREAM = 1 << 28


def add_rows(elements, rows, mode=None):
    """a + b, `rows` elements at a time in as many partitions."""
    a, b, result = (hbm((elements, 1), nl.float32) for _ in range(3))
    for i in range(elements // rows):
        left, right = (load(v[span(i, rows), :], nl.float32, mode=mode) for v in (a, b))
        total = sbuf((rows, 1))
        nisa.tensor_scalar(dst=total, data=left, op0=nl.add, operand0=right)
        store(result[span(i, rows), :], total, mode)


def add_tiles(elements, width, mode=None):
    """a + b in tiles of [128, width]."""
    a, b, result = (hbm((PARTITIONS, elements // PARTITIONS), nl.float32) for _ in range(3))
    for i in range(elements // (PARTITIONS * width)):
        left, right = (load(v[:, span(i, width)], nl.float32, mode=mode) for v in (a, b))
        total = sbuf((PARTITIONS, width))
        nisa.tensor_tensor(dst=total, data1=left, data2=right, op=nl.add)
        store(result[:, span(i, width)], total, mode)


def transpose_tiles(size, dtype, mode=None):
    """A square matrix, 128 x 128 at a time through the tensor engine."""
    source, result = hbm((size, size), dtype), hbm((size, size), dtype)
    for m in range(size // PARTITIONS):
        for n in range(size // PARTITIONS):
            tile = load(source[span(m, PARTITIONS), span(n, PARTITIONS)], dtype, mode=mode)
            turned = sbuf((PARTITIONS, PARTITIONS), dtype)
            transpose(turned, tile)
            store(result[span(n, PARTITIONS), span(m, PARTITIONS)], turned, mode)


def read(total_bytes, dtype, width, loads=1):
    """Tiles of [128, width] are loaded and summed up, `loads` of them at a time; the first 256 MiB of them."""
    total_bytes = min(total_bytes, _LONG_STREAM)
    tile_bytes = PARTITIONS * width * 2
    memory = hbm((total_bytes // tile_bytes * PARTITIONS, width), dtype)
    sums = sbuf((PARTITIONS, 1))
    nisa.memset(dst=sums, value=0.0)
    for i in range(total_bytes // (tile_bytes * loads)):
        tiles = [load(memory[span(i * loads + j, PARTITIONS), :], dtype) for j in range(loads)]
        for tile in tiles:
            part = sbuf((PARTITIONS, 1))
            nisa.tensor_reduce(dst=part, op=nl.add, data=tile, axis=1)
            nisa.tensor_tensor(dst=sums, data1=sums, data2=part, op=nl.add)
    store(hbm((PARTITIONS, 1), nl.float32), sums)


def write(total_bytes, dtype, width):
    """One tile of [128, width] is stored again and again, 256 MiB in all."""
    total_bytes = min(total_bytes, _LONG_STREAM)
    tiles = total_bytes // (PARTITIONS * width * 2)
    memory = hbm((tiles * PARTITIONS, width), dtype)
    tile = load(hbm((PARTITIONS, width), dtype), dtype)
    for i in range(tiles):
        store(memory[span(i, PARTITIONS), :], tile)


def _times_row(ones, dst, data, row, length):
    """dst = data * row, the row broadcast to all partitions by the tensor engine and read from PSUM."""
    for columns in (span(i, 512) for i in range(length // 512)):
        spread = psum((PARTITIONS, 512))
        nisa.nc_matmul(dst=spread, stationary=ones, moving=row[:, columns])
        nisa.tensor_tensor(dst=dst[:, columns], data1=data[:, columns], data2=spread, op=nl.multiply)


def _scan_step(ones, delta, u, decay, b_row, c_row, total, initial, length):
    """One state over `length` steps: exp(δA), δuB, the recurrence, times C, added to `total`."""
    powers, scaled, input_, states, output = (sbuf((PARTITIONS, length)) for _ in range(5))
    nisa.activation(dst=powers, op=nl.exp, data=delta, scale=decay)
    nisa.tensor_tensor(dst=scaled, data1=delta, data2=u, op=nl.multiply)
    _times_row(ones, input_, scaled, b_row, length)
    nisa.tensor_tensor_scan(dst=states, data0=powers, data1=input_, initial=initial, op0=nl.multiply, op1=nl.add)
    _times_row(ones, output, states, c_row, length)
    nisa.tensor_tensor(dst=total, data1=total, data2=output, op=nl.add)
    return states


def selective_scan(channels, length, states, reload=False, piece=None):
    """Per 128 channels and state, over the whole length or in pieces that hand their last state on.

    `reload`: δ and u are loaded for each state, not once per 128 channels.
    """
    delta, u, result = (hbm((channels, length), nl.float32) for _ in range(3))
    a, b, c = hbm((channels, states), nl.float32), hbm((states, length), nl.float32), hbm((states, length), nl.float32)
    piece = piece or length
    ones = sbuf((1, PARTITIONS))
    nisa.memset(dst=ones, value=1.0)
    for i in range(channels // PARTITIONS):
        rows = span(i, PARTITIONS)
        total = sbuf((PARTITIONS, length))
        nisa.memset(dst=total, value=0.0)
        if not reload:
            delta_tile, u_tile = load(delta[rows, :], nl.float32), load(u[rows, :], nl.float32)
        for state in range(states):
            if reload:
                delta_tile, u_tile = load(delta[rows, :], nl.float32), load(u[rows, :], nl.float32)
            decay = load(a[rows, state:state + 1], nl.float32)
            initial = 0.0
            if piece < length:
                initial = sbuf((PARTITIONS, 1))
                nisa.memset(dst=initial, value=0.0)
            for p in range(length // piece):
                steps = span(p, piece)
                b_row, c_row = (load(v[state:state + 1, steps], nl.float32) for v in (b, c))
                done = _scan_step(ones, delta_tile[:, steps], u_tile[:, steps], decay, b_row, c_row, total[:, steps],
                                  initial, piece)
                if piece < length:
                    nisa.tensor_copy(dst=initial, src=done[:, piece - 1:piece])
        store(result[rows, :], total)
