"""A convolution without padding as sums of matrix products, one for each place of the filter."""

import trena.nki.isa as nisa
import trena.nki.language as nl
from trena.accuracy.kernels.parts import PARTITIONS, copy, hbm, load, psum, sbuf, span, store, transpose


def _filters(weights, inputs, outputs, places, dtype):
    """[in, out] tiles of each place, transposed once: [output tile][input tile][place]."""
    tiles = []
    for o in range(outputs // PARTITIONS):
        tiles.append([])
        for i in range(inputs // PARTITIONS):
            block = load(weights[span(o, PARTITIONS), span(i, PARTITIONS), :], dtype)
            tiles[o].append([])
            for place in range(places):
                turned = sbuf((PARTITIONS, PARTITIONS), dtype)
                transpose(turned, block[:, :, place])
                tiles[o][i].append(turned)
    return tiles


def convolve(size, channels, side, dtype, pool=1, gather=False):
    """[channels, size, size] with `channels` filters of side x side, two output rows at a time; then bias and pooling.

    `gather`: the pixels of each place are copied together before their product.
    """
    width = size - side + 1
    image, bias = hbm((channels, size, size), dtype), hbm((channels, 1), nl.float32)
    weights = hbm((channels, channels, side * side), dtype)
    result = hbm((channels, width // pool, width // pool), dtype)
    parts = channels // PARTITIONS
    biases = [load(bias[span(o, PARTITIONS), :], nl.float32) for o in range(parts)]
    filters = _filters(weights, channels, channels, side * side, dtype)
    for row in range(0, width, 2):
        strips = [load(image[span(i, PARTITIONS), row:row + side + 1, :], dtype) for i in range(parts)]
        sums = [psum((PARTITIONS, 2, width)) for _ in range(parts)]
        for i in range(parts):
            for place in range(side * side):
                y, x = divmod(place, side)
                pixels = strips[i][:, y:y + 2, x:x + width]
                if gather:
                    tile = sbuf((PARTITIONS, 2, width), dtype)
                    copy(tile, pixels)
                    pixels = tile
                for o in range(parts):
                    nisa.nc_matmul(dst=sums[o], stationary=filters[o][i][place], moving=pixels)
        for o in range(parts):
            _finish(sums[o], biases[o], result[span(o, PARTITIONS), :, :], row, width, pool, dtype)


def _finish(total, bias, result, row, width, pool, dtype):
    if pool == 1:
        tile = sbuf((PARTITIONS, 2, width), dtype)
        nisa.tensor_scalar(dst=tile, data=total, op0=nl.add, operand0=bias)
        store(result[:, row:row + 2, :], tile)
        return
    # Two rows are one row of windows of 2 x 2.
    windows = total.ap([[2 * width, PARTITIONS], [2, width // 2], [width, 2], [1, 2]])
    highest, tile = sbuf((PARTITIONS, width // 2)), sbuf((PARTITIONS, width // 2), dtype)
    nisa.tensor_reduce(dst=highest, op=nl.maximum, data=windows, axis=[2, 3])
    nisa.tensor_scalar(dst=tile, data=highest, op0=nl.add, operand0=bias)
    store(result[:, row // 2, :], tile)
