#include "trena/memory/region.h"

#include <algorithm>

namespace trena {
namespace {

// All dimensions of a view, until those that merge are folded into the run.
struct Runs {
  std::array<Dim, Tensor::kMaxRank> dims;
  int rank = 0;
  std::int64_t offset = 0;
  std::int64_t run = 0;

  void add(Dim dim) {
    if (dim.size == 1 || dim.stride_bytes == 0) {
      return;
    }
    if (dim.stride_bytes < 0) {
      offset += (dim.size - 1) * dim.stride_bytes;
      dim.stride_bytes = -dim.stride_bytes;
    }
    int at = rank++;
    for (; at > 0 && dims[at - 1].stride_bytes < dim.stride_bytes; --at) {
      dims[at] = dims[at - 1];
    }
    dims[at] = dim;
  }

  void fold() {
    while (rank > 0 && dims[rank - 1].stride_bytes <= run) {
      --rank;
      run += (dims[rank].size - 1) * dims[rank].stride_bytes;
    }
  }

  std::int64_t reach() const {
    std::int64_t bytes = run;
    for (int axis = 0; axis < rank; ++axis) {
      bytes += (dims[axis].size - 1) * dims[axis].stride_bytes;
    }
    return bytes;
  }
};

// Returns whether the view touches all of these bytes.
bool add_dims(const Tensor& tensor, Runs& runs) {
  int axis = 0;
  bool exact = true;
  const Indirection* indirection = tensor.indirection().get();
  if (indirection != nullptr && indirection->kind != Indirection::Kind::kScalar) {
    exact = false;
    axis = 1;
    if (indirection->kind == Indirection::Kind::kVector) {
      runs.add({indirection->row_count, indirection->row_stride_bytes});
    } else {
      runs.offset -= tensor.free_offset_bytes();
      runs.run = tensor.buffer()->row_bytes;
      runs.add(tensor.dim(0));
      axis = tensor.rank();
    }
  }
  for (; axis < tensor.rank(); ++axis) {
    runs.add(tensor.dim(axis));
  }
  return exact;
}

// Reads the addresses of a region as digits, from the largest level down.
class Digits {
 public:
  explicit Digits(const Region& region)
      : region_(region), offset_(region.offset_bytes), low_(region.reach_bytes) {}

  // Splits at `level`; false if a carry makes quotient and remainder depend on each other.
  bool split(std::int64_t level) {
    while (next_ < region_.rank && region_.dims[next_].stride_bytes >= level) {
      const std::int64_t length = (region_.dims[next_].size - 1) * region_.dims[next_].stride_bytes;
      pending_ += length;
      low_ -= length;
      ++next_;
    }
    quotient_ = offset_ / level;
    remainder_ = offset_ - quotient_ * level;
    bool independent = remainder_ + low_ <= level;
    for (int axis = first_; independent && axis < next_; ++axis) {
      independent = region_.dims[axis].stride_bytes % level == 0;
    }
    return independent;
  }

  // Goes on with the remainder.
  void descend() {
    offset_ = remainder_;
    pending_ = 0;
    first_ = next_;
  }

  std::int64_t quotient_first() const { return quotient_; }
  std::int64_t quotient_last(std::int64_t level) const {
    return quotient_ + (pending_ == 0 ? 0 : pending_ / level);
  }
  std::int64_t remainder_first() const { return remainder_; }
  std::int64_t remainder_last() const { return remainder_ + low_ - 1; }
  // What no level has split off.
  std::int64_t byte_first() const { return offset_; }
  std::int64_t byte_last() const { return offset_ + pending_ + low_ - 1; }
  // Is every quotient of the interval, every byte of the rest, really there?
  bool fills_quotients(std::int64_t level) const {
    return first_ == next_ || (next_ - first_ == 1 && region_.dims[first_].stride_bytes == level);
  }
  bool fills_bytes() const { return first_ == next_ && next_ == region_.rank; }

