#include "trena/core/timeline/engine_ports.h"

#include <algorithm>

namespace trena {
namespace {

constexpr std::int64_t kSbufPort = 1;  // of vector and gpsimd
constexpr std::int64_t kPsumPort = 2;  // of vector and scalar
constexpr std::int64_t kFirstBank = 3;

class Keys {
 public:
  void add(std::int64_t key) {
    const auto value = static_cast<std::int32_t>(key);
    if (count_ < keys_.size() && std::find(keys_.begin(), keys_.end(), value) == keys_.end()) {
      keys_[count_++] = value;
    }
  }
  const PortKeys& keys() const { return keys_; }

 private:
  PortKeys keys_{};
  std::size_t count_ = 0;
};

std::int64_t bank_key(const Psum& psum, const Tensor& tensor) {
  const Buffer& buffer = *tensor.buffer();
  const std::int64_t first = buffer.address
                                 ? buffer.address->offset_bytes / psum.bank_bytes
                                 : psum.banks * (1 + static_cast<std::int64_t>(buffer.id));
  return kFirstBank + first + tensor.free_offset_bytes() / psum.bank_bytes;
}

}  // namespace

PortKeys ports_of(const Machine& machine, const Instruction& instruction, EngineKind engine,
                  AccessList& scratch) {
  const bool vector = engine == EngineKind::kVector;
  const bool scalar = engine == EngineKind::kScalar;
  if (instruction.is_dma() || (!vector && !scalar && engine != EngineKind::kGpsimd)) {
    return {};
  }
  const Psum& psum = machine.core.psum;
  Keys keys;
  scratch.clear();
  instruction.access(scratch);
  for (const Access& access : scratch) {
    const Space space = access.tensor->space();
    if (space == Space::kSbuf && !scalar && machine.core.sbuf.vector_gpsimd_exclusive) {
      keys.add(kSbufPort);
    }
    if (space != Space::kPsum || (!vector && !scalar)) {
      continue;
    }
    if (psum.vector_scalar_exclusive) {
      keys.add(kPsumPort);
    } else if (psum.same_bank_exclusive) {
      keys.add(bank_key(psum, *access.tensor));
    }
  }
  return keys.keys();
}

bool share_port(const PortKeys& a, const PortKeys& b) {
  return std::any_of(a.begin(), a.end(), [&](std::int32_t key) {
    return key != 0 && std::find(b.begin(), b.end(), key) != b.end();
  });
}

}  // namespace trena
