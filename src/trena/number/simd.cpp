#include "trena/number/simd.h"

#include <algorithm>
#include <cstdint>

#include "trena/error.h"
#include "trena/number/simd_targets.h"
//
#include "hwy/highway.h"
#include "hwy/targets.h"

namespace trena {
namespace {

// What this CPU runs, unaffected by a forced target.
std::int64_t available_targets() {
  static const std::int64_t targets = [] {
    hwy::SetSupportedTargetsForTest(0);
    return hwy::SupportedTargets() & HWY_TARGETS;
  }();
  return targets;
}

std::int64_t forced_target = 0;

// Better targets have lower bits.
std::int64_t best_of(std::int64_t targets) { return targets & -targets; }

void use(std::int64_t targets) {
  hwy::SetSupportedTargetsForTest(targets);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace

std::vector<std::string> simd_targets() {
  std::vector<std::string> names;
  for (std::int64_t left = available_targets(); left != 0; left &= left - 1) {
    names.emplace_back(hwy::TargetName(best_of(left)));
  }
  return names;
}

std::string simd_target() {
  return hwy::TargetName(forced_target != 0 ? forced_target : best_of(available_targets()));
}

void force_simd_target(std::string_view name) {
  const std::int64_t available = available_targets();
  if (name.empty()) {
    forced_target = 0;
    use(0);
    return;
  }
  for (std::int64_t left = available; left != 0; left &= left - 1) {
    if (name == hwy::TargetName(best_of(left))) {
      forced_target = best_of(left);
      use(forced_target);
      return;
    }
  }
  std::string limit;
  for (const std::string& each : simd_targets()) {
    limit += (limit.empty() ? "" : ", ") + each;
  }
  throw Error(
      ErrorKind::kUsage, "simd-target",
      {.rule = "only a SIMD target that is compiled in and that this CPU runs can be forced",
       .here = "asked for " + std::string(name),
       .limit = limit,
       .device = {},
       .fix = {}});
}

}  // namespace trena
