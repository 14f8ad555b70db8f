#include <gtest/gtest.h>

#include "trena/memory/buffer.h"

namespace trena {
namespace {

TEST(WrittenBits, PiecesThatCoverEverythingAreEverything) {
  WrittenBits bits(200);
  bits.mark(0, 70);
  bits.mark(130, 70);
  bits.mark(0, 70);  // again: counted once
  EXPECT_FALSE(bits.all());
  EXPECT_FALSE(bits.covers(0, 200));
  bits.mark(60, 80);
  EXPECT_TRUE(bits.all());
}

TEST(WrittenBits, WhatIsClearedMustBeWrittenAgain) {
  WrittenBits bits(200, true);
  bits.clear(64, 1);
  EXPECT_FALSE(bits.all());
  EXPECT_TRUE(bits.covers(0, 64));
  EXPECT_FALSE(bits.test(64));
  bits.clear(64, 1);  // again: counted once
  bits.mark(64, 1);
  EXPECT_TRUE(bits.all());
}

}  // namespace
}  // namespace trena
