"""Our own kernels of published shapes and tilings, one file per kind.

Each is written from what the row and its source describe: shapes, tile sizes, loop order, which operands stay. A
kernel takes its sizes, makes its own HBM tensors, and runs inside a launch without values. No figure of a result is in
here, and no kernel knows what was measured.
"""
