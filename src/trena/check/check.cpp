#include "trena/check/check.h"

namespace trena {

void check_program(const Program& program) { check_address_overlap(program); }

}  // namespace trena
