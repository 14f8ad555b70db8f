"""Attention of one head: softmax(q.T k / sqrt(d)) v, whole rows of scores in SBUF."""

QUERIES, KEYS, SCORES = 128, 128, 512


def _span(index, size):
    return slice(index * size, (index + 1) * size)


def make(nki, nisa, nl):
    def load(source):
        tile = nl.ndarray(source.shape, dtype=source.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=source)
        return tile

    def scores_of(q_tile, k_tile, scale):
        """Scaled scores of 128 queries against all keys, float32."""
        keys = k_tile.shape[1]
        scores = nl.ndarray((QUERIES, keys), dtype=nl.float32, buffer=nl.sbuf)
        for j in range(keys // SCORES):
            product = nl.ndarray((QUERIES, SCORES), dtype=nl.float32, buffer=nl.psum)
            nisa.nc_matmul(dst=product, stationary=q_tile, moving=k_tile[:, _span(j, SCORES)])
            nisa.tensor_scalar(dst=scores[:, _span(j, SCORES)], data=product, op0=nl.multiply, operand0=scale)
        return scores

    def softmax_parts(scores, dtype):
        """exp(score - max of its row) in `dtype`, and one over their sums [128, 1]."""
        least = nl.ndarray((QUERIES, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_reduce(dst=least, op=nl.maximum, data=scores, axis=1, negate=True)
        weights = nl.ndarray(scores.shape, dtype=dtype, buffer=nl.sbuf)
        nisa.activation(dst=weights, op=nl.exp, data=scores, bias=least)
        sums = nl.ndarray((QUERIES, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_reduce(dst=sums, op=nl.add, data=weights, axis=1)
        inverse = nl.ndarray((QUERIES, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.reciprocal(dst=inverse, data=sums)
        return weights, inverse

    def weighted_sum(weights, v_tiles, dtype):
        """weights @ v in PSUM; each block of weights is transposed on the way."""
        total = nl.ndarray((QUERIES, v_tiles[0].shape[1]), dtype=nl.float32, buffer=nl.psum)
        for j, v_tile in enumerate(v_tiles):
            turned = nl.ndarray((KEYS, QUERIES), dtype=dtype, buffer=nl.psum)
            nisa.nc_transpose(dst=turned, data=weights[:, _span(j, KEYS)])
            stationary = nl.ndarray((KEYS, QUERIES), dtype=dtype, buffer=nl.sbuf)
            nisa.tensor_copy(dst=stationary, src=turned)
            nisa.nc_matmul(dst=total, stationary=stationary, moving=v_tile)
        return total

    @nki.jit
    def attention(q, k, v):
        """q, k [d, tokens], v [tokens, d] -> [tokens, d], float32."""
        depth, tokens = q.shape
        out = nl.ndarray((tokens, depth), dtype=nl.float32, buffer=nl.shared_hbm)
        k_tile = load(k)
        v_tiles = [load(v[_span(j, KEYS)]) for j in range(tokens // KEYS)]
        for i in range(tokens // QUERIES):
            q_tile = load(q[:, _span(i, QUERIES)])
            scores = scores_of(q_tile, k_tile, float(depth) ** -0.5)
            weights, inverse = softmax_parts(scores, q.dtype)
            total = weighted_sum(weights, v_tiles, q.dtype)
            result = nl.ndarray((QUERIES, depth), dtype=nl.float32, buffer=nl.sbuf)
            nisa.tensor_scalar(dst=result, data=total, op0=nl.multiply, operand0=inverse)
            nisa.dma_copy(dst=out[_span(i, QUERIES)], src=result)
        return out

    return {"attention": attention}
