"""Normalisation beside a matrix product, and the gated MLP."""

import trena.nki.isa as nisa
import trena.nki.language as nl
from trena.accuracy.kernels.parts import (
    MOVING, PARTITIONS, copy, hbm, load, product, psum, sbuf, span, store, transpose,
)


def _rms_norm(data, gain, width):
    squares, total = sbuf((PARTITIONS, width)), sbuf((PARTITIONS, 1))
    nisa.activation(dst=squares, op=nl.square, data=data)
    nisa.tensor_reduce(dst=total, op=nl.add, data=squares, axis=1)
    mean, scale = sbuf((PARTITIONS, 1)), sbuf((PARTITIONS, 1))
    nisa.tensor_scalar(dst=mean, data=total, op0=nl.multiply, operand0=1.0 / width, op1=nl.add, operand1=1e-6)
    nisa.activation(dst=scale, op=nl.rsqrt, data=mean)
    scaled, result = sbuf((PARTITIONS, width)), sbuf((PARTITIONS, width))
    nisa.tensor_scalar(dst=scaled, data=data, op0=nl.multiply, operand0=scale)
    nisa.tensor_tensor(dst=result, data1=scaled, data2=gain, op=nl.multiply)
    return result


def _weights(k, n, dtype):
    """All of [k, n], one tile per 128 rows."""
    memory = hbm((k, n), dtype)
    return [load(memory[span(i, PARTITIONS), :], dtype) for i in range(k // PARTITIONS)]


def _gain(width):
    return nl.broadcast_to(load(hbm((1, width), nl.float32), nl.float32), (PARTITIONS, width))


def _row_product(rows, weights, columns):
    """rows [128, k] times 512 columns of the weights; each block of rows is transposed for it."""
    pairs = []
    for k, weight in enumerate(weights):
        turned = sbuf((PARTITIONS, PARTITIONS))
        transpose(turned, rows[:, span(k, PARTITIONS)])
        pairs.append((turned, weight[:, columns]))
    return product(psum((PARTITIONS, MOVING)), pairs)


def product_then_norm(m, n, k, dtype):
    """rms_norm(x · w + z); the weights stay, the rows of x are transposed for each 512 columns."""
    x, z, result = hbm((m, k), dtype), hbm((m, n), dtype), hbm((m, n), dtype)
    weights, gain = _weights(k, n, dtype), _gain(n)
    for i in range(m // PARTITIONS):
        rows, sums = load(x[span(i, PARTITIONS), :], dtype), sbuf((PARTITIONS, n))
        for j in range(n // MOVING):
            copy(sums[:, span(j, MOVING)], _row_product(rows, weights, span(j, MOVING)))
        added, total = load(z[span(i, PARTITIONS), :], dtype), sbuf((PARTITIONS, n))
        nisa.tensor_tensor(dst=total, data1=sums, data2=added, op=nl.add)
        store(result[span(i, PARTITIONS), :], _rms_norm(total, gain, n))


def norm_then_product(m, n, k, dtype):
    """rms_norm(x + z) · w; the weights stay, the normalised rows are transposed for each 512 columns."""
    x, z, result = hbm((m, k), dtype), hbm((m, k), dtype), hbm((m, n), dtype)
    weights, gain = _weights(k, n, dtype), _gain(k)
    for i in range(m // PARTITIONS):
        first, second = load(x[span(i, PARTITIONS), :], dtype), load(z[span(i, PARTITIONS), :], dtype)
        total = sbuf((PARTITIONS, k))
        nisa.tensor_tensor(dst=total, data1=first, data2=second, op=nl.add)
        rows = _rms_norm(total, gain, k)
        for j in range(n // MOVING):
            tile = sbuf((PARTITIONS, MOVING))
            copy(tile, _row_product(rows, weights, span(j, MOVING)))
            store(result[span(i, PARTITIONS), span(j, MOVING)], tile)


def _hidden_blocks(x, weights, stripe, m, k, dtype):
    """1024 hidden rows of (x · w)ᵀ, 512 columns of m after the other, as (block, column, sum in PSUM)."""
    tiles = [load(weights[span(i, PARTITIONS), span(stripe, 1024)], dtype) for i in range(k // PARTITIONS)]
    for column in range(m // MOVING):
        turned = [sbuf((PARTITIONS, MOVING)) for _ in range(k // PARTITIONS)]
        for part in range(MOVING // PARTITIONS):
            rows = load(x[span(column * 4 + part, PARTITIONS), :], dtype)
            for i, tile in enumerate(turned):
                transpose(tile[:, span(part, PARTITIONS)], rows[:, span(i, PARTITIONS)])
        for block in range(1024 // PARTITIONS):
            pairs = [(weight[:, span(block, PARTITIONS)], tile) for weight, tile in zip(tiles, turned)]
            yield block, column, product(psum((PARTITIONS, MOVING)), pairs)


def gated_mlp(m, n, k, dtype):
    """(silu(x · gate) * (x · up)) · down; gate of everything first, then up, then down through HBM."""
    x, gate, up = hbm((m, k), dtype), hbm((k, n), dtype), hbm((k, n), dtype)
    down, result, hidden = hbm((n, k), dtype), hbm((m, k), dtype), hbm((n, m), dtype)
    gates = {}
    for stripe in range(n // 1024):
        for block, column, total in _hidden_blocks(x, gate, stripe, m, k, dtype):
            gates[stripe, block, column] = sbuf((PARTITIONS, MOVING))
            copy(gates[stripe, block, column], total)
    for stripe in range(n // 1024):
        for block, column, total in _hidden_blocks(x, up, stripe, m, k, dtype):
            gated = gates[stripe, block, column]
            power, one, inverse, silu, tile = (sbuf((PARTITIONS, MOVING)) for _ in range(5))
            nisa.activation(dst=power, op=nl.exp, data=gated, scale=-1.0)
            nisa.tensor_scalar(dst=one, data=power, op0=nl.add, operand0=1.0)
            nisa.reciprocal(dst=inverse, data=one)
            nisa.tensor_tensor(dst=silu, data1=gated, data2=inverse, op=nl.multiply)
            nisa.tensor_tensor(dst=tile, data1=silu, data2=total, op=nl.multiply)
            store(hidden[span(stripe * 8 + block, PARTITIONS), span(column, MOVING)], tile)
    weights = [load(down[span(i, PARTITIONS), :], dtype) for i in range(n // PARTITIONS)]
    for column in range(m // MOVING):
        moving = [load(hidden[span(i, PARTITIONS), span(column, MOVING)], dtype) for i in range(n // PARTITIONS)]
        for part in range(MOVING // PARTITIONS):
            rows = sbuf((PARTITIONS, k))
            for j in range(k // MOVING):
                pairs = [(left[:, span(part, PARTITIONS)], right[:, span(j, MOVING)])
                         for left, right in zip(moving, weights)]
                copy(rows[:, span(j, MOVING)], product(psum((PARTITIONS, MOVING)), pairs))
            store(result[span(column * 4 + part, PARTITIONS), :], rows)
