// The cost of an instruction that streams N elements per partition through one engine (hw.md §2.1,
// §2.3, §2.4).
#pragma once

#include "trena/isa/cost.h"
#include "trena/isa/instruction.h"

namespace trena {

// completion = law.offset + work, interval = max(minimum issue, work) + issue overhead, where work
// is the law's slope times `elements`, stretched by the worst stride among `streams` (StrideRule).
// `extra_completion_cycles`: operands read before the stream starts, accumulators read out after
// it.
Cost stream_cost(const Machine& machine, EngineKind engine, const StreamLaw& law,
                 std::int64_t elements, std::initializer_list<const Tensor*> streams,
                 double extra_completion_cycles = 0.0);

// The port's stretch for one tensor: 1 at full rate (hw.md §1.5, stride penalty).
double stride_stretch(const Machine& machine, const Tensor& tensor);

}  // namespace trena
