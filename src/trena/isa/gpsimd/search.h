// sequence_bounds, nonzero_with_count and topk: GpSimd looks for elements and tells where they
// stand (hw.md §1.6, §2.3).
#pragma once

#include "trena/isa/rules.h"

namespace trena {

// dst[0, 0, i] and dst[0, 1, i]: where the run of segment_ids[0, i] begins, and one past its end; n
// and -1 where the id is 0 (padding).
struct SequenceBounds {
  Tensor dst;
  Tensor segment_ids;
};
std::unique_ptr<Instruction> make_instruction(SequenceBounds args);

// In every 16th partition: the positions of the elements that are not zero, plus `index_offset`,
// then `padding`, and in the last element how many there are. Other partitions are not touched.
struct NonzeroWithCount {
  Tensor dst;
  Tensor src;
  std::int64_t index_offset;
  std::int64_t padding;
};
std::unique_ptr<Instruction> make_instruction(NonzeroWithCount args);

// 16 partitions hold one list of `count` bfloat16, column by column. Every partition of the group
// receives its K largest in ascending order, and their positions. Of equal values the earlier
// counts as larger, NaN as the largest (Trena's choice: the documents do not say).
struct TopK {
  Tensor values;
  Tensor indices;
  Tensor src;
  std::int64_t count;
};
std::unique_ptr<Instruction> make_instruction(TopK args);

}  // namespace trena
