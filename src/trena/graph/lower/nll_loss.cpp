#include "trena/graph/lower/nll_loss.h"

#include <fmt/format.h>

#include <cstring>

namespace trena {
namespace {

// Classes are compared as float32 (hw.md §3.3): exact up to here.
constexpr std::int64_t kMostClasses = 1 << 24;

struct Problem {
  std::int64_t rows = 1;
  std::int64_t classes = 0;
  Dim row_stride;    // of the [N, C] tensor, per row
  Dim class_stride;  // and per class
};

Problem problem_of(const HbmView& matrix, const Lowering& lowering) {
  const std::size_t last = matrix.sizes.size() - 1;
  Problem problem;
  problem.rows = matrix.rank() == 2 ? matrix.sizes[0] : 1;
  problem.classes = matrix.sizes[last];
  problem.row_stride = {problem.rows, matrix.rank() == 2 ? matrix.strides_bytes[0] : 0};
  problem.class_stride = {problem.classes, matrix.strides_bytes[last]};
  const std::int64_t limit = std::min(kMostClasses, lowering.limits().row_elements);
  if (matrix.rank() > 2 || problem.classes > limit) {
    throw Error(ErrorKind::kNotModelled, "graph-row-size",
                {.rule = "a loss holds the classes of a row in each partition of SBUF",
                 .here = fmt::format("{} dimensions, {} classes", matrix.rank(), problem.classes),
                 .limit = fmt::format("2 dimensions, {} classes", limit)});
  }
  return problem;
}

std::int64_t label_stride(const HbmView& labels) {
  return labels.rank() == 0 ? 0 : labels.strides_bytes[0];
}

void check_labels(const HbmView& labels, const Problem& problem, std::int64_t ignore_index) {
  labels.storage.buffer()->storage->settle();
  for (std::int64_t row = 0; row < problem.rows; ++row) {
    std::int64_t label = 0;
    std::memcpy(&label, labels.tile(row * label_stride(labels), {}).data(), sizeof(label));
    if ((label < 0 || label >= problem.classes) && label != ignore_index) {
      throw Error(ErrorKind::kBounds, "label-range",
                  {.rule = "a class index lies inside the classes, or is ignore_index",
                   .here = fmt::format("label {} of row {}", label, row),
                   .limit = fmt::format("0 to {}, or {}", problem.classes - 1, ignore_index),
                   .device = "no class matches: the row would count as loss 0"});
    }
  }
}

class Loss {
 public:
  Loss(Lowering& lowering, const HbmView& matrix, const HbmView& labels, NllLossOptions options)
      : lowering_(lowering),
        matrix_(matrix),
        labels_(labels),
        options_(options),
        problem_(problem_of(matrix, lowering)) {
    check_labels(labels, problem_, options.ignore_index);
  }

  void forward(const HbmView& output, const HbmView& total_weight) {
    const std::int64_t step = lowering_.limits().partitions;
    const std::int64_t tiles = (problem_.rows + step - 1) / step;
    const std::int64_t partitions = std::min(step, problem_.rows);
    const Tensor losses = lowering_.sbuf(DType::kFloat32, {partitions, tiles});
    const Tensor weights = lowering_.sbuf(DType::kFloat32, {partitions, tiles});
    lowering_.memset(losses, 0.0F);
    lowering_.memset(weights, 0.0F);
    for (std::int64_t tile = 0; tile < tiles; ++tile) {
      const std::int64_t first = tile * step;
      const std::int64_t count = std::min(step, problem_.rows - first);
      const Tensor loss = columns_of(rows_of(losses, 0, count), tile, 1);
      const Tensor weight = columns_of(rows_of(weights, 0, count), tile, 1);
      row_losses(loss, weight, first, count);
      if (options_.reduction == LossReduction::kNone) {
        store_column(output, first, count, loss);
      }
    }
    finish(output, total_weight, losses, weights);
  }

  void backward(const HbmView& grad_output, const HbmView& total_weight) {
    const std::int64_t step = lowering_.limits().partitions;
    for (std::int64_t first = 0; first < problem_.rows; first += step) {
      const std::int64_t count = std::min(step, problem_.rows - first);
      const Tensor labels = load_labels(first, count);
      const Tensor factor = row_factor(grad_output, total_weight, labels, first, count);
      const Tensor result = lowering_.sbuf(matrix_.dtype, {count, problem_.classes});
      lowering_.tensor_scalar(result, class_numbers(count), AluOp::kEqual, labels, AluOp::kMultiply,
                              factor);
      lowering_.dma_copy(rows_in_hbm(first, count), result);
    }
  }

 private:
  Tensor rows_in_hbm(std::int64_t first, std::int64_t count) const {
    return matrix_.tile(
        first * problem_.row_stride.stride_bytes,
        std::array{Dim{count, problem_.row_stride.stride_bytes}, problem_.class_stride});
  }

  // int64 labels as float32, one per partition: the type of per-partition operands.
  Tensor load_labels(std::int64_t first, std::int64_t count) {
    const Tensor words = lowering_.load(labels_.low_words().tile(
        first * label_stride(labels_), std::array{Dim{count, label_stride(labels_)}, Dim{1, 0}}));
    Tensor labels = lowering_.sbuf(DType::kFloat32, {count, 1});
    lowering_.tensor_copy(labels, words);
    return labels;
  }

