// A mistake that was found without stopping at it: what an Error says, and the other line of the
// user's program where two of them meet.
#pragma once

#include <cstdint>
#include <string>

#include "trena/error.h"

namespace trena {

enum class Severity : std::uint8_t {
  kError,    // the device would refuse it, or its result is undefined: a run ends with it
  kWarning,  // Trena's values are those of the program's order; the device need not keep that order
};

struct Finding {
  ErrorKind kind = ErrorKind::kHazard;
  Severity severity = Severity::kWarning;
  std::string id;
  ErrorText text;
  SourceLine where;  // of the instruction that must not happen now
  SourceLine other;  // of the one that it collides with; line 0: none
  int core = 0;
  std::int64_t count = 1;  // how often these two lines met
};

}  // namespace trena
