// PSUM banks that a kernel addresses itself, lent to automatic tensors while nothing lives there.
//
// The compiler allocates around live ranges, so a tensor without an address may sit in a bank
// between the last use of one tensor at the kernel's address and the first use of the next:
// nki-library's kernels rely on it, they address all eight banks and then ask for one more. Trena
// lends a bank only where none is free that no address names.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "trena/core/placement/ranges.h"
#include "trena/memory/region.h"

namespace trena {

class LentBanks {
 public:
  // `addressed` ranges, whole banks, are all that may be lent.
  LentBanks(std::int64_t size_bytes, std::int64_t bank_bytes,
            const std::vector<ByteSpan>& addressed);

  // The owner uses bytes [start, start + bytes) from `first` to `last`, indices of the program.
  void add_owner(std::int64_t start, std::int64_t bytes, std::size_t first, std::size_t last);

  // Where `bytes`, whole banks, may stay from `first` to `last`: of all places the one that owner
  // and guests left longest ago.
  std::optional<std::int64_t> find(std::int64_t bytes, std::size_t first, std::size_t last) const;

  Ranges& guests() { return guests_; }
  // A guest's rectangle of rows × bytes, counted from the start of PSUM.
  Region region_of_guest(const Tensor& view, Stay stay) const;

 private:
  struct Life {
    std::int64_t start;
    std::int64_t end;
    std::size_t first;
    std::size_t last;
  };

  std::optional<std::int64_t> free_since(std::int64_t start, std::int64_t bytes, std::size_t first,
                                         std::size_t last) const;

  std::int64_t size_bytes_;
  std::int64_t bank_bytes_;
  std::vector<Life> owners_;
  Ranges guests_;
};

}  // namespace trena
