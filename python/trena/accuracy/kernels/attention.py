"""Attention and what is like it."""

import trena.nki.isa as nisa
import trena.nki.language as nl
from trena.accuracy.kernels.parts import (
    MOVING, PARTITIONS, copy, hbm, load, product, psum, sbuf, span, store, transpose,
)


def _scores(q_tile, k, length, into):
    """`into` [128, length] = q_tileᵀ · k."""
    for j in range(length // MOVING):
        scores = psum((PARTITIONS, MOVING))
        nisa.nc_matmul(dst=scores, stationary=q_tile, moving=k[:, span(j, MOVING)])
        copy(into[:, span(j, MOVING)], scores)


def _softmax_terms(scores, length):
    """exp(s - max) and 1 / Σ, row by row, in chunks of 512."""
    chunks = length // MOVING
    maxima, lowest = sbuf((PARTITIONS, chunks)), sbuf((PARTITIONS, 1))
    for j in range(chunks):
        nisa.tensor_reduce(dst=maxima[:, j:j + 1], op=nl.maximum, data=scores[:, span(j, MOVING)], axis=1)
    nisa.tensor_reduce(dst=lowest, op=nl.maximum, data=maxima, axis=1, negate=True)
    powers, sums = sbuf((PARTITIONS, length)), sbuf((PARTITIONS, chunks))
    for j in range(chunks):
        nisa.activation(dst=powers[:, span(j, MOVING)], op=nl.exp, data=scores[:, span(j, MOVING)], bias=lowest)
        nisa.tensor_reduce(dst=sums[:, j:j + 1], op=nl.add, data=powers[:, span(j, MOVING)], axis=1)
    total, inverse = sbuf((PARTITIONS, 1)), sbuf((PARTITIONS, 1))
    nisa.tensor_reduce(dst=total, op=nl.add, data=sums, axis=1)
    nisa.reciprocal(dst=inverse, data=total)
    return powers, inverse


def _transposed_blocks(source, length):
    """[128, length] as length / 128 transposed blocks side by side in float32; four leave a bank at once."""
    turned = sbuf((PARTITIONS, length))
    for group in range(length // MOVING):
        bank = psum((PARTITIONS, MOVING), source.dtype)
        for j in range(MOVING // PARTITIONS):
            nisa.nc_transpose(dst=bank[:, span(j, PARTITIONS)],
                              data=source[:, span(group * (MOVING // PARTITIONS) + j, PARTITIONS)],
                              engine=nisa.engine.tensor)
        copy(turned[:, span(group, MOVING)], bank)
    return turned


def _weighted_values(weights_t, values_t, length):
    return product(psum((PARTITIONS, PARTITIONS)), [
        (weights_t[:, span(j, PARTITIONS)], values_t[:, span(j, PARTITIONS)]) for j in range(length // PARTITIONS)])


def _inputs(length, dtype):
    q, k, v = (load(hbm((PARTITIONS, length), dtype), dtype) for _ in range(3))
    return q, k, v, hbm((length, PARTITIONS), dtype)


def three_passes(length, dtype):
    """Scores, softmax and the weighted sum one after the other, each through HBM in float32; d = 128."""
    q, k, v, result = _inputs(length, dtype)
    tiles = range(length // PARTITIONS)
    memory = hbm((length, length), nl.float32)
    for i in tiles:
        scores = sbuf((PARTITIONS, length))
        _scores(q[:, span(i, PARTITIONS)], k, length, scores)
        store(memory[span(i, PARTITIONS), :], scores)
    for i in tiles:
        scores = load(memory[span(i, PARTITIONS), :], nl.float32)
        powers, inverse = _softmax_terms(scores, length)
        weights = sbuf((PARTITIONS, length))
        for j in range(length // MOVING):
            nisa.tensor_scalar(dst=weights[:, span(j, MOVING)], data=powers[:, span(j, MOVING)], op0=nl.multiply,
                               operand0=inverse, engine=nisa.engine.vector)
        store(memory[span(i, PARTITIONS), :], weights)
    values_t = _transposed_blocks(v, length)
    for i in tiles:
        weights = load(memory[span(i, PARTITIONS), :], nl.float32)
        weights_t = _transposed_blocks(weights, length)
        tile = sbuf((PARTITIONS, PARTITIONS), dtype)
        copy(tile, _weighted_values(weights_t, values_t, length))
        store(result[span(i, PARTITIONS), :], tile)


def one_pass(length, dtype):
    """All of a row tile's scores stay in SBUF; the division comes after the weighted sum; d = 128."""
    q, k, v, result = _inputs(length, dtype)
    values_t = _transposed_blocks(v, length)
    for i in range(length // PARTITIONS):
        scores = sbuf((PARTITIONS, length))
        _scores(q[:, span(i, PARTITIONS)], k, length, scores)
        powers, inverse = _softmax_terms(scores, length)
        powers_t = _transposed_blocks(powers, length)
        total, tile = _weighted_values(powers_t, values_t, length), sbuf((PARTITIONS, PARTITIONS), dtype)
        nisa.tensor_scalar(dst=tile, data=total, op0=nl.multiply, operand0=inverse, engine=nisa.engine.vector)
        store(result[span(i, PARTITIONS), :], tile)


def _lowest(maxima):
    """-max, clamped."""
    peak, lowest = sbuf((PARTITIONS, 1)), sbuf((PARTITIONS, 1))
    nisa.tensor_reduce(dst=peak, op=nl.maximum, data=maxima, axis=1)
    nisa.tensor_scalar(dst=lowest, data=peak, op0=nl.maximum, operand0=-3.4028235e38, op1=nl.multiply, operand1=-1.0)
    return lowest


def _normalise(scores, lowest):
    """exp(s - max) / Σ of a row of score tiles of 512."""
    powers, sums = [], sbuf((PARTITIONS, len(scores)))
    for j, tile in enumerate(scores):
        power = sbuf((PARTITIONS, MOVING))
        nisa.activation(dst=power, op=nl.exp, data=tile, bias=lowest)
        nisa.tensor_reduce(dst=sums[:, j:j + 1], op=nl.add, data=power, axis=1)
        powers.append(power)
    total, inverse = sbuf((PARTITIONS, 1)), sbuf((PARTITIONS, 1))
    nisa.tensor_reduce(dst=total, op=nl.add, data=sums, axis=1)
    nisa.reciprocal(dst=inverse, data=total)
    return powers, inverse


def batched_product_softmax(batch, m, n, k, dtype):
    """softmax(lhs · rhs) of each of a batch; all scores of one product are made before the first is normalised."""
    result = hbm((batch, m, n), dtype)
    tiles, chunks = m // PARTITIONS, n // MOVING
    for b in range(batch):
        lhs, rhs = hbm((m, k), dtype), hbm((k, n), dtype)
        scores = [[None] * chunks for _ in range(tiles)]
        maxima = [sbuf((PARTITIONS, chunks)) for _ in range(tiles)]
        for block in range(n // 1024):
            moving = load(rhs[:, span(block, 1024)], dtype)
            for i in range(tiles):
                rows = load(lhs[span(i, PARTITIONS), :], dtype)
                stationary = sbuf((k, PARTITIONS), dtype)
                transpose(stationary, rows)
                for j in range(2):
                    total, tile = psum((PARTITIONS, MOVING)), sbuf((PARTITIONS, MOVING))
                    nisa.nc_matmul(dst=total, stationary=stationary, moving=moving[:, span(j, MOVING)])
                    copy(tile, total)
                    column = 2 * block + j
                    nisa.tensor_reduce(dst=maxima[i][:, column:column + 1], op=nl.maximum, data=tile, axis=1)
                    scores[i][column] = tile
        for i in range(tiles):
            powers, inverse = _normalise(scores[i], _lowest(maxima[i]))
            for pair in range(chunks // 2):
                packed = sbuf((PARTITIONS, 1024))
                for j in range(2):
                    nisa.tensor_scalar(dst=packed[:, span(j, MOVING)], data=powers[2 * pair + j], op0=nl.multiply,
                                       operand0=inverse)
                store(result[b, span(i, PARTITIONS), span(pair, 1024)], packed)


def grouped_queries(length, query_heads, key_heads, dtype):
    """Attention of d = 128 whose scores of all heads are made first, half of the keys at a time; then head by head."""
    d, tiles, chunks = PARTITIONS, length // PARTITIONS, length // MOVING
    q, k, v = (hbm((length, heads * d), dtype) for heads in (query_heads, key_heads, key_heads))
    result = hbm((query_heads, length, d), dtype)
    share = query_heads // key_heads
    queries_t = [[None] * tiles for _ in range(query_heads)]
    for i in range(tiles):
        for half in range(query_heads // 8):
            rows = load(q[span(i, PARTITIONS), span(half, 8 * d)], dtype)
            for h in range(8):
                queries_t[8 * half + h][i] = sbuf((d, PARTITIONS), dtype)
                transpose(queries_t[8 * half + h][i], rows[:, span(h, d)])
    scores = [[[None] * chunks for _ in range(tiles)] for _ in range(query_heads)]
    maxima = [[sbuf((PARTITIONS, chunks)) for _ in range(tiles)] for _ in range(query_heads)]
    for half in range(2):
        keys_t = {}
        for chunk in range(half * chunks // 2, (half + 1) * chunks // 2):
            for h in range(key_heads):
                keys_t[chunk, h] = sbuf((d, MOVING), dtype)
            for part in range(MOVING // PARTITIONS):
                rows = load(k[span(chunk * 4 + part, PARTITIONS), :], dtype)
                for h in range(key_heads):
                    transpose(keys_t[chunk, h][:, span(part, PARTITIONS)], rows[:, span(h, d)])
        for h in range(key_heads):
            for chunk in range(half * chunks // 2, (half + 1) * chunks // 2):
                for s in range(share):
                    for i in range(tiles):
                        head = h * share + s
                        total, tile = psum((PARTITIONS, MOVING)), sbuf((PARTITIONS, MOVING))
                        nisa.nc_matmul(dst=total, stationary=queries_t[head][i], moving=keys_t[chunk, h])
                        nisa.tensor_scalar(dst=tile, data=total, op0=nl.multiply, operand0=d**-0.5)
                        nisa.tensor_reduce(dst=maxima[head][i][:, chunk:chunk + 1], op=nl.maximum, data=tile, axis=1)
                        scores[head][i][chunk] = tile
    values = [load(v[span(j, PARTITIONS), :], dtype) for j in range(tiles)]
    for s in range(share):
        for h in range(key_heads):
            for i in range(tiles):
                head = h * share + s
                powers, inverse = _normalise(scores[head][i], _lowest(maxima[head][i]))
                pairs = []
                for chunk, power in enumerate(powers):
                    weights = sbuf((PARTITIONS, MOVING))
                    nisa.tensor_scalar(dst=weights, data=power, op0=nl.multiply, operand0=inverse)
                    for part in range(MOVING // PARTITIONS):
                        turned = sbuf((PARTITIONS, PARTITIONS))
                        transpose(turned, weights[:, span(part, PARTITIONS)])
                        pairs.append((turned, values[chunk * 4 + part][:, span(h, d)]))
                tile = sbuf((PARTITIONS, d))
                copy(tile, product(psum((PARTITIONS, d)), pairs))
                store(result[head, span(i, PARTITIONS), :], tile)
