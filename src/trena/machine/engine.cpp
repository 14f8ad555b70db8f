#include "trena/machine/engine.h"

#include <array>
#include <string>

namespace trena {
namespace {

struct Names {
  std::string_view name;
  std::string_view profiler;
};
constexpr std::array<Names, kEngineCount> kNames = {
    {{"tensor", "pe"}, {"vector", "dve"}, {"scalar", "act"}, {"gpsimd", "pool"}, {"sync", "sp"}}};

}  // namespace

std::string_view name(EngineKind engine) { return kNames[static_cast<std::size_t>(engine)].name; }

std::optional<EngineKind> engine_from_name(std::string_view name) {
  std::string lower(name);
  for (char& c : lower) {
    c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (lower == kNames[i].name || lower == kNames[i].profiler) {
      return static_cast<EngineKind>(i);
    }
  }
  return std::nullopt;
}

}  // namespace trena
