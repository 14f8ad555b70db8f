// max8, nc_find_index8 and nc_match_replace8: the eight largest values of a row, where values
// stand, and their removal; together a top-k (hw.md §2.3, §3.7).
#pragma once

#include <optional>

#include "trena/isa/rules.h"

namespace trena {

struct Max8 {
  Tensor dst;
  Tensor src;
};
std::unique_ptr<Instruction> make_instruction(Max8 args);

// Equal values take their positions in ascending order; a value that is absent gives all ones.
struct NcFindIndex8 {
  Tensor dst;
  Tensor data;
  Tensor values;
};
std::unique_ptr<Instruction> make_instruction(NcFindIndex8 args);

// The values are looked up from the last to the first, so that equal values take their positions in
// descending order.
struct NcMatchReplace8 {
  Tensor dst;
  Tensor data;
  Tensor values;
  float replacement;
  std::optional<Tensor> dst_index;
};
std::unique_ptr<Instruction> make_instruction(NcMatchReplace8 args);

}  // namespace trena
