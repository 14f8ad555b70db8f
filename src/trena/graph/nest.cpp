#include "trena/graph/nest.h"

#include <algorithm>
#include <numeric>

namespace trena {
namespace {

// DMA moves runs shorter than this at a fraction of its rate (hw.md §1.7): rows of a tile are not
// cut below it.
constexpr std::int64_t kEfficientRowElements = 128;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

bool mergeable(const NestDim& outer, const NestDim& inner) {
  for (std::size_t i = 0; i < outer.strides_bytes.size(); ++i) {
    if (outer.strides_bytes[i] != inner.strides_bytes[i] * inner.size) {
      return false;
    }
  }
  return true;
}

// The nest as the tiling sees it: loops outside, one partition dimension, free dimensions inside.
struct Plan {
  std::vector<NestDim> loops;
  NestDim partition;
  std::vector<NestDim> free;
};

NestDim unit_dim(std::size_t operand_count) {
  return {1, std::vector<std::int64_t>(operand_count, 0)};
}

NestDim scaled(const NestDim& dim, std::int64_t size, std::int64_t factor) {
  NestDim result{size, dim.strides_bytes};
  for (std::int64_t& stride : result.strides_bytes) {
    stride *= factor;
  }
  return result;
}

// How many elements of a single dimension one partition takes.
std::int64_t row_elements(std::int64_t count, const NestLimits& limits) {
  const std::int64_t least =
      std::max(ceil_div(count, limits.partitions), std::min(count, kEfficientRowElements));
  const std::int64_t row = std::min(least, limits.free_elements);
  for (std::int64_t candidate = row; candidate <= std::min(2 * row, limits.free_elements);
       ++candidate) {
    if (count % candidate == 0) {
      return candidate;
    }
  }
  return row;
}

class Tiler {
 public:
  Tiler(std::size_t operand_count, const NestLimits& limits,
        const std::function<void(const NestTile&)>& fn)
      : operand_count_(operand_count), limits_(limits), fn_(fn) {}

  void run(std::span<const NestDim> nest) {
    std::vector<NestDim> dims(nest.begin(), nest.end());
    if (dims.empty()) {
      dims.push_back(unit_dim(operand_count_));
    }
    std::vector<std::int64_t> offsets(operand_count_, 0);
    if (split_innermost(dims)) {
      run_split(dims, offsets);
      return;
    }
    walk(make_plan(std::move(dims)), 0, offsets);
  }

 private:
  // Few rows of many elements: the innermost dimension gives the partitions.
  bool split_innermost(const std::vector<NestDim>& dims) const {
    std::int64_t rows = 1;
    for (std::size_t i = 0; i + 1 < dims.size(); ++i) {
      rows = std::max(rows, dims[i].size);
    }
    return dims.size() == 1 ||
           (rows < limits_.partitions / 4 && dims.back().size >= rows * kEfficientRowElements);
  }

  void run_split(const std::vector<NestDim>& dims, std::vector<std::int64_t>& offsets) {
    const NestDim& inner = dims.back();
    const std::int64_t row = row_elements(inner.size, limits_);
    const std::int64_t rows = inner.size / row;
    Plan plan;
    plan.loops.assign(dims.begin(), dims.end() - 1);
    plan.partition = scaled(inner, rows, row);
    plan.free = {scaled(inner, row, 1)};
    walk(plan, 0, offsets);
    const std::int64_t rest = inner.size - rows * row;
    if (rest > 0) {
      plan.partition = unit_dim(operand_count_);
      plan.free = {scaled(inner, rest, 1)};
      std::vector<std::int64_t> tail = offsets;
      advance(tail, inner, rows * row);
      walk(plan, 0, tail);
    }
  }

  Plan make_plan(std::vector<NestDim> dims) const {
    Plan plan;
    std::size_t partition = 0;
    for (std::size_t i = 0; i + 1 < dims.size(); ++i) {
      if (std::min(dims[i].size, limits_.partitions) >
          std::min(dims[partition].size, limits_.partitions)) {
        partition = i;
      }
    }
    plan.partition = dims[partition];
    dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(partition));
    plan.free.push_back(dims.back());
    dims.pop_back();
    std::int64_t elements = plan.free[0].size;
    while (!dims.empty() && plan.free.size() < 3 &&
           elements * dims.back().size <= limits_.free_elements) {
      elements *= dims.back().size;
      plan.free.insert(plan.free.begin(), dims.back());
      dims.pop_back();
    }
    plan.loops = std::move(dims);
    return plan;
  }

