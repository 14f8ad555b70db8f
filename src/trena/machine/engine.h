// The five instruction queues of a NeuronCore (hw.md §1.3, §4).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace trena {

enum class EngineKind : std::uint8_t { kTensor, kVector, kScalar, kGpsimd, kSync };
inline constexpr int kEngineCount = 5;

std::string_view name(EngineKind engine);  // "tensor", "vector", "scalar", "gpsimd", "sync"
// Also the profiler's PE, DVE, ACT, POOL, SP; case does not matter.
std::optional<EngineKind> engine_from_name(std::string_view name);

}  // namespace trena
