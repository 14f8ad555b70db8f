// Random instructions on random views, most of them illegal: each is refused by name or runs, and
// nothing else happens. TRENA_FUZZ_PROGRAMS programs (default 400) from seed TRENA_FUZZ_FIRST; the
// sanitizer presets give it teeth.

#include <cstdlib>
#include <map>
#include <random>
#include <set>

#include "isa_fixture.h"
#include "trena/core/run.h"
#include "trena/isa/dma/dma_compute.h"
#include "trena/isa/dma/dma_copy.h"
#include "trena/isa/dma/dma_transpose.h"
#include "trena/isa/gpsimd/affine_select.h"
#include "trena/isa/gpsimd/gather.h"
#include "trena/isa/gpsimd/iota.h"
#include "trena/isa/gpsimd/search.h"
#include "trena/isa/gpsimd/tensor_partition_reduce.h"
#include "trena/isa/scalar/activate2.h"
#include "trena/isa/scalar/activation.h"
#include "trena/isa/sync/registers.h"
#include "trena/isa/tensor/nc_matmul.h"
#include "trena/isa/tensor/nc_matmul_mx.h"
#include "trena/isa/tensor/nc_transpose.h"
#include "trena/isa/vector/bn_stats.h"
#include "trena/isa/vector/exponential.h"
#include "trena/isa/vector/memset.h"
#include "trena/isa/vector/nc_stream_shuffle.h"
#include "trena/isa/vector/quantize_mx.h"
#include "trena/isa/vector/random.h"
#include "trena/isa/vector/reciprocal.h"
#include "trena/isa/vector/scalar_tensor_tensor.h"
#include "trena/isa/vector/select.h"
#include "trena/isa/vector/tensor_copy.h"
#include "trena/isa/vector/tensor_copy_predicated.h"
#include "trena/isa/vector/tensor_reduce.h"
#include "trena/isa/vector/tensor_scalar.h"
#include "trena/isa/vector/tensor_scalar_cumulative.h"
#include "trena/isa/vector/tensor_scalar_reduce.h"
#include "trena/isa/vector/tensor_tensor.h"
#include "trena/isa/vector/tensor_tensor_scan.h"
#include "trena/isa/vector/top8.h"
#include "trena/memory/views.h"

namespace trena::isa_test {
namespace {

class Dice {
 public:
  explicit Dice(std::uint32_t seed) : engine_(seed) {}

  // In [first, last].
  std::int64_t number(std::int64_t first, std::int64_t last) {
    return first +
           static_cast<std::int64_t>(engine_() % static_cast<std::uint32_t>(last - first + 1));
  }
  // The same, or a number that no instruction expects.
  std::int64_t wild(std::int64_t first, std::int64_t last) {
    using Limits = std::numeric_limits<std::int64_t>;
    return chance(95) ? number(first, last)
                      : one_of<std::int64_t>({Limits::max(), Limits::min(), Limits::max() - 7,
                                              std::int64_t{1} << 31, -(std::int64_t{1} << 31) - 1,
                                              (std::int64_t{1} << 32) - 1, std::int64_t{1} << 62});
  }
  bool chance(int percent) { return number(1, 100) <= percent; }
  template <typename T>
  T one_of(const std::vector<T>& choices) {
    return choices[static_cast<std::size_t>(
        number(0, static_cast<std::int64_t>(choices.size()) - 1))];
  }

 private:
  std::mt19937 engine_;
};

// Makes operands for one program; most have the partitions and elements of the instruction at hand.
class Operands {
 public:
  Operands(Program& program, Dice& dice) : program_(program), dice_(dice) { next(); }

  // A new instruction: other sizes.
  void next() {
    partitions_ = dice_.one_of<std::int64_t>({1, 2, 16, 31, 32, 33, 48, 64, 100, 128});
    elements_ = dice_.chance(20) ? 1 : dice_.number(1, 48);
    dtype_ = dtype();
    space_ = dice_.chance(85) ? Space::kSbuf : Space::kPsum;
  }

  DType dtype() {
    if (dice_.chance(10)) {
      return static_cast<DType>(dice_.number(0, static_cast<std::int64_t>(kDTypeCount) - 1));
    }
    return dice_.one_of<DType>({DType::kFloat32, DType::kBfloat16, DType::kFloat16, DType::kInt32,
                                DType::kUint8, DType::kUint16, DType::kUint32, DType::kFloat8E4m3});
  }

