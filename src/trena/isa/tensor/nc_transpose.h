// nc_transpose: partitions ↔ free axis of a tile, on the tensor engine (SBUF → PSUM, ≤ 128×128) or
// the vector engine (32×32 blocks) (hw.md §2.2, §2.3; nki.md §5.3-20).
#pragma once

#include "trena/isa/rules.h"

namespace trena {

class NcTranspose final : public Instruction {
 public:
  NcTranspose(Tensor dst, Tensor data, EngineRequest engine)
      : dst_(std::move(dst)), data_(std::move(data)), engine_(engine) {}

  std::string_view name() const override { return "nc_transpose"; }
  EngineKind engine(const Machine& machine) const override;
  void check(const Machine& machine) const override;
  void access(AccessList& list) const override;
  void execute(CoreState& core) const override;
  Cost cost(const Machine& machine) const override;

 private:
  void poison(std::byte* rows, std::size_t count, std::size_t length) const;

  Tensor dst_;
  Tensor data_;
  EngineRequest engine_;
};

}  // namespace trena