 private:
  const Region& region_;
  int first_ = 0;  // dimensions from first_ to next_ are above the level, but not split off yet …
  int next_ = 0;
  std::int64_t offset_ = 0;
  std::int64_t pending_ = 0;  // … and this long
  std::int64_t low_ = 0;      // length of everything below the level
  std::int64_t quotient_ = 0;
  std::int64_t remainder_ = 0;
};

// The largest stride of either region below `level`; the pitch of the rows counts too. 0: none.
std::int64_t next_level(const Region& a, const Region& b, std::int64_t level) {
  std::int64_t next = std::max(a.pitch_bytes < level ? a.pitch_bytes : 0,
                               b.pitch_bytes < level ? b.pitch_bytes : 0);
  for (const Region* region : {&a, &b}) {
    for (int axis = 0; axis < region->rank; ++axis) {
      if (region->dims[axis].stride_bytes < level) {
        next = std::max(next, region->dims[axis].stride_bytes);
        break;
      }
    }
  }
  return next;
}

constexpr std::int64_t kTopLevel = std::int64_t{1} << 62;

bool apart(std::int64_t first_a, std::int64_t last_a, std::int64_t first_b, std::int64_t last_b) {
  return last_a < first_b || last_b < first_a;
}

void set_box(Region& region, std::int64_t pitch) {
  Digits digits(region);
  if (digits.split(pitch)) {
    region.row_first = digits.quotient_first();
    region.row_last = digits.quotient_last(pitch);
    region.byte_first = digits.remainder_first();
    region.byte_last = digits.remainder_last();
    return;
  }
  region.row_first = region.offset_bytes / pitch;
  region.row_last = (region.offset_bytes + region.reach_bytes - 1) / pitch;
  region.byte_first = 0;
  region.byte_last = pitch - 1;
}

// One run, or runs one below the other, as many bytes as the box has. (More levels of runs may meet
// each other.)
bool fills_box(const Region& region) {
  if (!region.exact || region.rank > 1) {
    return false;
  }
  const std::int64_t rows = region.row_last - region.row_first + 1;
  const std::int64_t runs = region.rank == 0 ? 1 : region.dims[0].size;
  return runs * region.run_bytes == rows * (region.byte_last - region.byte_first + 1);
}

bool share_host_memory(const Buffer& a, const Buffer& b) {
  if (a.on_chip() || b.on_chip() || !a.has_data() || !b.has_data()) {
    return false;
  }
  const std::byte* end_a = a.storage->data() + a.storage->size_bytes();
  const std::byte* end_b = b.storage->data() + b.storage->size_bytes();
  return a.storage->data() < end_b && b.storage->data() < end_a;
}

}  // namespace

Region region_of(const Tensor& tensor) {
  Runs runs;
  runs.offset = tensor.offset_bytes();
  runs.run = static_cast<std::int64_t>(size_bytes(tensor.dtype()));
  Region region;
  region.exact = add_dims(tensor, runs);
  runs.fold();
  region.offset_bytes = runs.offset;
  region.reach_bytes = runs.reach();
  region.pitch_bytes = tensor.on_chip() ? tensor.buffer()->pitch_bytes : 0;
  if (runs.rank > Region::kMaxRank) {
    region.exact = false;
    region.run_bytes = region.reach_bytes;
  } else {
    region.run_bytes = runs.run;
    region.rank = static_cast<std::int8_t>(runs.rank);
    std::copy_n(runs.dims.begin(), runs.rank, region.dims.begin());
  }
  set_box(region, std::max<std::int64_t>(tensor.buffer()->pitch_bytes, 1));
  region.fills_box = fills_box(region);
  return region;
}

Region region_of(const Buffer& buffer) {
  Region region;
  region.row_last = buffer.rows - 1;
  region.byte_last = buffer.row_bytes - 1;
  region.run_bytes = buffer.size_bytes();
  region.reach_bytes = buffer.size_bytes();
  region.pitch_bytes = buffer.on_chip() ? buffer.pitch_bytes : 0;
  region.fills_box = true;
  return region;
}

// Without values a buffer has no origin, but it has an address.
Region region_in_memory(const Tensor& tensor) {
  Region region = region_of(tensor);
  const Buffer& buffer = *tensor.buffer();
  if (buffer.address) {
    region.offset_bytes +=
        buffer.address->partition * buffer.pitch_bytes + buffer.address->offset_bytes;
    region.row_first += buffer.address->partition;
    region.row_last += buffer.address->partition;
    region.byte_first += buffer.address->offset_bytes;
    region.byte_last += buffer.address->offset_bytes;
  }
  return region;
}

bool overlaps(const Region& a, const Region& b) {
  if (a.fills_box && b.fills_box) {
    return a.box_meets(b);
  }
  if (apart(a.offset_bytes, a.offset_bytes + a.reach_bytes - 1, b.offset_bytes,
            b.offset_bytes + b.reach_bytes - 1)) {
    return false;
  }
  Digits digits_a(a);
  Digits digits_b(b);
  for (std::int64_t level = next_level(a, b, kTopLevel); level > 0;
       level = next_level(a, b, level)) {
    const bool split_a = digits_a.split(level);
    const bool split_b = digits_b.split(level);
    if (!split_a || !split_b) {
      continue;
    }
    if (apart(digits_a.quotient_first(), digits_a.quotient_last(level), digits_b.quotient_first(),
              digits_b.quotient_last(level))) {
      return false;
    }
    digits_a.descend();
    digits_b.descend();
  }
  return !apart(digits_a.byte_first(), digits_a.byte_last(), digits_b.byte_first(),
                digits_b.byte_last());
}

bool covers(const Region& outer, const Region& inner) {
  if (outer.fills_box && inner.fills_box) {
    return outer.box_holds(inner);
  }
  if (!outer.exact) {
    return false;
  }
  Digits digits_outer(outer);
  Digits digits_inner(inner);
  for (std::int64_t level = next_level(outer, inner, kTopLevel); level > 0 && outer.rank > 0;
       level = next_level(outer, inner, level)) {
    const bool split_outer = digits_outer.split(level);
    const bool split_inner = digits_inner.split(level);
    if (!split_outer || !split_inner) {
      continue;
    }
    if (!digits_outer.fills_quotients(level) ||
        digits_inner.quotient_first() < digits_outer.quotient_first() ||
        digits_inner.quotient_last(level) > digits_outer.quotient_last(level)) {
      return false;
    }
    digits_outer.descend();
    digits_inner.descend();
  }
  return digits_outer.fills_bytes() && digits_inner.byte_first() >= digits_outer.byte_first() &&
         digits_inner.byte_last() <= digits_outer.byte_last();
}

bool overlaps(const Tensor& a, const Tensor& b) {
  return a.buffer() == b.buffer() && overlaps(region_of(a), region_of(b));
}

bool share_bytes(const Tensor& a, const Tensor& b) {
  const Buffer& buffer_a = *a.buffer();
  const Buffer& buffer_b = *b.buffer();
  if (&buffer_a == &buffer_b) {
    return overlaps(region_of(a), region_of(b));
  }
  if (buffer_a.address && buffer_b.address) {
    const bool same_array =
        buffer_a.space == buffer_b.space && buffer_a.storage == buffer_b.storage;
    return same_array && overlaps(region_in_memory(a), region_in_memory(b));
  }
  return share_host_memory(buffer_a, buffer_b);
}

}  // namespace trena