  Tensor any() {
    return tile(dice_.chance(90) ? partitions_ : dice_.number(1, 130),
                dice_.chance(85) ? elements_ : dice_.number(1, 70),
                dice_.chance(70) ? dtype_ : dtype());
  }
  Tensor any(DType dtype) { return tile(partitions_, elements_, dtype); }
  Tensor wide(std::int64_t elements, DType dtype) {
    return tile(partitions_, dice_.chance(90) ? elements : dice_.number(1, 70), dtype);
  }
  Tensor lane() {
    return tile(partitions_, dice_.chance(90) ? 1 : 2,
                dice_.chance(85) ? DType::kFloat32 : dtype());
  }
  Tensor far() { return tile(partitions_, elements_, dtype_, Space::kHbm); }
  std::optional<Tensor> maybe_lane() {
    return dice_.chance(50) ? std::optional(lane()) : std::nullopt;
  }
  Operand operand() {
    return dice_.chance(50) ? Operand(static_cast<double>(dice_.number(-3, 40))) : Operand(lane());
  }
  std::int64_t partitions() const { return partitions_; }
  std::int64_t elements() const { return elements_; }

  Tensor tile(std::int64_t partitions, std::int64_t elements, DType dtype,
              std::optional<Space> space = std::nullopt) {
    for (int attempt = 0; attempt < 20; ++attempt) {
      try {
        return attempt < 10 ? viewed(partitions, elements, dtype, space)
                            : made({partitions, elements}, dtype, Space::kSbuf);
      } catch (const Error& error) {
        EXPECT_NE(error.kind(), ErrorKind::kInternal) << error.what();
        partitions = std::min<std::int64_t>(partitions, 128);
      }
    }
    return made({1, 1}, DType::kFloat32, Space::kSbuf);
  }

 private:
  Tensor made(const Shape& shape, DType dtype, Space space) {
    std::optional<Address> address;
    if (space != Space::kHbm && dice_.chance(3)) {
      address = Address{static_cast<int>(dice_.number(0, 3) * 32), 4 * dice_.number(0, 40)};
    }
    Tensor tensor = program_.make_tensor(
        0, {.space = space, .dtype = dtype, .shape = shape, .name = "t", .address = address});
    if (!dice_.chance(4)) {
      fill(tensor);
    }
    return tensor;
  }

  // Small integers in 16- and 32-bit types, so that they may be indices; any bits in others.
  void fill(const Tensor& tensor) {
    std::vector<std::byte> bits(static_cast<std::size_t>(tensor.size_bytes()));
    const std::size_t width = size_bytes(tensor.dtype());
    const bool index = info(tensor.dtype()).is_integer && width > 1 && width <= 4;
    for (std::size_t i = 0; i + width <= bits.size(); i += width) {
      const std::int64_t value =
          index ? dice_.number(0, 20) : dice_.number(0, std::numeric_limits<std::int32_t>::max());
      std::memcpy(bits.data() + i, &value, width);
    }
    write_bits(tensor, bits.data());
    mark_written(tensor);
  }

  Tensor viewed(std::int64_t partitions, std::int64_t elements, DType dtype,
                std::optional<Space> asked) {
    const Space space = asked.value_or(dice_.chance(85)   ? space_
                                       : dice_.chance(60) ? Space::kSbuf
                                       : dice_.chance(60) ? Space::kPsum
                                                          : Space::kHbm);
    switch (dice_.number(0, 11)) {
      case 0:  // every second column of a larger tile
        return views::slice(made({partitions, 2 * elements + 1}, dtype, space), 1, 1,
                            2 * elements + 1, 2);
      case 1:  // some of its rows
        return views::slice(made({partitions + 32, elements}, dtype, space), 0, 32,
                            partitions + 32);
      case 2: {  // three dimensions, turned
        const std::array<int, 3> turn = {0, 2, 1};
        const std::int64_t part = elements % 2 == 0 ? 2 : 1;
        return views::permute(made({partitions, elements / part, part}, dtype, space), turn);
      }
      case 3:
        return views::broadcast(made({partitions, 1}, dtype, space), 1, elements);
      case 4:
        return views::view(made({partitions, elements * 4}, DType::kUint8, space), dtype);
      case 5:
        return views::indirect(made({partitions, elements + 21}, dtype, space),
                               made({partitions, elements}, DType::kUint16, Space::kSbuf),
                               elements);
      case 6:
        if (space == Space::kHbm) {
          return views::vector_select(made({21, elements}, dtype, space), 0,
                                      made({partitions, 1}, DType::kUint32, Space::kSbuf));
        }
        [[fallthrough]];
      default:
        return made({partitions, elements}, dtype, space);
    }
  }

