#include <fmt/format.h>
#include <fmt/ranges.h>
#include <toml++/toml.h>

#include <algorithm>
#include <filesystem>

#include "trena/error.h"
#include "trena/machine/load.h"
#include "trena/machine/suggest.h"

namespace trena {
namespace {

namespace fs = std::filesystem;

// "NeuronCore-v3", "neuroncore v3" and "NEURONCORE_V3" are one name.
std::string plain(std::string_view name) {
  std::string result;
  for (const char c : name) {
    if (c >= 'A' && c <= 'Z') {
      result += static_cast<char>(c - 'A' + 'a');
    } else if (c != '-' && c != '_' && c != ' ') {
      result += c;
    }
  }
  return result;
}

void add_names(const toml::table& table, std::vector<std::string>& names) {
  for (const char* key : {"name", "product"}) {
    if (const auto text = table[key].value<std::string>()) {
      names.push_back(*text);
    }
  }
  if (const toml::array* aliases = table["aliases"].as_array()) {
    for (const toml::node& alias : *aliases) {
      names.push_back(alias.value_or(std::string()));
    }
  }
}

// What a file answers to. A file that cannot be parsed answers to its own name only: loading it
// then tells what is wrong, and it does not hide the others.
std::vector<std::string> names_of(const fs::path& path) {
  std::vector<std::string> names = {path.stem().string()};
  try {
    const toml::table document = toml::parse_file(path.string());
    add_names(document, names);
    if (const toml::table* chip = document["chip"].as_table()) {
      add_names(*chip, names);
    }
  } catch (const toml::parse_error&) {
    return names;
  }
  return names;
}

std::vector<fs::path> hardware_files(const std::string& directory) {
  std::vector<fs::path> paths;
  std::error_code ignored;  // no directory: no files, and the caller says what it looked for
  for (const auto& entry : fs::directory_iterator(directory, ignored)) {
    if (entry.path().extension() == ".toml") {
      paths.push_back(entry.path());
    }
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

[[noreturn]] void throw_unknown(std::string_view kind, std::string_view name,
                                const std::string& directory,
                                const std::vector<std::string>& known) {
  const std::string guess = nearest(name, known);
  throw Error(ErrorKind::kMachine, "machine-unknown",
              {.rule = fmt::format("a {} is named by a file of {} or by the path of a .toml file",
                                   kind, directory),
               .here = fmt::format("there is no {} \"{}\"", kind, name),
               .limit = fmt::format("{}", fmt::join(known, ", ")),
               .device = {},
               .fix = guess.empty() ? "" : fmt::format("did you mean {}?", guess)});
}

std::string find_file(std::string_view kind, std::string_view name, const std::string& directory) {
  const bool is_path = name.size() > 5 && name.substr(name.size() - 5) == ".toml";
  if (is_path && fs::exists(fs::path(name))) {
    return std::string(name);
  }
  std::vector<std::string> known;
  for (const fs::path& path : hardware_files(directory)) {
    for (const std::string& candidate : names_of(path)) {
      if (plain(candidate) == plain(name)) {
        return path.string();
      }
      known.push_back(candidate);
    }
  }
  throw_unknown(kind, name, directory, known);
}

}  // namespace

std::string find_machine(std::string_view name, const std::string& directory) {
  return find_file("machine", name, directory);
}

std::string find_server(std::string_view name, const std::string& directory) {
  return find_file("server", name, (fs::path(directory) / "servers").string());
}

std::string find_fabric(std::string_view name, const std::string& directory) {
  return find_file("fabric", name, (fs::path(directory) / "fabrics").string());
}

}  // namespace trena
