// The one description of what a hardware file holds: key, member, unit, range, generation, meaning.
// Loading, overriding, describing, hashing and the documentation all walk these rows.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "trena/machine/machine.h"

namespace trena {

using NameTable = std::map<std::string, std::vector<std::string>>;
using EngineTable = std::map<std::string, std::vector<EngineKind>, std::less<>>;

// How to reach the member; its type says how its value is written.
template <class Root>
using Member =
    std::variant<double& (*)(Root&), std::int64_t& (*)(Root&), bool& (*)(Root&),
                 std::string& (*)(Root&), std::vector<std::string>& (*)(Root&),
                 std::vector<std::int64_t>& (*)(Root&), EngineSet& (*)(Root&), DTypeSet& (*)(Root&),
                 StreamLaw& (*)(Root&), NameTable& (*)(Root&), EngineTable& (*)(Root&)>;

struct Range {
  double low;
  double high;
};

template <class Root>
struct Field {
  std::string_view key;  // dotted, equal to the C++ path of the member
  Member<Root> member;
  std::string_view unit;
  Range range;   // of every number in the value
  int since;     // required from this generation on, optional before; see kOptional
  bool is_name;  // a plain value: what the thing is called, not a figure with a source
  std::string_view meaning;
};

inline constexpr int kOptional = 1000;  // never required by itself; validate() may ask for it

// In the order of the files.
template <class Root>
const std::vector<Field<Root>>& schema();
template <>
const std::vector<Field<Machine>>& schema<Machine>();
template <>
const std::vector<Field<Server>>& schema<Server>();
template <>
const std::vector<Field<Fabric>>& schema<Fabric>();

}  // namespace trena