  Program& program_;
  Dice& dice_;
  std::int64_t partitions_ = 1;
  std::int64_t elements_ = 1;
  DType dtype_ = DType::kFloat32;
  Space space_ = Space::kSbuf;
};

class Fuzzer {
 public:
  Fuzzer(Program& program, Dice& dice) : dice_(dice), operands_(program, dice) {}

  std::unique_ptr<Instruction> instruction() {
    operands_.next();
    switch (dice_.number(0, 4)) {
      case 0:
        return elementwise();
      case 1:
        return reducing();
      case 2:
        return choosing();
      case 3:
        return moving();
      default:
        return producing();
    }
  }

 private:
  template <typename T, typename... Arguments>
  static std::unique_ptr<Instruction> make(Arguments&&... arguments) {
    return make_instruction(T{std::forward<Arguments>(arguments)...});
  }
  AluOp alu() {
    return dice_.chance(70)
               ? dice_.one_of<AluOp>({AluOp::kAdd, AluOp::kSubtract, AluOp::kMultiply,
                                      AluOp::kMaximum, AluOp::kBitwiseAnd, AluOp::kLeftShift})
               : static_cast<AluOp>(dice_.number(0, static_cast<std::int64_t>(kAluOpCount) - 1));
  }
  MathFunction function() {
    return static_cast<MathFunction>(
        dice_.number(0, static_cast<std::int64_t>(kMathFunctionCount) - 1));
  }
  EngineRequest engine() {
    return dice_.chance(70) ? EngineRequest()
                            : static_cast<EngineKind>(dice_.number(0, kEngineCount - 1));
  }
  ScalarStep step() { return {alu(), operands_.operand(), dice_.chance(30)}; }
  bool coin() { return dice_.chance(50); }
  Reduction reduction(std::optional<AluOp> op) {
    const auto command = static_cast<ReduceCommand>(dice_.number(0, 4));
    const bool initial = (command == ReduceCommand::kLoadReduce) != dice_.chance(5);
    return {op, command, operands_.maybe_lane(),
            initial ? std::optional(operands_.operand()) : std::nullopt};
  }
  DmaRequest dma() {
    return {.mode = dice_.chance(60) ? DgeMode::kUnknown : static_cast<DgeMode>(dice_.number(0, 3)),
            .engine = engine(),
            .oob = coin() ? OobMode::kSkip : OobMode::kError,
            .priority = dice_.chance(5) ? std::optional(1) : std::nullopt};
  }

  std::unique_ptr<Instruction> elementwise() {
    Operands& o = operands_;
    switch (dice_.number(0, 11)) {
      case 0:
        return make<TensorCopy>(o.any(), o.any(), engine());
      case 1:
        return make<TensorTensor>(o.any(), o.any(), o.any(), alu(), engine());
      case 2:
        return make<TensorScalar>(o.any(), o.any(), step(),
                                  coin() ? std::optional(step()) : std::nullopt, engine());
      case 3:
        return make<ScalarTensorTensor>(o.any(), o.any(), step(), alu(), o.any(), coin());
      case 4:
        return make<Reciprocal>(o.any(), o.any());
      case 5: {
        ActivationInput input{o.any(), std::nullopt, o.operand()};
        if (coin()) {
          input.bias = o.operand();
        }
        return make<Activation>(o.any(), function(), std::move(input), reduction(AluOp::kAdd));
      }
      case 6: {
        const AluOp op0 = coin() ? AluOp::kMultiply : alu();
        const AluOp op1 = coin() ? AluOp::kAdd : AluOp::kBypass;
        return make<Activate2>(o.any(), function(), o.any(), ScalarStep{op0, o.operand(), coin()},
                               ScalarStep{op1, o.operand(), false}, o.operand(), reduction(alu()));
      }
      case 7:
        return make<Exponential>(o.any(), o.any(), o.operand(), reduction(AluOp::kAdd));
      case 8: {
        const DType type = o.dtype();
        return make<TensorCopyPredicated>(o.any(type), coin() ? Operand(o.any(type)) : Operand(2.0),
                                          o.any(DType::kUint8), coin());
      }
      case 9: {
        const DType type = o.dtype();
        return make<Dropout>(o.any(type), o.any(type), o.operand());
      }
      case 10:
        return make<NcTranspose>(o.tile(o.elements(), o.partitions(), o.dtype()), o.any(),
                                 engine());
      default:
        return make<QuantizeMx>(o.tile(32, 4, DType::kFloat8E4m3fnX4),
                                o.tile(32, 16, DType::kBfloat16), o.tile(4, 4, DType::kUint8));
    }
  }

