// What a tensor may be at all, before anybody asks what else lives beside it (that is placement/).
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "trena/machine/machine.h"
#include "trena/memory/tensor.h"

namespace trena {

// `tensor-shape`: too many dimensions, or one without elements.
void check_shape(Space space, std::span<const std::int64_t> shape);

// `hbm-capacity`, `sbuf-capacity` or `psum-capacity`: no tensor is larger than all of HBM, so that
// its sizes fit into 64 bits.
void check_size(const Machine& machine, Space space, DType dtype,
                std::span<const std::int64_t> shape);

// Of a tensor on the chip, which `what` describes. `partition-limit`, `sbuf-capacity` or
// `psum-capacity`, and for an address of its own `address-partition` and `psum-bank-start`.
void check_capacity(const Machine& machine, const Buffer& buffer, const std::string& what);

}  // namespace trena
