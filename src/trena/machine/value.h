// Reading and writing one value of a hardware file: an overload per member type of the schema.
#pragma once

#include <toml++/toml.h>

#include <string>
#include <string_view>

#include "trena/machine/schema.h"

namespace trena {

// Where a value stands, for messages.
struct ValuePlace {
  std::string file;     // "trainium2.toml:41", or the text of an override
  std::string_view id;  // "machine-invalid" or "machine-override"
  std::string key;      // "core.tensor.clock_ghz"
  std::string_view unit;
  Range range;
};

// Throws Error{kMachine} with the place, what stands there and what is allowed.
[[noreturn]] void throw_bad_value(const ValuePlace& place, std::string_view here,
                                  std::string_view allowed);

void read_value(const toml::node& node, double& value, const ValuePlace& place);
void read_value(const toml::node& node, std::int64_t& value, const ValuePlace& place);
void read_value(const toml::node& node, bool& value, const ValuePlace& place);
void read_value(const toml::node& node, std::string& value, const ValuePlace& place);
void read_value(const toml::node& node, std::vector<std::string>& value, const ValuePlace& place);
void read_value(const toml::node& node, std::vector<std::int64_t>& value, const ValuePlace& place);
void read_value(const toml::node& node, std::vector<EngineKind>& value, const ValuePlace& place);
void read_value(const toml::node& node, EngineSet& value, const ValuePlace& place);
void read_value(const toml::node& node, DTypeSet& value, const ValuePlace& place);

std::string write_value(double value);
std::string write_value(std::int64_t value);
std::string write_value(bool value);
std::string write_value(const std::string& value);
std::string write_value(const std::vector<std::string>& value);
std::string write_value(const std::vector<std::int64_t>& value);
std::string write_value(const std::vector<EngineKind>& value);
std::string write_value(const EngineSet& value);
std::string write_value(const DTypeSet& value);
std::string write_value(const StreamLaw& value);
std::string write_value(const NameTable& value);
std::string write_value(const EngineTable& value);

}  // namespace trena
