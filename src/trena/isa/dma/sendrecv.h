// sendrecv: two cores of one HBM stack swap tiles of SBUF (v3+, LNC 2; hw.md §5.4). The exchange
// happens at the rendezvous (core/pair.h); the instruction writes what arrived.
#pragma once

#include <memory>
#include <vector>

#include "trena/isa/rules.h"

namespace trena {

enum class SendRecvPath : std::uint8_t { kDma = 1, kGpsimd = 2 };  // nki: dma_engine

class SendRecv final : public Instruction {
 public:
  using Bytes = std::shared_ptr<const std::vector<std::byte>>;

  SendRecv(Tensor src, Tensor dst, int send_to, int receive_from, SendRecvPath path)
      : src_(std::move(src)),
        dst_(std::move(dst)),
        send_to_(send_to),
        receive_from_(receive_from),
        path_(path) {}

  std::string_view name() const override { return "sendrecv"; }
  EngineKind engine(const Machine& machine) const override;
  void check(const Machine& machine) const override;
  void access(AccessList& list) const override;
  void execute(CoreState& core) const override;
  Cost cost(const Machine& machine) const override;
  std::int64_t rendezvous() const override { return rendezvous_; }

  const Tensor& src() const { return src_; }
  const Tensor& dst() const { return dst_; }
  int send_to() const { return send_to_; }
  int receive_from() const { return receive_from_; }
  Bytes pack() const;  // the source's bits, row by row
  void receive(std::int64_t rendezvous, Bytes bytes);
  void deliver(const std::vector<std::byte>& bytes) const;  // into the destination

 private:
  Tensor src_;
  Tensor dst_;
  int send_to_;
  int receive_from_;
  SendRecvPath path_;
  std::int64_t rendezvous_ = -1;
  Bytes received_;
};

}  // namespace trena
