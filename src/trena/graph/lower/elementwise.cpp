#include "trena/graph/lower/elementwise.h"

#include <fmt/format.h>

#include <algorithm>

namespace trena {
namespace {

// One tile of an operator: operands in SBUF, all with the shape of `out`.
struct Tile {
  Lowering& lowering;
  const Tensor& out;
  std::span<const Tensor> in;
  std::span<const double> numbers;

  float number(std::size_t index) const { return static_cast<float>(numbers[index]); }
  Tensor temporary(DType dtype = DType::kFloat32) const {
    return lowering.sbuf(dtype, out.shape());
  }
};

struct Recipe {
  std::string_view name;
  std::size_t inputs;
  std::size_t scalars;
  void (*lower)(const Tile&);
};

// a + factor · b
void add_scaled(const Tile& t, float factor) {
  if (factor == 1.0F) {
    t.lowering.tensor_tensor(t.out, t.in[0], AluOp::kAdd, t.in[1]);
  } else if (factor == -1.0F) {
    t.lowering.tensor_tensor(t.out, t.in[0], AluOp::kSubtract, t.in[1]);
  } else {
    t.lowering.scalar_tensor_tensor(t.out, t.in[1], AluOp::kMultiply, factor, AluOp::kAdd, t.in[0]);
  }
}

template <AluOp op>
void tensors(const Tile& t) {
  t.lowering.tensor_tensor(t.out, t.in[0], op, t.in[1]);
}

template <AluOp op>
void with_number(const Tile& t) {
  t.lowering.tensor_scalar(t.out, t.in[0], op, t.number(0));
}

template <MathFunction function>
void function_of(const Tile& t) {
  t.lowering.activation(t.out, function, t.in[0]);
}

// There is no divider: a · (1 / b) (number/vector_math.h).
void divide(const Tile& t) {
  const Tensor inverse = t.temporary();
  t.lowering.reciprocal(inverse, t.in[1]);
  t.lowering.tensor_tensor(t.out, t.in[0], AluOp::kMultiply, inverse);
}

// Where self is over the threshold, the gradient as it is; else 0. A select, so that infinities do
// not become NaN.
void threshold_backward(const Tile& t) {
  const Tensor over = t.temporary(DType::kUint8);
  t.lowering.tensor_scalar(over, t.in[1], AluOp::kGreater, t.number(0));
  t.lowering.memset(t.out, 0.0F);
  t.lowering.copy_predicated(t.out, t.in[0], over);
}

void where(const Tile& t) {
  t.lowering.tensor_copy(t.out, t.in[2]);
  t.lowering.copy_predicated(t.out, t.in[1], t.in[0]);
}

// self + value · t1 · t2
void addcmul(const Tile& t) {
  const Tensor product = t.temporary();
  t.lowering.scalar_tensor_tensor(product, t.in[1], AluOp::kMultiply, t.number(0), AluOp::kMultiply,
                                  t.in[2]);
  t.lowering.tensor_tensor(t.out, t.in[0], AluOp::kAdd, product);
}

// self + value · t1 / t2
void addcdiv(const Tile& t) {
  const Tensor quotient = t.temporary();
  t.lowering.reciprocal(quotient, t.in[2]);
  t.lowering.scalar_tensor_tensor(quotient, t.in[1], AluOp::kMultiply, t.number(0),
                                  AluOp::kMultiply, quotient);
  t.lowering.tensor_tensor(t.out, t.in[0], AluOp::kAdd, quotient);
}

// self + weight · (end − self)
void lerp(const Tile& t) {
  const Tensor distance = t.temporary();
  t.lowering.tensor_tensor(distance, t.in[1], AluOp::kSubtract, t.in[0]);
  t.lowering.scalar_tensor_tensor(t.out, distance, AluOp::kMultiply, t.number(0), AluOp::kAdd,
                                  t.in[0]);
}

// In alphabetical order.
constexpr Recipe kRecipes[] = {
    {"abs", 1, 0, function_of<MathFunction::kAbs>},
    {"add", 2, 1, [](const Tile& t) { add_scaled(t, t.number(0)); }},
    {"add_scalar", 1, 2,
     [](const Tile& t) {
       t.lowering.tensor_scalar(t.out, t.in[0], AluOp::kAdd, t.number(0) * t.number(1));
     }},
    {"addcdiv", 3, 1, addcdiv},
    {"addcmul", 3, 1, addcmul},
    {"clamp_max", 1, 1, with_number<AluOp::kMinimum>},
    {"clamp_min", 1, 1, with_number<AluOp::kMaximum>},
    {"div", 2, 0, divide},
    {"div_scalar", 1, 1,
     [](const Tile& t) {
       t.lowering.tensor_scalar(t.out, t.in[0], AluOp::kMultiply,
                                static_cast<float>(1.0 / t.numbers[0]));
     }},
    {"eq", 2, 0, tensors<AluOp::kEqual>},
    {"eq_scalar", 1, 1, with_number<AluOp::kEqual>},
    {"exp", 1, 0, function_of<MathFunction::kExp>},
    {"ge", 2, 0, tensors<AluOp::kGreaterEqual>},
    {"ge_scalar", 1, 1, with_number<AluOp::kGreaterEqual>},
    {"gt", 2, 0, tensors<AluOp::kGreater>},
    {"gt_scalar", 1, 1, with_number<AluOp::kGreater>},
    {"le", 2, 0, tensors<AluOp::kLessEqual>},
    {"le_scalar", 1, 1, with_number<AluOp::kLessEqual>},
    {"lerp", 2, 1, lerp},
    {"log", 1, 0, function_of<MathFunction::kLog>},
    {"lt", 2, 0, tensors<AluOp::kLess>},
    {"lt_scalar", 1, 1, with_number<AluOp::kLess>},
    {"maximum", 2, 0, tensors<AluOp::kMaximum>},
    {"minimum", 2, 0, tensors<AluOp::kMinimum>},
    {"mul", 2, 0, tensors<AluOp::kMultiply>},
    {"mul_scalar", 1, 1, with_number<AluOp::kMultiply>},
    {"ne", 2, 0, tensors<AluOp::kNotEqual>},
    {"ne_scalar", 1, 1, with_number<AluOp::kNotEqual>},
    {"neg", 1, 0,
     [](const Tile& t) { t.lowering.tensor_scalar(t.out, t.in[0], AluOp::kMultiply, -1.0F); }},
    {"reciprocal", 1, 0, [](const Tile& t) { t.lowering.reciprocal(t.out, t.in[0]); }},
    {"relu", 1, 0, function_of<MathFunction::kRelu>},
    {"rsqrt", 1, 0, function_of<MathFunction::kRsqrt>},
    {"rsub_scalar", 1, 2,
     [](const Tile& t) {
       t.lowering.tensor_scalar(t.out, t.in[0], AluOp::kMultiply, -t.number(1), AluOp::kAdd,
                                t.number(0));
     }},
    {"sigmoid", 1, 0, function_of<MathFunction::kSigmoid>},
    {"silu", 1, 0, function_of<MathFunction::kSilu>},
    {"sqrt", 1, 0, function_of<MathFunction::kSqrt>},
    {"square", 1, 0, function_of<MathFunction::kSquare>},
    {"sub", 2, 1, [](const Tile& t) { add_scaled(t, -t.number(0)); }},
    {"sub_scalar", 1, 2,
     [](const Tile& t) {
       t.lowering.tensor_scalar(t.out, t.in[0], AluOp::kSubtract, t.number(0) * t.number(1));
     }},
    {"tanh", 1, 0, function_of<MathFunction::kTanh>},
    {"threshold_backward", 2, 1, threshold_backward},
    {"where", 3, 0, where},
};

const Recipe& recipe(std::string_view name, std::size_t inputs, std::size_t scalars) {
  const auto* found = std::find_if(std::begin(kRecipes), std::end(kRecipes),
                                   [&](const Recipe& recipe) { return recipe.name == name; });
  if (found == std::end(kRecipes) || found->inputs != inputs || found->scalars != scalars) {
    throw Error(ErrorKind::kNotModelled, "graph-operator",
                {.rule = "an operator is lowered by a recipe of its name and operands",
                 .here = fmt::format("{} with {} tensors and {} numbers", name, inputs, scalars)});
  }
  return *found;
}

}  // namespace

void lower_elementwise(Lowering& lowering, std::string_view name, const HbmView& out,
                       std::span<const HbmView> inputs, std::span<const double> scalars) {
  const Recipe& chosen = recipe(name, inputs.size(), scalars.size());
  std::vector<HbmView> operands = {out};
  for (const HbmView& input : inputs) {
    operands.push_back(input.broadcast_to(out.sizes));
  }
  for_each_tile(collapse(operands), operands.size(), lowering.limits(), [&](const NestTile& tile) {
    std::vector<Tensor> loaded;
    for (std::size_t i = 1; i < operands.size(); ++i) {
      loaded.push_back(expand(lowering.load(tile, i, operands[i]), tile, i));
    }
    const Tensor result = lowering.sbuf(Lowering::tile_dtype(out.dtype), tile.full_shape());
    chosen.lower({lowering, result, loaded, scalars});
    lowering.store(tile, 0, out, result);
  });
}

}  // namespace trena
