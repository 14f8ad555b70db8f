#include "trena/core/tensor_bytes.h"

#include <algorithm>
#include <cstring>

namespace trena {
namespace {

// Of one element.
std::uint64_t sentinel_bits(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return 0x7e00;
    case DType::kBfloat16:
      return 0x7fc0;
    case DType::kFloat32:
    case DType::kTfloat32:
      return 0x7fc00000;
    case DType::kFloat64:
      return 0x7ff8000000000000;
    case DType::kFloat8E8m0fnu:
      return 0xff;
    case DType::kBool:
      return 1;
    default:
      return is_packed_x4(dtype) ? 0 : is_float8(dtype) ? 0x7f : 4;
  }
}

// Bytes of tensors that nobody can name any more are used again before the host is asked for more:
// a kernel that makes a tile per step needs the memory of the tiles it still holds, not of all it
// ever made.
constexpr std::int64_t kCollectEveryBytes = std::int64_t{32} << 20;

}  // namespace

void fill_sentinel(Storage& storage, DType dtype) {
  const std::uint64_t bits = sentinel_bits(dtype);
  const std::size_t size = size_bytes(dtype);
  for (std::size_t offset = 0; offset + size <= storage.size_bytes(); offset += size) {
    std::memcpy(storage.data() + offset, &bits, size);
  }
  storage.written().mark_all();
}

TensorBytes::TensorBytes(const Machine& machine, int core_count, UnwrittenPolicy unwritten,
                         std::shared_ptr<Executor> executor)
    : machine_(machine),
      unwritten_(unwritten),
      executor_(std::move(executor)),
      arrays_(static_cast<std::size_t>(core_count)) {}

void TensorBytes::provide(const BufferPtr& buffer, DType dtype, int core) {
  if (buffer->address) {
    buffer->storage = array(core, buffer->space);
    buffer->origin_bytes =
        buffer->address->partition * buffer->pitch_bytes + buffer->address->offset_bytes;
  } else {
    buffer->storage = allocate(buffer->size_bytes());
    if (unwritten_ == UnwrittenPolicy::kSentinel) {
      fill_sentinel(*buffer->storage, dtype);
    }
    resident_.push_back(buffer);
  }
  if (buffer->space == Space::kPsum) {
    buffer->matmul_written = std::make_unique<WrittenBits>(buffer->storage->size_bytes());
  }
}

void TensorBytes::provide_external(Buffer& buffer, std::byte* data, std::shared_ptr<void> owner) {
  buffer.storage =
      Storage::alias(data, static_cast<std::size_t>(buffer.size_bytes()), std::move(owner));
  buffer.storage->set_producer(executor_);
  const Storage& storage = *buffer.storage;
  const auto meets = [&](const std::shared_ptr<Storage>& other) {
    return storage.data() < other->data() + other->size_bytes() &&
           other->data() < storage.data() + storage.size_bytes();
  };
  if (std::any_of(external_.begin(), external_.end(), meets)) {
    executor_->stay_in_step();
  }
  external_.push_back(buffer.storage);
}

std::shared_ptr<Storage>& TensorBytes::array(int core, Space space) {
  Arrays& arrays = arrays_[static_cast<std::size_t>(core)];
  std::shared_ptr<Storage>& storage = space == Space::kPsum ? arrays.psum : arrays.sbuf;
  if (storage == nullptr) {
    const std::int64_t bytes =
        space == Space::kPsum
            ? machine_.core.psum.partitions * machine_.core.psum.partition_bytes()
            : machine_.core.sbuf.partitions * machine_.core.sbuf.partition_bytes();
    storage = Storage::allocate(static_cast<std::size_t>(bytes));
    storage->set_producer(executor_);
    if (unwritten_ == UnwrittenPolicy::kSentinel) {
      fill_sentinel(*storage, DType::kFloat32);
    }
  }
  return storage;
}

std::shared_ptr<Storage> TensorBytes::allocate(std::int64_t size_bytes) {
  bytes_since_collect_ += size_bytes;
  if (bytes_since_collect_ > kCollectEveryBytes) {
    collect();
    bytes_since_collect_ = 0;
  }
  std::vector<std::shared_ptr<Storage>>& spare = spare_[static_cast<std::size_t>(size_bytes)];
  if (spare.empty()) {
    auto fresh = Storage::allocate(static_cast<std::size_t>(size_bytes));
    fresh->set_producer(executor_);
    return fresh;
  }
  std::shared_ptr<Storage> storage = std::move(spare.back());
  spare.pop_back();
  storage->written().mark_none();
  return storage;
}

void TensorBytes::collect() {
  const auto out_of_reach = [&](const BufferPtr& buffer) {
    if (buffer->storage == nullptr) {
      return true;
    }
    if (buffer->storage.use_count() > 1) {
      return false;
    }
    spare_[buffer->storage->size_bytes()].push_back(std::move(buffer->storage));
    buffer->storage = nullptr;
    buffer->matmul_written.reset();
    return true;
  };
  resident_.erase(std::remove_if(resident_.begin(), resident_.end(), out_of_reach),
                  resident_.end());
}

}  // namespace trena
