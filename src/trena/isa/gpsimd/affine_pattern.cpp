#include "trena/isa/gpsimd/affine_pattern.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <limits>

namespace trena {
namespace {

constexpr std::size_t kMaxDimensions = 4;

bool is_32bit(std::int64_t value) {
  return value >= std::numeric_limits<std::int32_t>::min() &&
         value <= std::numeric_limits<std::int32_t>::max();
}

}  // namespace

void AffinePattern::check(std::string_view instruction, const Tensor& dst) const {
  std::int64_t count = 1;
  bool legal = !steps.empty() && steps.size() <= kMaxDimensions && is_32bit(offset) &&
               is_32bit(channel_multiplier);
  for (const auto& [step, size] : steps) {
    legal = legal && size > 0 && is_32bit(step);
    count *= size;
  }
  if (legal && count == dst.free_size()) {
    return;
  }
  refuse("affine-pattern",
         {.rule = fmt::format("{} counts through 1 to {} dimensions of [step, count] with 32-bit "
                              "integers, one value per element of a partition",
                              instruction, kMaxDimensions),
          .here = fmt::format("pattern {} ({} values), offset {}, channel_multiplier {}", steps,
                              count, offset, channel_multiplier),
          .limit = fmt::format("{} values for {}", dst.free_size(), dst.describe())});
}

std::vector<std::int32_t> AffinePattern::first_row() const {
  std::vector<std::uint32_t> values = {static_cast<std::uint32_t>(offset)};
  for (const auto& [step, size] : steps) {
    std::vector<std::uint32_t> next;
    next.reserve(values.size() * static_cast<std::size_t>(size));
    for (const std::uint32_t value : values) {
      for (std::int64_t i = 0; i < size; ++i) {
        next.push_back(value + static_cast<std::uint32_t>(i * step));
      }
    }
    values = std::move(next);
  }
  return {values.begin(), values.end()};
}

}  // namespace trena
