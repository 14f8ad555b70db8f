"""Kernels bound by dispatch: many instructions on little data, as short rows and small heads make them."""

COLUMNS, STEPS = 16, 64


def make(nki, nisa, nl):
    @nki.jit
    def recurrence(x, bias):
        """state = (state / 2 + 1) x + bias, STEPS times, sixteen columns at a time; bias is [128, 1]."""
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
        state = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
        row_bias = nl.ndarray(bias.shape, dtype=bias.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x)
        nisa.dma_copy(dst=state, src=x)
        nisa.dma_copy(dst=row_bias, src=bias)
        for _ in range(STEPS):
            for start in range(0, x.shape[1], COLUMNS):
                part = slice(start, start + COLUMNS)
                work = nl.ndarray((x.shape[0], COLUMNS), dtype=nl.float32, buffer=nl.sbuf)
                nisa.tensor_scalar(dst=work, data=state[:, part], op0=nl.multiply, operand0=0.5, op1=nl.add,
                                   operand1=1.0)
                nisa.tensor_tensor(dst=work, data1=work, data2=tile[:, part], op=nl.multiply)
                nisa.tensor_scalar(dst=state[:, part], data=work, op0=nl.add, operand0=row_bias)
        nisa.dma_copy(dst=out, src=state)
        return out

    @nki.jit
    def small_products(a_t, b):
        """out[i] = a_t[i].T @ b[i] for many small matrices [n, 32, 32]."""
        count, size = a_t.shape[0], a_t.shape[1]
        out = nl.ndarray((count, size, size), dtype=nl.float32, buffer=nl.shared_hbm)
        for i in range(count):
            stationary = nl.ndarray((size, size), dtype=a_t.dtype, buffer=nl.sbuf)
            moving = nl.ndarray((size, size), dtype=b.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=stationary, src=a_t[i])
            nisa.dma_copy(dst=moving, src=b[i])
            total = nl.ndarray((size, size), dtype=nl.float32, buffer=nl.psum)
            nisa.nc_matmul(dst=total, stationary=stationary, moving=moving)
            result = nl.ndarray((size, size), dtype=nl.float32, buffer=nl.sbuf)
            nisa.tensor_copy(dst=result, src=total)
            nisa.dma_copy(dst=out[i], src=result)
        return out

    return {"recurrence": recurrence, "small_products": small_products}
