// Filling, copying, casting and laying out anew, by DMA where no arithmetic is needed.
#pragma once

#include "trena/graph/lowering.h"

namespace trena {

void lower_fill(Lowering& lowering, const HbmView& out, double value);
// Same shape after broadcasting; equal types move bit by bit, others are cast through float32
// (hw.md §3.3).
void lower_copy(Lowering& lowering, const HbmView& out, const HbmView& source);

}  // namespace trena