  std::unique_ptr<Instruction> reducing() {
    Operands& o = operands_;
    switch (dice_.number(0, 9)) {
      case 0:
        return make<TensorReduce>(o.lane(), alu(), o.any(),
                                  std::vector<std::int64_t>{dice_.wild(-1, 3)}, coin());
      case 1:
        return make<TensorPartitionReduce>(o.tile(1, o.elements(), o.dtype()), alu(), o.any());
      case 2:
        return make<TensorTensorScan>(o.any(), o.any(), o.any(), o.operand(),
                                      ScanOperators{alu(), alu(), coin(), coin()});
      case 3:
        return make<TensorScalarReduce>(o.any(), o.any(), step(), reduction(alu()), coin());
      case 4:
        return make<TensorScalarCumulative>(o.any(), o.any(), alu(), o.operand(), reduction(alu()));
      case 5:
        return make<BnStats>(o.wide(6, DType::kFloat32), o.any());
      case 6:
        return make<BnAggregate>(o.wide(2, DType::kFloat32), o.wide(12, DType::kFloat32));
      case 7:
        return make<Max8>(o.wide(8, o.dtype()), o.any());
      case 8:
        return make<NcFindIndex8>(o.wide(8, DType::kUint32), o.any(), o.wide(8, o.dtype()));
      default:
        return make<NcMatchReplace8>(
            o.any(), o.any(), o.wide(8, o.dtype()), 0.5F,
            coin() ? std::optional(o.wide(8, DType::kUint32)) : std::nullopt);
    }
  }

  std::unique_ptr<Instruction> choosing() {
    Operands& o = operands_;
    const DType type = o.dtype();
    switch (dice_.number(0, 8)) {
      case 0:
        return make<RangeSelect>(
            o.any(DType::kFloat32), o.any(DType::kFloat32),
            IndexRange{AluOp::kGreaterEqual, AluOp::kLess, o.lane(), o.lane(), dice_.wild(-1, 40)},
            RangeSelect::kFill, reduction(AluOp::kMaximum));
      case 1:
        return make<SelectReduce>(o.any(), o.any(DType::kUint8), o.any(), o.operand(),
                                  reduction(AluOp::kMaximum), coin());
      case 2:
        return make<AffineSelect>(
            o.any(),
            AffinePattern{{{dice_.wild(-3, 3), o.elements()}}, dice_.wild(-9, 9), dice_.wild(1, 1)},
            o.any(), -1.0F, coin() ? AluOp::kGreaterEqual : alu());
      case 3:
        return make<LocalGather>(o.wide(16 * dice_.number(1, 2), type), o.wide(32, type),
                                 o.wide(2, DType::kUint16), dice_.wild(1, 3),
                                 coin() ? std::optional(dice_.wild(-1, 40)) : std::nullopt);
      case 4:
        return make<NcNGather>(o.any(type), o.wide(21, type), o.any(DType::kUint32));
      case 5:
        return make<SequenceBounds>(o.tile(1, 2 * o.elements(), DType::kInt32),
                                    o.tile(1, o.elements(), DType::kFloat32));
      case 6:
        return make<NonzeroWithCount>(o.wide(o.elements() + 1, DType::kInt32),
                                      o.any(DType::kFloat32), dice_.wild(-9, 99),
                                      dice_.wild(-1, -1));
      case 7: {
        const std::int64_t results = dice_.number(1, 9);
        return make<TopK>(o.wide(results, DType::kBfloat16), o.wide(results, DType::kUint32),
                          o.wide(3, DType::kBfloat16), dice_.wild(1, 50));
      }
      default: {
        std::vector<std::int64_t> mask(dice_.chance(95) ? 32 : 31);
        for (std::int64_t& entry : mask) {
          entry = dice_.chance(80) ? dice_.number(0, std::min<std::int64_t>(o.partitions(), 32) - 1)
                  : dice_.chance(90) ? 255
                                     : dice_.wild(-2, 40);
        }
        return make<NcStreamShuffle>(o.any(type), o.any(type), mask);
      }
    }
  }

  std::unique_ptr<Instruction> moving() {
    Operands& o = operands_;
    switch (dice_.number(0, 6)) {
      case 0:
        return make<DmaCopy>(o.any(), o.far(), dma());
      case 1:
        return make<DmaCopy>(o.far(), o.any(), dma());
      case 2:
        return make<DmaCopy>(o.any(), o.any(), dma());
      case 3:
        return make<DmaTranspose>(o.tile(o.elements(), o.partitions(), o.dtype()), o.far(),
                                  coin() ? std::optional(std::vector<int>{1, 0}) : std::nullopt,
                                  dma());
      case 4:
        return make<DmaCompute>(
            o.far(), std::vector<Tensor>{o.any(), o.far()}, AluOp::kAdd,
            coin() ? std::optional(std::vector<float>{1.0F, 1.0F}) : std::nullopt, coin(),
            coin() ? OobMode::kSkip : OobMode::kError);
      case 5:
        return make<RegisterStore>(o.tile(1, 1, DType::kInt32), dice_.wild(-9, 99));
      default:
        return make<RegisterLoad>(o.tile(1, 1, DType::kInt32), nullptr);
    }
  }

