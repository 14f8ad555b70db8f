// How DMA engines move elements: both tensors in element order, whatever their shapes (nki.md
// §6.4); equal types bit by bit, others through float32 (hw.md §3.3).
#pragma once

#include <cstdint>
#include <vector>

#include "trena/memory/tensor.h"

namespace trena {

// A view without its buffer: where the elements lie, outermost dimension first.
struct Layout {
  DType dtype = DType::kFloat32;
  std::byte* data = nullptr;
  std::vector<Dim> dims;

  std::int64_t element_count() const;
};

// Of an ordinary view (the row index of an indirect one is ignored).
Layout layout_of(const Tensor& tensor);

// dst = src in element order. Equal element counts; the two may overlap: all is read before
// anything is written.
void transfer(const Layout& dst, const Layout& src);

// The same for written bits: an element of dst is written afterwards if all bytes of the element of
// src are (nki.md §6.4: HBM to HBM copies carry "unwritten" along).
void carry_written(const Tensor& dst, const Tensor& src);

// The contiguous runs of a tensor as descriptors see them: on the chip every partition ends a run,
// as does every row of an indirect view.
std::int64_t run_elements(const Tensor& tensor);

// How many pieces remain when both sides' runs are laid over each other: one descriptor moves bytes
// that are contiguous on both sides.
std::int64_t common_runs(const Tensor& dst, const Tensor& src);

}  // namespace trena
