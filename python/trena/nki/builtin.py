"""nki.builtin: nothing beyond Python's own."""
