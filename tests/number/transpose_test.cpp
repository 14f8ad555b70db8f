#include "trena/number/transpose.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <tuple>
#include <vector>

namespace trena {
namespace {

// Every byte of the source differs from its neighbours, so a word in the wrong place shows.
std::byte value_at(std::size_t row, std::size_t byte) {
  return static_cast<std::byte>(row * 31 + byte * 7 + 1);
}

class TransposeBits
    : public testing::TestWithParam<std::tuple<std::size_t, std::size_t, std::size_t>> {};

TEST_P(TransposeBits, PutsEveryWordOfARowIntoItsColumn) {
  const auto [width, rows, columns] = GetParam();
  const std::size_t pitch = columns * width + 5;
  std::vector<std::byte> source(rows * pitch);
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t byte = 0; byte < pitch; ++byte) {
      source[row * pitch + byte] = value_at(row, byte);
    }
  }
  constexpr auto kGuard = std::byte{0xA5};
  std::vector<std::byte> out(rows * columns * width + 1, kGuard);

  transpose_bits(width, source.data(), pitch, rows, columns, out.data());

  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t column = 0; column < columns; ++column) {
      for (std::size_t byte = 0; byte < width; ++byte) {
        ASSERT_EQ(out[(column * rows + row) * width + byte], value_at(row, column * width + byte))
            << "row " << row << ", column " << column << ", byte " << byte;
      }
    }
  }
  EXPECT_EQ(out.back(), kGuard);
}

// Below, at and beyond the squares that are turned in registers and the blocks they are taken in.
INSTANTIATE_TEST_SUITE_P(Shapes, TransposeBits,
                         testing::Combine(testing::Values<std::size_t>(1, 2, 4, 8),
                                          testing::Values<std::size_t>(1, 3, 16, 35, 128),
                                          testing::Values<std::size_t>(1, 5, 16, 33, 128)));

}  // namespace
}  // namespace trena
