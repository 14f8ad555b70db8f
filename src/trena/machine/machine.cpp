#include "trena/machine/machine.h"

#include <fmt/format.h>

#include "trena/error.h"

namespace trena {

std::string_view to_string(Evidence evidence) {
  switch (evidence) {
    case Evidence::kDocumented:
      return "documented";
    case Evidence::kMeasured:
      return "measured";
    case Evidence::kEstimate:
      return "estimate";
    case Evidence::kExtrapolated:
      return "extrapolated";
    case Evidence::kGiven:
      return "given";
  }
  return "";
}

bool Legality::has(std::string_view instruction) const {
  return engines.find(instruction) != engines.end();
}

const std::vector<EngineKind>& Legality::engines_for(std::string_view instruction) const {
  static const std::vector<EngineKind> none;
  const auto found = engines.find(instruction);
  return found == engines.end() ? none : found->second;
}

bool Legality::allows(std::string_view instruction, EngineKind engine) const {
  const std::vector<EngineKind>& allowed = engines_for(instruction);
  return std::find(allowed.begin(), allowed.end(), engine) != allowed.end();
}

const FigureSource& Machine::source_of(std::string_view key) const {
  const auto found = sources.find(key);
  if (found == sources.end()) {
    throw Error(ErrorKind::kInternal, "internal",
                {.rule = "every figure has a source under its dotted key",
                 .here = fmt::format("{} has no figure {}", chip.name, key),
                 .limit = {},
                 .device = {},
                 .fix = {}});
  }
  return found->second;
}

double Machine::clock_ghz(EngineKind kind) const {
  switch (kind) {
    case EngineKind::kTensor:
      return core.tensor.clock_ghz;
    case EngineKind::kVector:
      return core.vector.clock_ghz;
    case EngineKind::kScalar:
      return core.scalar.clock_ghz;
    case EngineKind::kGpsimd:
      return core.gpsimd.clock_ghz;
    case EngineKind::kSync:
      return core.sequencer.clock_ghz;
  }
  return kAbsent;
}

}  // namespace trena
