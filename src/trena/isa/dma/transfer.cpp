#include "trena/isa/dma/transfer.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <optional>

#include "trena/memory/rows.h"
#include "trena/number/convert.h"
#include "trena/number/threads.h"

namespace trena {
namespace {

std::int64_t width(DType dtype) { return static_cast<std::int64_t>(size_bytes(dtype)); }

// One dimension of a loop over both sides at once.
struct PairDim {
  std::int64_t size;
  std::int64_t dst_stride;
  std::int64_t src_stride;
};

// Hands out the dimensions of a layout from the innermost outwards, and can split one.
class Peeler {
 public:
  explicit Peeler(const std::vector<Dim>& dims) : dims_(dims), next_(dims.size()) { advance(); }
  std::int64_t size() const { return current_.size; }
  std::int64_t stride() const { return current_.stride_bytes; }
  void take(std::int64_t count) {
    current_.size /= count;
    current_.stride_bytes *= count;
    if (current_.size == 1) {
      advance();
    }
  }

 private:
  void advance() {
    current_ = {1, 0};
    while (next_ > 0 && current_.size == 1) {
      current_ = dims_[--next_];
    }
  }
  const std::vector<Dim>& dims_;
  std::size_t next_;
  Dim current_;
};

// Common loop over two layouts of as many elements, outermost first, neighbours merged; nothing
// when the dimensions of one do not divide those of the other.
std::optional<std::vector<PairDim>> pair(const Layout& dst, const Layout& src) {
  std::vector<PairDim> loop;  // innermost first
  Peeler to(dst.dims);
  Peeler from(src.dims);
  while (to.size() > 1 || from.size() > 1) {
    const std::int64_t count = std::min(to.size(), from.size());
    if (to.size() % count != 0 || from.size() % count != 0 || count == 1) {
      return std::nullopt;
    }
    const PairDim next{count, to.stride(), from.stride()};
    to.take(count);
    from.take(count);
    const bool merges = !loop.empty() &&
                        next.dst_stride == loop.back().dst_stride * loop.back().size &&
                        next.src_stride == loop.back().src_stride * loop.back().size;
    if (merges) {
      loop.back().size *= count;
    } else {
      loop.push_back(next);
    }
  }
  if (loop.empty()) {
    loop.push_back({1, width(dst.dtype), width(src.dtype)});
  }
  std::reverse(loop.begin(), loop.end());
  return loop;
}

// `count` elements along one line.
void move_line(DType to, std::byte* dst, std::int64_t dst_stride, DType from, const std::byte* src,
               std::int64_t src_stride, std::int64_t count) {
  if (to == from) {
    if (dst_stride == width(to) && src_stride == width(to)) {
      std::memcpy(dst, src, static_cast<std::size_t>(count * width(to)));
    } else {
      copy_row(size_bytes(to), src, src_stride, dst, dst_stride, static_cast<std::size_t>(count));
    }
    return;
  }
  constexpr std::int64_t kChunk = 1024;
  float values[kChunk];
  for (std::int64_t first = 0; first < count; first += kChunk) {
    const auto length = static_cast<std::size_t>(std::min(kChunk, count - first));
    read_row(from, src + first * src_stride, src_stride, length, values);
    write_row(to, values, dst + first * dst_stride, dst_stride, length);
  }
}

class PairMove {
 public:
  PairMove(const Layout& dst, const Layout& src, std::vector<PairDim> loop)
      : dst_(dst), src_(src), loop_(std::move(loop)) {
    for (std::size_t axis = 0; axis + 1 < loop_.size(); ++axis) {
      lines_ *= loop_[axis].size;
    }
  }

  void run() const {
    const PairDim& line = loop_.back();
    const auto work = static_cast<std::size_t>(lines_ * line.size * width(src_.dtype) / 8 + lines_);
    const bool repeats = std::any_of(loop_.begin(), loop_.end(),
                                     [](const PairDim& dim) { return dim.dst_stride == 0; });
    if (repeats) {  // the last element wins, so order matters
      lines(0, lines_, 0, line.size);
    } else if (lines_ >= 16 || lines_ > line.size) {
      parallel_for_partitions(
          static_cast<std::size_t>(lines_), work, [&](std::size_t begin, std::size_t end) {
            lines(static_cast<std::int64_t>(begin), static_cast<std::int64_t>(end), 0, line.size);
          });
    } else {
      parallel_for_partitions(
          static_cast<std::size_t>(line.size), work, [&](std::size_t begin, std::size_t end) {
            lines(0, lines_, static_cast<std::int64_t>(begin), static_cast<std::int64_t>(end));
          });
    }
  }

