// The accumulators that instructions keep between calls: 128 on the scalar engine, 128 shared by
// several instructions on the vector engine (hw.md §3.7).
#pragma once

#include <optional>
#include <string_view>

#include "trena/isa/row_kernel.h"
#include "trena/isa/rules.h"
#include "trena/number/vector_math.h"

namespace trena {

// nki.isa.reduce_cmd, with its values.
enum class ReduceCommand : std::uint8_t {
  kIdle = 0,         // the accumulator is not used
  kReset = 1,        // set to the operator's identity
  kReduce = 2,       // go on from its value
  kResetReduce = 3,  // reset, then reduce
  kLoadReduce = 4,   // load a value, then reduce (vector engine)
};

struct Reduction {
  std::optional<AluOp> op;
  ReduceCommand command = ReduceCommand::kIdle;
  std::optional<Tensor> result;    // [P, 1]: the accumulators are read out into it
  std::optional<Operand> initial;  // of kLoadReduce

  bool uses_accumulator() const { return command != ReduceCommand::kIdle || result.has_value(); }
  bool reduces() const {
    return command != ReduceCommand::kIdle && command != ReduceCommand::kReset;
  }
};

// The accumulator after one row whose own reduction is `row`: each row counts once, whatever the
// documents' pseudo-code says (nki.md §5.3-19).
float accumulate(AluOp op, ReduceCommand command, float accumulator, float initial, float row);

// Reduces the rows of a block and takes them into the accumulators of their partitions;
// accumulators[0] is that of partition 0 of the tile. `initial` is read for kLoadReduce.
void accumulate_rows(AluOp op, const Reduction& reduction, float* accumulators, const Block& block,
                     const float* rows, std::size_t row_elements);

// Writes the accumulators to reduce_res, if there is one.
void read_out(const Reduction& reduction, const float* accumulators, bool negate = false);

// `reduce-cmd`: not a command of this instruction.
void require_reduce_command(std::string_view instruction, ReduceCommand command,
                            std::initializer_list<ReduceCommand> allowed);

// What the accumulators read and write, in all.
void access_reduction(const Reduction& reduction, HiddenState state, AccessList& list);

// `reduce-init`: kLoadReduce has a value to load, float32, and nothing else has.
void require_reduce_initial(std::string_view instruction, std::string_view role,
                            const Reduction& reduction, const Tensor& data);

// An instruction of the vector engine that also reads its accumulator out.
Cost with_accumulator(const Machine& machine, Cost cost, const Reduction& reduction);

// `reduce_res`: one element per partition of `data`.
void require_reduce_result(const Machine& machine, std::string_view instruction,
                           const Reduction& reduction, const Tensor& data);

// Accumulators that are reset, reduced into by one of `operators`, and read out: their command,
// operator (`operator-refused`) and result.
void require_accumulation(const Machine& machine, std::string_view instruction,
                          const Reduction& reduction, std::initializer_list<AluOp> operators,
                          const Tensor& data);

}  // namespace trena
