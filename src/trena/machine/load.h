// Reading, overriding and describing machines. Errors are trena::Error of kind kMachine:
//   machine-invalid    a hardware file lacks a key, has an unknown one, or one of the wrong type or
//   range machine-unknown    no machine of that name machine-override   a KEY=VALUE that names no
//   key or no allowed value
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trena/machine/machine.h"

namespace trena {

Machine load_machine(const std::string& path);
// `name` stands for the file in messages and becomes Machine::origin.
Machine load_machine_text(std::string_view text, std::string_view name);
Server load_server(const std::string& path);
Fabric load_fabric(const std::string& path);

// "trn2", "trainium2", "gen3", "NeuronCore-v3", any alias of a file in `directory`, or the path of
// a .toml file. Case, '-', '_' and spaces do not matter. Throws machine-unknown and lists what
// there is.
std::string find_machine(std::string_view name, const std::string& directory);
std::string find_server(std::string_view name,
                        const std::string& directory);  // <directory>/servers
std::string find_fabric(std::string_view name,
                        const std::string& directory);  // <directory>/fabrics

// Applies "core.sbuf.partition_kib=256" (or a short alias: core.sbuf_kib) and checks the machine
// again. The figure's evidence becomes kGiven.
void set_value(Machine& machine, std::string_view assignment);

struct Description {
  std::string key;       // "core.tensor.clock_ghz"
  std::string value;     // "2.4"
  std::string unit;      // "GHz", "cycles", "" for counts and names
  std::string evidence;  // "documented"; empty for the names of the chip
  std::string source;
  std::string meaning;  // one sentence
};
// In the order of the file; figures absent on this generation are left out.
std::vector<Description> describe(const Machine& machine);
std::vector<Description> describe(const Server& server);
std::vector<Description> describe(const Fabric& fabric);

// Of every value (not of sources and comments), stable across hosts and runs.
std::uint64_t content_hash(const Machine& machine);

// Short names `set_value` accepts, with what they stand for.
struct KeyAlias {
  std::string_view alias;
  std::string_view key;
};
const std::vector<KeyAlias>& key_aliases();

}  // namespace trena
