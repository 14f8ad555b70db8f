// Mistakes that only the whole program shows. One file per rule; each throws trena::Error with both
// lines.
#pragma once

#include "trena/core/program.h"

namespace trena {

// All rules, in the order of their files.
void check_program(const Program& program);

// `address-overlap`: a tensor with a manual address is read after another tensor was written over
// its bytes. The kernel's addresses let the two live at once; the device would read the other
// tensor's values (nki.md §5.1-4).
void check_address_overlap(const Program& program);

}  // namespace trena