  // 0, 1, … classes-1 in every partition, made once.
  Tensor class_numbers(std::int64_t count) {
    if (!class_numbers_) {
      const std::int64_t partitions = std::min(lowering_.limits().partitions, problem_.rows);
      const Tensor numbers = lowering_.sbuf(DType::kInt32, {partitions, problem_.classes});
      lowering_.iota(numbers);
      class_numbers_ = lowering_.sbuf(DType::kFloat32, {partitions, problem_.classes});
      lowering_.tensor_copy(*class_numbers_, numbers);
    }
    return rows_of(*class_numbers_, 0, count);
  }

  // The log-probability of each row's label, with its sign turned, and whether the row counts.
  void row_losses(const Tensor& loss, const Tensor& weight, std::int64_t first,
                  std::int64_t count) {
    const Tensor labels = load_labels(first, count);
    const Tensor values = lowering_.load(rows_in_hbm(first, count));
    const Tensor chosen = lowering_.sbuf(DType::kUint8, {count, problem_.classes});
    lowering_.tensor_scalar(chosen, class_numbers(count), AluOp::kEqual, labels);
    // A select and not a product: the other classes may have log-probability -inf.
    const Tensor picked = lowering_.sbuf(matrix_.dtype, {count, problem_.classes});
    lowering_.memset(picked, 0.0F);
    lowering_.copy_predicated(picked, values, chosen);
    const Tensor sum = lowering_.sbuf(DType::kFloat32, {count, 1});
    lowering_.reduce_free(sum, AluOp::kAdd, picked);
    lowering_.tensor_scalar(weight, labels, AluOp::kNotEqual,
                            static_cast<float>(options_.ignore_index));
    lowering_.scalar_tensor_tensor(loss, sum, AluOp::kMultiply, -1.0F, AluOp::kMultiply, weight);
  }

  // -grad / total weight for rows that count, per partition.
  Tensor row_factor(const HbmView& grad_output, const HbmView& total_weight, const Tensor& labels,
                    std::int64_t first, std::int64_t count) {
    const bool per_row = options_.reduction == LossReduction::kNone;
    const std::int64_t stride =
        per_row && grad_output.rank() > 0 ? grad_output.strides_bytes[0] : 0;
    const Tensor grad =
        lowering_.load(grad_output.tile(first * stride, std::array{Dim{count, stride}, Dim{1, 0}}));
    Tensor factor = lowering_.sbuf(DType::kFloat32, {count, 1});
    if (options_.reduction == LossReduction::kMean) {
      const Tensor total =
          lowering_.load(total_weight.tile(0, std::array{Dim{count, 0}, Dim{1, 0}}));
      const Tensor inverse = lowering_.sbuf(DType::kFloat32, {count, 1});
      lowering_.reciprocal(inverse, total);
      lowering_.scalar_tensor_tensor(factor, grad, AluOp::kMultiply, -1.0F, AluOp::kMultiply,
                                     inverse);
    } else {
      lowering_.tensor_scalar(factor, grad, AluOp::kMultiply, -1.0F);
    }
    if (options_.ignore_index >= 0 && options_.ignore_index < problem_.classes) {
      const Tensor counts = lowering_.sbuf(DType::kFloat32, {count, 1});
      lowering_.tensor_scalar(counts, labels, AluOp::kNotEqual,
                              static_cast<float>(options_.ignore_index));
      lowering_.tensor_tensor(factor, factor, AluOp::kMultiply, counts);
    }
    return factor;
  }

  void store_column(const HbmView& output, std::int64_t first, std::int64_t count,
                    const Tensor& value) {
    const std::int64_t stride = output.rank() == 0 ? 0 : output.strides_bytes[0];
    const Tensor result = lowering_.sbuf(output.dtype, {count, 1});
    lowering_.tensor_copy(result, value);
    lowering_.dma_copy(output.tile(first * stride, std::array{Dim{count, stride}, Dim{1, 0}}),
                       result);
  }

  void finish(const HbmView& output, const HbmView& total_weight, const Tensor& losses,
              const Tensor& weights) {
    const Tensor weight = lowering_.reduce_tile(AluOp::kAdd, weights);
    store_column(total_weight, 0, 1, weight);
    if (options_.reduction == LossReduction::kNone) {
      return;
    }
    Tensor loss = lowering_.reduce_tile(AluOp::kAdd, losses);
    if (options_.reduction == LossReduction::kMean) {
      const Tensor inverse = lowering_.sbuf(DType::kFloat32, {1, 1});
      lowering_.reciprocal(inverse, weight);
      lowering_.tensor_tensor(loss, loss, AluOp::kMultiply, inverse);
    }
    store_column(output, 0, 1, loss);
  }

  Lowering& lowering_;
  const HbmView& matrix_;
  const HbmView& labels_;
  NllLossOptions options_;
  Problem problem_;
  std::optional<Tensor> class_numbers_;
};

}  // namespace

void lower_nll_loss(Lowering& lowering, const HbmView& output, const HbmView& total_weight,
                    const HbmView& log_probabilities, const HbmView& labels,
                    NllLossOptions options) {
  Loss(lowering, log_probabilities, labels, options).forward(output, total_weight);
}

void lower_nll_loss_backward(Lowering& lowering, const HbmView& grad_input,
                             const HbmView& grad_output, const HbmView& labels,
                             const HbmView& total_weight, NllLossOptions options) {
  Loss(lowering, grad_input, labels, options).backward(grad_output, total_weight);
}

}  // namespace trena
