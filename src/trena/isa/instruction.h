// The instruction: one class that answers five questions, for the executor, the scheduler, the
// checker, the energy meter, the tracer and the profiler alike. None of them knows opcodes.
//
// To add one: a file in the folder of its engine, a line in bindings/nki_isa.cpp, a test
// (docs/add-an-instruction.md). Its header lists what a call says (`struct TensorCopy`), its source
// answers (`class TensorCopyInstruction`); make_instruction() goes from one to the other.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "trena/error.h"
#include "trena/isa/cost.h"
#include "trena/machine/engine.h"
#include "trena/machine/machine.h"
#include "trena/memory/tensor.h"

namespace trena {

class CoreState;

enum class AccessKind : std::uint8_t {
  kRead,
  kReadCarry,  // a copy that carries "unwritten" along instead of raising (nki.md §6.4)
  kWrite,
  kWriteCarry,  // becomes written where what is read with kReadCarry was
  kWriteSome,   // writes some of these bytes and marks them itself: scatters, skipped rows
  kUpdate,      // reads and writes the same bytes: predicated copies, read-modify-write
  kAccumulate,  // a matmul into PSUM: adds where a matmul wrote before, overwrites elsewhere
};

constexpr bool only_reads(AccessKind kind) {
  return kind == AccessKind::kRead || kind == AccessKind::kReadCarry;
}

// What instructions remember in the core between calls, besides tensors: it keeps them in program
// order even when a compiler would move independent work up.
enum class HiddenState : std::uint8_t {
  kScalarAccumulators,
  kVectorAccumulators,
  kRandom,
  kRegisters
};
constexpr int kHiddenStates = 4;

struct Access {
  const Tensor* tensor;
  AccessKind kind;
};

class AccessList {
 public:
  void read(const Tensor& tensor) { add(tensor, AccessKind::kRead); }
  void write(const Tensor& tensor) { add(tensor, AccessKind::kWrite); }
  // An operand with a run-time address reads its index as well.
  void add(const Tensor& tensor, AccessKind kind) {
    accesses_.push_back({&tensor, kind});
    if (tensor.indirection() != nullptr && tensor.indirection()->index) {
      accesses_.push_back({&*tensor.indirection()->index, AccessKind::kRead});
    }
  }
  // A number needs no access; a [P, 1] tensor is read.
  void read(const std::variant<double, Tensor>& operand) {
    if (const auto* tensor = std::get_if<Tensor>(&operand)) {
      read(*tensor);
    }
  }
  void uses_state(HiddenState state) { states_ |= 1u << static_cast<unsigned>(state); }
  bool has_state(HiddenState state) const {
    return (states_ >> static_cast<unsigned>(state) & 1u) != 0;
  }
  void clear() {
    accesses_.clear();
    states_ = 0;
  }
  // The tensors were pinned to keep their bytes until the instruction is computed.
  void unpin() const {
    for (const Access& access : accesses_) {
      access.tensor->unpin();
    }
  }
  auto begin() const { return accesses_.begin(); }
  auto end() const { return accesses_.end(); }
  std::size_t size() const { return accesses_.size(); }

 private:
  std::vector<Access> accesses_;
  std::uint32_t states_ = 0;
};

// Where in the user's program an instruction comes from.
struct Position {
  std::uint32_t file = 0;  // index into Program::files()
  std::int32_t line = 0;
};

// A number, or a [P, 1] tensor with one value per partition. Arithmetic rounds the number to
// float32; bitvec operators take all 32 bits of it, which a float could not hold.
using Operand = std::variant<double, Tensor>;

class Instruction {
 public:
  virtual ~Instruction() = default;

  // The mnemonic of the kernel author ("nc_matmul"), and the opcode of the profiler ("MATMUL")
  // where it differs.
  virtual std::string_view name() const = 0;

  // Who runs it. For a DMA: the engine whose queue triggers it; cost().dma says what the rings then
  // do.
  virtual EngineKind engine(const Machine& machine) const = 0;

  // Is it legal on this machine? Throws Error{kIllegal} with the rule; never changes anything.
  virtual void check(const Machine& machine) const = 0;

  // What it touches. The listed tensors live as long as the instruction.
  virtual void access(AccessList& list) const = 0;

  // What it computes, on any thread: bytes and state that access() names, nothing else. Runs after
  // check(), in an order that none of its operands can tell from program order, with all of them
  // written.
  virtual void execute(CoreState& core) const = 0;

  // May execute() refuse what it finds in the bytes (an index outside, say)? Then it runs before
  // the front end goes on, so that the error appears at its line.
  virtual bool judges_values() const { return false; }

  // What it costs on an otherwise idle machine.
  virtual Cost cost(const Machine& machine) const = 0;

  // Who else may run it when the call leaves the engine to the compiler, which then "selects the
  // best engine based on engine workload" (AWS nki.isa.tensor_copy); what it writes is the same
  // there.
  struct Alternative {
    EngineKind engine;
    Cost cost;
  };
  virtual std::optional<Alternative> alternative(const Machine&) const { return std::nullopt; }

  // Does it move data through the DMA rings (cost().dma is set) rather than through its engine?
  virtual bool is_dma() const { return false; }

  // Does an operand whose run-time index is outside its tensor leave it without effect
  // (oob_mode.skip)?
  virtual bool skips_out_of_bounds() const { return false; }

  // Operands among those of access() that may be tensor-indirect (.indirect() of v4, hw.md §1.6):
  // the result and the data. isa/indirect.h checks them.
  struct IndirectOperands {
    const Tensor* dst = nullptr;
    const Tensor* src = nullptr;
  };
  virtual IndirectOperands indirect_operands() const { return {}; }

  // Of a transfer whose rows an index vector chooses: those operands, as views with their index.
  // (access() lists all rows that they may touch.)
  virtual void chosen_by_index(AccessList&) const {}

  // Does it add to PSUM whatever is there (accumulate=True)? A kAccumulate access that does not
  // adds only where a product of the same tensor wrote before.
  virtual bool adds_always() const { return false; }

  // Rendezvous group of instructions that wait for each other on several cores; -1: none.
  virtual std::int64_t rendezvous() const { return -1; }

  Position position;
  std::string label;  // the `name=` of the call, often empty
  std::vector<std::uint32_t>
      depends_on;  // extra order edges: indices of earlier instructions of this core
  std::uint32_t order_block =
      0;  // those of one block keep their order on each engine (nl.no_reorder)

 protected:
  Instruction() = default;
  Instruction(const Instruction&) = default;
  Instruction& operator=(const Instruction&) = default;
};

// An instruction of which everybody else knows only what was said in the call.
template <typename Arguments>
class InstructionOf : public Instruction {
 public:
  explicit InstructionOf(Arguments args) : args_(std::move(args)) {}

 protected:
  const Arguments args_;
};

}  // namespace trena
