"""nki.tensor: the tensor class."""

from trena import _core, errors

NkiTensor = Tensor = tensor = _core.Tensor


def _refused(symbol):
    def method(self, *others):
        raise errors.ArgumentTypes("a tensor has no operators in this API, only in neuronxcc.nki",
                                   id="tensor-operator", here=f"`{symbol}` on {self!r}",
                                   fix="call a function of nki.language, nl.add(a, b), or an instruction of nki.isa")

    return method


for _symbol, _names in {"+": "add radd iadd", "-": "sub rsub isub neg", "*": "mul rmul imul",
                        "/": "truediv rtruediv itruediv", "//": "floordiv rfloordiv", "%": "mod rmod", "**": "pow rpow",
                        "@": "matmul rmatmul", "<": "lt", "<=": "le", ">": "gt", ">=": "ge", "&": "and rand",
                        "|": "or ror", "^": "xor rxor", "~": "invert", "abs()": "abs"}.items():
    for _name in _names.split():
        setattr(_core.Tensor, f"__{_name}__", _refused(_symbol))
