#include "trena/number/transpose.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace trena {
namespace {

// Both sides of a block stay in the first-level cache: whole cache lines are used on either.
constexpr std::size_t kBlock = 32;

template <typename Word>
void transpose_words(const std::byte* source, std::size_t source_pitch, std::size_t rows,
                     std::size_t columns, std::byte* out) {
  for (std::size_t first_row = 0; first_row < rows; first_row += kBlock) {
    const std::size_t past_row = std::min(first_row + kBlock, rows);
    for (std::size_t first_column = 0; first_column < columns; first_column += kBlock) {
      const std::size_t past_column = std::min(first_column + kBlock, columns);
      for (std::size_t c = first_column; c < past_column; ++c) {
        for (std::size_t r = first_row; r < past_row; ++r) {
          std::memcpy(out + (c * rows + r) * sizeof(Word),
                      source + r * source_pitch + c * sizeof(Word), sizeof(Word));
        }
      }
    }
  }
}

}  // namespace

void transpose_bits(std::size_t width, const std::byte* source, std::size_t source_pitch,
                    std::size_t rows, std::size_t columns, std::byte* out) {
  switch (width) {
    case 1:
      return transpose_words<std::uint8_t>(source, source_pitch, rows, columns, out);
    case 2:
      return transpose_words<std::uint16_t>(source, source_pitch, rows, columns, out);
    case 4:
      return transpose_words<std::uint32_t>(source, source_pitch, rows, columns, out);
    default:
      return transpose_words<std::uint64_t>(source, source_pitch, rows, columns, out);
  }
}

}  // namespace trena
