// What no single figure can say: the figures of one file fit each other. Throws machine-invalid.
#pragma once

#include <string_view>

#include "trena/machine/machine.h"

namespace trena {

// `where` is the file or the override to blame.
void validate(const Machine& machine, std::string_view where);
void validate(const Server& server, std::string_view where);
void validate(const Fabric& fabric, std::string_view where);

}  // namespace trena
