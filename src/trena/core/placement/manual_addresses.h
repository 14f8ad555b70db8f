// What the kernel's own addresses mean for everybody else on one core: which bytes automatic
// tensors keep clear of, which PSUM banks they may borrow and when, and which tensors meet another
// one at their address.
#pragma once

#include <vector>

#include "trena/core/placement/lifetimes.h"
#include "trena/core/placement/ranges.h"

namespace trena {

class ManualAddresses {
 public:
  ManualAddresses(const Lifetimes& lifetimes, const Machine& machine);

  // What tensors with an address own, over the whole program: bytes of SBUF, whole banks of PSUM.
  const std::vector<ByteSpan>& sbuf() const { return sbuf_; }
  const std::vector<ByteSpan>& psum_banks() const { return psum_banks_; }
  // Tensors with an address in PSUM, and when nobody else may be there. None if nobody would.
  const std::vector<Life>& owners_of_banks() const { return owners_of_banks_; }
  // Another tensor may touch the bytes at this one's address.
  bool shared(const Buffer& buffer) const { return shared_[buffer.id]; }

 private:
  void note_owners_of_banks(const Lifetimes& lifetimes);
  void note_shared(const Lifetimes& lifetimes);

  std::vector<ByteSpan> sbuf_;
  std::vector<ByteSpan> psum_banks_;
  std::vector<Life> owners_of_banks_;
  std::vector<bool> shared_;  // by buffer id
};

}  // namespace trena
