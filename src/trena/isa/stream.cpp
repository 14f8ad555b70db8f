#include "trena/isa/stream.h"

#include <algorithm>

namespace trena {
namespace {

const StreamEngine& stream_engine(const Machine& machine, EngineKind engine) {
  switch (engine) {
    case EngineKind::kVector:
      return machine.core.vector;
    case EngineKind::kScalar:
      return machine.core.scalar;
    case EngineKind::kGpsimd:
      return machine.core.gpsimd;
    default:
      throw Error(ErrorKind::kInternal, "internal",
                  {.rule = "only vector, scalar and gpsimd stream elements"});
  }
}

// Past `wide_from_bytes` each element opens more than one sector: the factor ramps linearly (hw.md
// §1.5).
double wide_factor(const StrideRule& rule, double stride_bytes, double base) {
  if (rule.wide_to_bytes <= rule.wide_from_bytes ||
      stride_bytes <= static_cast<double>(rule.wide_from_bytes)) {
    return base;
  }
  const double span = static_cast<double>(rule.wide_to_bytes - rule.wide_from_bytes);
  const double part =
      std::min(1.0, (stride_bytes - static_cast<double>(rule.wide_from_bytes)) / span);
  return base + part * (rule.wide_factor - base);
}

}  // namespace

double stride_stretch(const Machine& machine, const Tensor& tensor) {
  if (!tensor.on_chip() || tensor.free_size() == 1) {
    return 1.0;
  }
  const StrideRule& rule = machine.core.sbuf.stride;
  const double stride = static_cast<double>(std::abs(tensor.innermost_stride_bytes()));
  if (!rule.by_sector) {
    return stride > static_cast<double>(rule.sector_bytes) ? rule.slow_factor : 1.0;
  }
  // One 16-byte sector every two cycles: strides up to half a sector run at full rate.
  const double sectors_per_element = std::min(1.0, stride / static_cast<double>(rule.sector_bytes));
  const double base = std::max(1.0, sectors_per_element * rule.slow_factor);
  return wide_factor(rule, stride, base);
}

Cost stream_cost(const Machine& machine, EngineKind engine, const StreamLaw& law,
                 std::int64_t elements, std::initializer_list<const Tensor*> streams,
                 double extra_completion_cycles) {
  double stretch = 1.0;
  for (const Tensor* tensor : streams) {
    stretch = std::max(stretch, stride_stretch(machine, *tensor));
  }
  const double work = law.work_cycles(static_cast<double>(elements)) * stretch;
  Cost cost;
  cost.interval = machine.ticks(engine, stream_engine(machine, engine).issue_cycles(work));
  cost.completion = machine.ticks(engine, law.offset_cycles + work + extra_completion_cycles);
  cost.activity.elements = elements;
  cost.evidence = law.evidence;
  for (const Tensor* tensor : streams) {
    if (tensor->indirection() != nullptr &&
        tensor->indirection()->kind == Indirection::Kind::kColumns) {
      cost.evidence =
          std::max(law.evidence, Evidence::kEstimate);  // what an index costs is not published
    }
  }
  return cost;
}

}  // namespace trena
