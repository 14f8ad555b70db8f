// Moves the bits of a matrix to its transpose.
#pragma once

#include <cstddef>

namespace trena {

// out[c][r] = source[r][c] for `rows` rows of `columns` elements of `width` bytes (1, 2, 4 or 8).
// Rows of `source` are `source_pitch` bytes apart, those of `out` are packed. They must not
// overlap.
void transpose_bits(std::size_t width, const std::byte* source, std::size_t source_pitch,
                    std::size_t rows, std::size_t columns, std::byte* out);

}  // namespace trena
