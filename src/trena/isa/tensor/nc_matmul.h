// nc_matmul: dst[stationary column, moving column] (+)= sum over partitions of stationary · moving
// (hw.md §2.2, §3.2; nki.md §5.1-2, §5.2-12).
#pragma once

#include <array>

#include "trena/isa/rules.h"

namespace trena {

enum class MatmulPerfMode : std::uint8_t { kNone, kDoubleRow };

struct MatmulOptions {
  bool stationary_onezero = false;
  bool moving_onezero = false;
  bool transpose = false;
  std::optional<bool> accumulate;  // none: per location, the first overwrites
  std::optional<std::array<std::int64_t, 2>> tile_position;  // (row, column)
  std::optional<std::array<std::int64_t, 2>> tile_size;
  MatmulPerfMode perf_mode = MatmulPerfMode::kNone;
};

class NcMatmul final : public Instruction {
 public:
  NcMatmul(Tensor dst, Tensor stationary, Tensor moving, MatmulOptions options)
      : dst_(std::move(dst)),
        stationary_(std::move(stationary)),
        moving_(std::move(moving)),
        options_(options) {}

  std::string_view name() const override { return "nc_matmul"; }
  EngineKind engine(const Machine&) const override { return EngineKind::kTensor; }
  void check(const Machine& machine) const override;
  void access(AccessList& list) const override;
  void execute(CoreState& core) const override;
  Cost cost(const Machine& machine) const override;
  bool adds_always() const override { return options_.accumulate.value_or(false); }

 private:
  bool double_row() const { return options_.perf_mode == MatmulPerfMode::kDoubleRow; }
  std::int64_t rows_per_partition() const { return double_row() ? 2 : 1; }
  std::int64_t stationary_columns() const { return stationary_.free_size() / rows_per_partition(); }
  std::int64_t moving_columns() const { return moving_.free_size() / rows_per_partition(); }
  void check_dtypes(const Machine& machine) const;
  void check_double_row(const Machine& machine) const;
  void move_bits() const;
  void multiply(bool accumulate, float* out, std::int64_t out_row_floats) const;

  Tensor dst_;
  Tensor stationary_;
  Tensor moving_;
  MatmulOptions options_;
};

}  // namespace trena