  std::unique_ptr<Instruction> producing() {
    Operands& o = operands_;
    switch (dice_.number(0, 8)) {
      case 0:
        return make<Memset>(o.any(), coin() ? MemsetValue(dice_.wild(-9, 99)) : MemsetValue(0.5),
                            engine());
      case 1:
        return make<Iota>(o.any(), AffinePattern{{{dice_.wild(-3, 3), o.elements()}},
                                                 dice_.wild(-9, 9),
                                                 dice_.wild(-9, 9)});
      case 2:
        return make<Rng>(o.any(DType::kUint32), engine());
      case 3:
        return make<Rand2>(o.any(), Operand(-1.0), o.operand());
      case 4:
        return make<SetRngSeed>(o.tile(1, 1, DType::kUint32));
      case 5:
        return make<RandSetState>(o.wide(coin() ? 6 : 24, DType::kUint32), engine());
      case 6:
        return make<RandGetState>(o.wide(coin() ? 6 : 24, DType::kUint32), engine());
      case 7: {
        const std::int64_t columns = dice_.number(1, 128);
        const DType type = o.dtype();
        MatmulOptions options;
        options.stationary_onezero = coin();
        options.transpose = dice_.chance(10);
        if (coin()) {
          options.accumulate = dice_.chance(80);
        }
        if (dice_.chance(10)) {
          options.perf_mode = MatmulPerfMode::kDoubleRow;
        }
        return make<NcMatmul>(o.tile(columns, o.elements(), DType::kFloat32, Space::kPsum),
                              o.tile(o.partitions(), columns, type), o.any(type), options);
      }
      default:
        return make<NcMatmulMx>(o.tile(2, 4, DType::kFloat32, Space::kPsum),
                                o.tile(32, 2, DType::kFloat8E5m2X4, Space::kSbuf),
                                o.tile(32, 4, DType::kFloat8E5m2X4, Space::kSbuf),
                                o.tile(4, 2, DType::kUint8, Space::kSbuf),
                                o.tile(4, 4, DType::kUint8, Space::kSbuf), MatmulMxOptions{});
    }
  }

  Dice& dice_;
  Operands operands_;
};

int number_from(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  return text != nullptr ? std::atoi(text) : otherwise;
}

void fuzz_program(std::uint32_t seed, std::map<std::string, int, std::less<>>& legal) {
  Dice dice(seed);
  Bench bench(dice.one_of(test_machines()));
  Fuzzer fuzzer(bench.program(), dice);
  for (int i = 0; i < 25; ++i) {
    std::string name;
    try {
      std::unique_ptr<Instruction> instruction = fuzzer.instruction();
      name = instruction->name();
      bench.program().append(0, std::move(instruction));
      ++legal[name];
    } catch (const Error& error) {
      ASSERT_NE(error.kind(), ErrorKind::kInternal) << name << ": " << error.what();
      ASSERT_FALSE(error.text().rule.empty()) << name;
    }
  }
  try {
    EXPECT_GT(run_program(bench.program(), {}).time, 0);
  } catch (const Error& error) {
    ASSERT_EQ(error.kind(), ErrorKind::kCapacity) << error.what();
  }
}

TEST(Fuzz, RandomInstructionsRunOrAreRefusedByName) {
  std::map<std::string, int, std::less<>> legal;
  const int first = number_from("TRENA_FUZZ_FIRST", 0);
  const int past = first + number_from("TRENA_FUZZ_PROGRAMS", 400);
  for (int seed = first; seed < past && !HasFatalFailure(); ++seed) {
    SCOPED_TRACE(seed);
    fuzz_program(static_cast<std::uint32_t>(seed), legal);
  }
  // None of them is fuzzed in name only.
  std::set<std::string> never = {"core_barrier", "sendrecv", "register_alloc", "register_move",
                                 "activation_reduce"};
  for (const std::string& machine : test_machines()) {
    for (const auto& [name, engines] : test_machine(machine).legality.engines) {
      EXPECT_TRUE(never.count(name) != 0 || legal.count(name) != 0) << name;
    }
  }
}

}  // namespace
}  // namespace trena::isa_test
