// all_reduce as one rank records it: reads its own tensors, writes the result that the collective
// cores made, and takes the time that the fabric gave (fabric/collective.h). A queue triggers it;
// no engine helps (hw.md §5.4).
#pragma once

#include <memory>
#include <vector>

#include "trena/isa/rules.h"

namespace trena {

class AllReduce final : public Instruction {
 public:
  using Bytes = std::shared_ptr<const std::vector<std::byte>>;

  AllReduce(std::vector<Tensor> sources, std::vector<Tensor> destinations,
            std::optional<int> priority)
      : sources_(std::move(sources)), destinations_(std::move(destinations)), priority_(priority) {}

  std::string_view name() const override { return "all_reduce"; }
  EngineKind engine(const Machine&) const override { return EngineKind::kSync; }
  void check(const Machine& machine) const override;
  void access(AccessList& list) const override;
  void execute(CoreState& core) const override;
  Cost cost(const Machine& machine) const override;

  const std::vector<Tensor>& sources() const { return sources_; }
  // `results`: the bits of each destination, in element order (none in a time-only run).
  void complete(std::vector<Bytes> results, Ticks duration);

 private:
  std::vector<Tensor> sources_;
  std::vector<Tensor> destinations_;
  std::optional<int> priority_;
  std::vector<Bytes> results_;
  Ticks duration_ = 0;
};

}  // namespace trena
