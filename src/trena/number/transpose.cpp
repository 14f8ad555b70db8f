#include "trena/number/transpose.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "trena/number/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "trena/number/transpose.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace trena::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET != HWY_SCALAR

// A square of as many rows and columns as a 128-bit vector has words is turned in registers.
template <typename Word>
constexpr std::size_t kSide = 16 / sizeof(Word);

// A perfect shuffle of all rows, word by word, moves one bit of a word's row number into its column
// number; log2(kRows) of them exchange the two.
template <std::size_t kRows, class Tag, class Vector = hn::Vec<Tag>>
HWY_INLINE void perfect_shuffle(Tag d, const Vector (&rows)[kRows], Vector (&shuffled)[kRows]) {
  for (std::size_t i = 0; i < kRows / 2; ++i) {
    shuffled[2 * i] = hn::InterleaveLower(d, rows[i], rows[i + kRows / 2]);
    shuffled[2 * i + 1] = hn::InterleaveUpper(d, rows[i], rows[i + kRows / 2]);
  }
}

template <typename Word>
HWY_INLINE void transpose_square(const std::byte* source, std::size_t source_pitch, std::byte* out,
                                 std::size_t out_pitch) {
  constexpr std::size_t kRows = kSide<Word>;
  const hn::Full128<Word> d;
  hn::Vec<decltype(d)> rows[kRows];
  hn::Vec<decltype(d)> shuffled[kRows];
  for (std::size_t i = 0; i < kRows; ++i) {
    rows[i] = hn::LoadU(d, reinterpret_cast<const Word*>(source + i * source_pitch));
  }
  for (std::size_t side = kRows; side > 1; side /= 2) {
    perfect_shuffle(d, rows, shuffled);
    for (std::size_t i = 0; i < kRows; ++i) {
      rows[i] = shuffled[i];
    }
  }
  for (std::size_t i = 0; i < kRows; ++i) {
    hn::StoreU(rows[i], d, reinterpret_cast<Word*>(out + i * out_pitch));
  }
}

#else

template <typename Word>
constexpr std::size_t kSide = 1;

template <typename Word>
HWY_INLINE void transpose_square(const std::byte* source, std::size_t, std::byte* out,
                                 std::size_t) {
  std::memcpy(out, source, sizeof(Word));
}

#endif

// So few lines of `out` are begun before they are full that they stay in the first-level cache.
constexpr std::size_t kBlockColumns = 32;

template <typename Word>
void transpose_words(const std::byte* source, std::size_t source_pitch, std::size_t rows,
                     std::size_t columns, std::byte* out) {
  constexpr std::size_t kStep = kSide<Word>;
  const std::size_t out_pitch = rows * sizeof(Word);
  const auto move_word = [&](std::size_t row, std::size_t column) {
    std::memcpy(out + column * out_pitch + row * sizeof(Word),
                source + row * source_pitch + column * sizeof(Word), sizeof(Word));
  };
  for (std::size_t first = 0; first < columns; first += kBlockColumns) {
    const std::size_t past = std::min(first + kBlockColumns, columns);
    std::size_t row = 0;
    for (; row + kStep <= rows; row += kStep) {
      std::size_t column = first;
      for (; column + kStep <= past; column += kStep) {
        transpose_square<Word>(source + row * source_pitch + column * sizeof(Word), source_pitch,
                               out + column * out_pitch + row * sizeof(Word), out_pitch);
      }
      for (; column < past; ++column) {
        for (std::size_t r = row; r < row + kStep; ++r) {
          move_word(r, column);
        }
      }
    }
    for (; row < rows; ++row) {
      for (std::size_t column = first; column < past; ++column) {
        move_word(row, column);
      }
    }
  }
}

void TransposeBits(std::size_t width, const std::byte* source, std::size_t source_pitch,
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

}  // namespace
}  // namespace trena::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace trena {

HWY_EXPORT(TransposeBits);

void transpose_bits(std::size_t width, const std::byte* source, std::size_t source_pitch,
                    std::size_t rows, std::size_t columns, std::byte* out) {
  HWY_DYNAMIC_DISPATCH(TransposeBits)(width, source, source_pitch, rows, columns, out);
}

}  // namespace trena
#endif  // HWY_ONCE