  static void advance(std::vector<std::int64_t>& offsets, const NestDim& dim, std::int64_t index) {
    for (std::size_t i = 0; i < offsets.size(); ++i) {
      offsets[i] += dim.strides_bytes[i] * index;
    }
  }

  void walk(const Plan& plan, std::size_t depth, const std::vector<std::int64_t>& offsets) {
    if (depth < plan.loops.size()) {
      for (std::int64_t index = 0; index < plan.loops[depth].size; ++index) {
        std::vector<std::int64_t> inside = offsets;
        advance(inside, plan.loops[depth], index);
        walk(plan, depth + 1, inside);
      }
      return;
    }
    const std::int64_t chunk = plan.free.size() == 1 ? limits_.free_elements : plan.free[0].size;
    for (std::int64_t p = 0; p < plan.partition.size; p += limits_.partitions) {
      for (std::int64_t f = 0; f < plan.free[0].size; f += chunk) {
        NestTile tile;
        tile.offsets_bytes = offsets;
        advance(tile.offsets_bytes, plan.partition, p);
        advance(tile.offsets_bytes, plan.free[0], f);
        tile.dims.push_back(
            scaled(plan.partition, std::min(limits_.partitions, plan.partition.size - p), 1));
        tile.dims.insert(tile.dims.end(), plan.free.begin(), plan.free.end());
        tile.dims[1].size = std::min(chunk, plan.free[0].size - f);
        fn_(tile);
      }
    }
  }

  std::size_t operand_count_;
  const NestLimits& limits_;
  const std::function<void(const NestTile&)>& fn_;
};

}  // namespace

std::vector<NestDim> collapse(std::span<const HbmView> operands) {
  const HbmView& first = operands[0];
  std::vector<NestDim> dims;
  for (std::size_t axis = 0; axis < first.sizes.size(); ++axis) {
    if (first.sizes[axis] == 1) {
      continue;
    }
    NestDim dim{first.sizes[axis], {}};
    for (const HbmView& operand : operands) {
      dim.strides_bytes.push_back(operand.strides_bytes[axis]);
    }
    dims.push_back(std::move(dim));
  }
  std::stable_sort(dims.begin(), dims.end(), [](const NestDim& a, const NestDim& b) {
    return a.strides_bytes[0] > b.strides_bytes[0];
  });
  std::vector<NestDim> merged;
  for (NestDim& dim : dims) {
    if (!merged.empty() && mergeable(merged.back(), dim)) {
      dim.size *= merged.back().size;
      merged.back() = std::move(dim);
    } else {
      merged.push_back(std::move(dim));
    }
  }
  return merged;
}

Tensor NestTile::in(const HbmView& operand, std::size_t index) const {
  std::vector<Dim> view;
  for (std::size_t axis = 0; axis < dims.size(); ++axis) {
    const bool broadcast_free = axis > 0 && dims[axis].strides_bytes[index] == 0;
    view.push_back({broadcast_free ? 1 : dims[axis].size, dims[axis].strides_bytes[index]});
  }
  return operand.tile(offsets_bytes[index], view);
}

std::vector<std::int64_t> NestTile::compact_shape(std::size_t index) const {
  std::vector<std::int64_t> shape = full_shape();
  for (std::size_t axis = 1; axis < shape.size(); ++axis) {
    if (dims[axis].strides_bytes[index] == 0) {
      shape[axis] = 1;
    }
  }
  return shape;
}

std::vector<std::int64_t> NestTile::full_shape() const {
  std::vector<std::int64_t> shape;
  for (const NestDim& dim : dims) {
    shape.push_back(dim.size);
  }
  return shape;
}

void for_each_tile(std::span<const NestDim> nest, std::size_t operand_count,
                   const NestLimits& limits, const std::function<void(const NestTile&)>& fn) {
  for (const NestDim& dim : nest) {
    if (dim.size == 0) {
      return;
    }
  }
  Tiler(operand_count, limits, fn).run(nest);
}

Tensor expand(const Tensor& compact, const NestTile& tile, std::size_t index) {
  std::vector<Dim> dims;
  for (int axis = 0; axis < compact.rank(); ++axis) {
    Dim dim = compact.dim(axis);
    const auto at = static_cast<std::size_t>(axis);
    if (axis > 0 && tile.dims[at].strides_bytes[index] == 0) {
      dim = {tile.dims[at].size, 0};
    }
    dims.push_back(dim);
  }
  return compact.with(compact.dtype(), compact.offset_bytes(), dims);
}

}  // namespace trena
