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

// True is certain; false may only mean that some region is no box.
bool boxes_hold(const std::vector<const Region*>& parts, const Region& region) {
  if (!region.fills_box) {
    return false;
  }
  Remainder left(region);
  for (const Region* part : parts) {
    if (part->fills_box) {
      left.remove(*part);
    }
  }
  return left.empty();
}

}  // namespace

Remainder::Box Remainder::box_around(const Region& region) {
  return {region.row_first, region.row_last, region.byte_first, region.byte_last};
}

Remainder::Remainder(const Region& region) : region_(region), boxes_{box_around(region)} {}

bool Remainder::meets(const Region& region) const {
  const Box hole = box_around(region);
  const bool box_met = std::any_of(boxes_.begin(), boxes_.end(), [&](const Box& box) {
    return hole.row_last >= box.row_first && box.row_last >= hole.row_first &&
           hole.byte_last >= box.byte_first && box.byte_last >= hole.byte_first;
  });
  return box_met && overlaps(region, region_);
}

void Remainder::remove(const Region& region) {
  const Box hole = box_around(region);
  std::vector<Box> rest;
  for (Box box : boxes_) {
    if (hole.row_last < box.row_first || box.row_last < hole.row_first ||
        hole.byte_last < box.byte_first || box.byte_last < hole.byte_first) {
      rest.push_back(box);
      continue;
    }
    if (box.row_first < hole.row_first) {
      rest.push_back({box.row_first, hole.row_first - 1, box.byte_first, box.byte_last});
      box.row_first = hole.row_first;
    }
    if (box.row_last > hole.row_last) {
      rest.push_back({hole.row_last + 1, box.row_last, box.byte_first, box.byte_last});
      box.row_last = hole.row_last;
    }
    if (box.byte_first < hole.byte_first) {
      rest.push_back({box.row_first, box.row_last, box.byte_first, hole.byte_first - 1});
    }
    if (box.byte_last > hole.byte_last) {
      rest.push_back({box.row_first, box.row_last, hole.byte_last + 1, box.byte_last});
    }
  }
  boxes_ = std::move(rest);
}

bool together_hold(const std::vector<const Region*>& parts, const Region& region) {
  if (boxes_hold(parts, region)) {
    return true;
  }
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

// Kernels write a large tensor in many parts and read it seldom: the parts are kept as they come.
void Coverage::add(const Region& region) {
  if (parts_.empty() || !covers(parts_.back(), region)) {
    parts_.push_back(region);
  }
}

bool Coverage::meets(const Region& region) const {
  return std::any_of(parts_.begin(), parts_.end(),
                     [&](const Region& part) { return meet(part, region); });
}

bool Coverage::holds(const Region& region, std::vector<const Region*> others) {
  const bool alone = others.empty();
  std::vector<const Region*> touching = std::move(others);
  for (auto part = parts_.rbegin(); part != parts_.rend(); ++part) {
    if (!meet(*part, region)) {
      continue;
    }
    if (covers(*part, region)) {
      return true;
    }
    touching.push_back(&*part);
  }
  const bool held = !touching.empty() && together_hold(touching, region);
  if (held && alone) {
    parts_.push_back(region);  // the next reader finds it at once
  }
  return held;
}

}  // namespace trena
