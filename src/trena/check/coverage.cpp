#include "trena/check/coverage.h"

#include <algorithm>

namespace trena {
namespace {

// Calls fn(first byte, length) for each run.
template <typename Fn>
void for_each_run(const Region& region, int axis, std::int64_t offset, Fn& fn) {
  if (axis == region.rank) {
    fn(offset, region.run_bytes);
    return;
  }
  const Dim& dim = region.dims[static_cast<std::size_t>(axis)];
  for (std::int64_t i = 0; i < dim.size; ++i) {
    for_each_run(region, axis + 1, offset + i * dim.stride_bytes, fn);
  }
}

}  // namespace

bool together_hold(const std::vector<const Region*>& parts, const Region& region) {
  std::vector<bool> held(static_cast<std::size_t>(region.reach_bytes), false);
  for (const Region* part : parts) {
    auto mark = [&](std::int64_t first, std::int64_t length) {
      const std::int64_t from = std::max<std::int64_t>(first - region.offset_bytes, 0);
      const std::int64_t to = std::min(first + length - region.offset_bytes, region.reach_bytes);
      if (from < to) {
        std::fill(held.begin() + from, held.begin() + to, true);
      }
    };
    for_each_run(*part, 0, part->offset_bytes, mark);
  }
  bool all = true;
  auto test = [&](std::int64_t first, std::int64_t length) {
    const auto from = held.begin() + (first - region.offset_bytes);
    all = all && std::find(from, from + length, false) == from + length;
  };
  for_each_run(region, 0, region.offset_bytes, test);
  return all;
}

void Coverage::add(const Region& region) {
  for (auto part = parts_.rbegin(); part != parts_.rend(); ++part) {
    if (covers(*part, region)) {
      return;
    }
  }
  std::erase_if(parts_, [&](const Region& old) { return covers(region, old); });
  parts_.push_back(region);
}

bool Coverage::meets(const Region& region) const {
  return std::any_of(parts_.begin(), parts_.end(),
                     [&](const Region& part) { return meet(part, region); });
}

bool Coverage::holds(const Region& region) const {
  std::vector<const Region*> touching;
  for (auto part = parts_.rbegin(); part != parts_.rend(); ++part) {
    if (covers(*part, region)) {
      return true;
    }
    if (meet(*part, region)) {
      touching.push_back(&*part);
    }
  }
  return !touching.empty() && together_hold(touching, region);
}

}  // namespace trena