 private:
  // Elements [begin, end) of the lines [first, last).
  void lines(std::int64_t first, std::int64_t last, std::int64_t begin, std::int64_t end) const {
    const int outer = static_cast<int>(loop_.size()) - 1;
    const PairDim& line = loop_.back();
    std::vector<std::int64_t> index(static_cast<std::size_t>(outer));
    std::byte* to = dst_.data + begin * line.dst_stride;
    const std::byte* from = src_.data + begin * line.src_stride;
    std::int64_t rest = first;
    for (int axis = outer - 1; axis >= 0; --axis) {
      index[axis] = rest % loop_[axis].size;
      rest /= loop_[axis].size;
      to += index[axis] * loop_[axis].dst_stride;
      from += index[axis] * loop_[axis].src_stride;
    }
    for (std::int64_t done = first; done < last; ++done) {
      move_line(dst_.dtype, to, line.dst_stride, src_.dtype, from, line.src_stride, end - begin);
      for (int axis = outer - 1; axis >= 0; --axis) {
        to += loop_[axis].dst_stride;
        from += loop_[axis].src_stride;
        if (++index[axis] < loop_[axis].size) {
          break;
        }
        to -= loop_[axis].dst_stride * loop_[axis].size;
        from -= loop_[axis].src_stride * loop_[axis].size;
        index[axis] = 0;
      }
    }
  }

  const Layout& dst_;
  const Layout& src_;
  std::vector<PairDim> loop_;  // outermost first; the last one is a line
  std::int64_t lines_ = 1;
};

struct Extent {
  const std::byte* first;
  const std::byte* last;  // past the end
};

Extent extent_of(const Layout& layout) {
  Extent extent{layout.data, layout.data + width(layout.dtype)};
  for (const Dim& dim : layout.dims) {
    const std::int64_t reach = dim.stride_bytes * (dim.size - 1);
    (reach < 0 ? extent.first : extent.last) += reach;
  }
  return extent;
}

bool may_overlap(const Layout& a, const Layout& b) {
  const Extent x = extent_of(a);
  const Extent y = extent_of(b);
  return x.first < y.last && y.first < x.last;
}

}  // namespace

std::int64_t Layout::element_count() const {
  std::int64_t count = 1;
  for (const Dim& dim : dims) {
    count *= dim.size;
  }
  return count;
}

Layout layout_of(const Tensor& tensor) {
  Layout layout{tensor.dtype(), tensor.data(), {}};
  for (int axis = 0; axis < tensor.rank(); ++axis) {
    layout.dims.push_back(tensor.dim(axis));
  }
  return layout;
}

void transfer(const Layout& dst, const Layout& src) {
  const std::int64_t count = dst.element_count();
  if (count == 0) {
    return;
  }
  if (!may_overlap(dst, src)) {
    if (auto loop = pair(dst, src)) {
      PairMove(dst, src, std::move(*loop)).run();
      return;
    }
  }
  const auto packed = std::make_unique_for_overwrite<std::byte[]>(
      static_cast<std::size_t>(count * width(src.dtype)));
  const Layout stage{src.dtype, packed.get(), {{count, width(src.dtype)}}};
  PairMove(stage, src, *pair(stage, src)).run();
  PairMove(dst, stage, *pair(dst, stage)).run();
}

void carry_written(const Tensor& dst, const Tensor& src) {
  if (is_written(src)) {
    mark_written(dst);
    return;
  }
  std::vector<bool> known;
  known.reserve(static_cast<std::size_t>(src.element_count()));
  const WrittenBits& from = src.buffer()->storage->written();
  for_each_run(src, [&](std::size_t offset, std::size_t length) {
    for (std::size_t at = 0; at < length; at += size_bytes(src.dtype())) {
      known.push_back(from.covers(offset + at, size_bytes(src.dtype())));
    }
  });
  std::size_t element = 0;
  WrittenBits& to = dst.buffer()->storage->written();
  for_each_run(dst, [&](std::size_t offset, std::size_t length) {
    for (std::size_t at = 0; at < length; at += size_bytes(dst.dtype())) {
      if (known[element++]) {
        to.mark(offset + at, size_bytes(dst.dtype()));
      } else {
        to.clear(offset + at, size_bytes(dst.dtype()));
      }
    }
  });
}

std::int64_t run_elements(const Tensor& tensor) {
  const bool rows_apart = tensor.on_chip() || tensor.indirection() != nullptr;
  std::int64_t run = width(tensor.dtype());
  for (int axis = tensor.rank() - 1; axis >= (rows_apart ? 1 : 0); --axis) {
    const Dim& dim = tensor.dim(axis);
    if (dim.size != 1 && dim.stride_bytes != run) {
      break;
    }
    run *= dim.size;
  }
  return run / width(tensor.dtype());
}

std::int64_t common_runs(const Tensor& dst, const Tensor& src) {
  const std::int64_t count = dst.element_count();
  const std::int64_t a = run_elements(dst);
  const std::int64_t b = run_elements(src);
  return count / a + count / b - count / std::lcm(a, b);
}

}  // namespace trena
