#include "trena/check/contents.h"

namespace trena {

void Contents::find(Space space, const Region& region, std::vector<const Write*>& found) {
  found.clear();
  memory(space).search(region, [&](const Write& write) {
    found.push_back(&write);
    return true;
  });
}

std::optional<std::int64_t> Contents::first_write(const Buffer& buffer) const {
  if (buffer.id >= first_write_.size() || first_write_[buffer.id] < 0) {
    return std::nullopt;
  }
  return first_write_[buffer.id];
}

void Contents::write(const Instruction& instruction, const Tensor& tensor, const Region& region) {
  const Buffer& buffer = *tensor.buffer();
  if (buffer.id >= first_write_.size()) {
    first_write_.resize(buffer.id + 1, -1);
  }
  std::int64_t& first = first_write_[buffer.id];
  first = first < 0 ? writes_ : first;
  Boxed<Write>& writes = memory(buffer.space);
  writes.erase(region, [&](const Write& old) { return covers(region, old.region); });
  writes.add(region, {&instruction, &tensor, &buffer, region, writes_++});
}

void Footprint::begin(const Access& access, Contents& contents) {
  access_ = access;
  buffer_ = access.tensor->buffer().get();
  contents_ = &contents;
  has_region_ = has_beneath_ = false;
}

const Region& Footprint::region() {
  if (!has_region_) {
    region_ = region_in_memory(tensor());
    has_region_ = true;
  }
  return region_;
}

std::span<const Contents::Write* const> Footprint::beneath() {
  if (!has_beneath_) {
    contents_->find(buffer_->space, region(), beneath_);
    has_beneath_ = true;
  }
  return beneath_;
}

}  // namespace trena
