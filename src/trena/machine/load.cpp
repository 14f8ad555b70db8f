#include "trena/machine/load.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <toml++/toml.h>

#include <array>

#include "trena/error.h"
#include "trena/machine/schema.h"
#include "trena/machine/suggest.h"
#include "trena/machine/validate.h"
#include "trena/machine/value.h"

namespace trena {
namespace {

constexpr std::string_view kInvalid = "machine-invalid";
constexpr std::string_view kOverride = "machine-override";
constexpr std::string_view kFigureForm =
    R"({ value = ..., source = "where from", evidence = "documented" })";
constexpr std::string_view kLawForm =
    R"({ offset_cycles = ..., cycles_per_element = ..., source = "where from", evidence = "measured" })";
constexpr std::string_view kEvidences = "documented, measured, estimate or extrapolated";

[[noreturn]] void fail(std::string_view id, std::string rule, std::string here, std::string limit,
                       std::string fix = {}) {
  throw Error(ErrorKind::kMachine, id,
              {.rule = std::move(rule),
               .here = std::move(here),
               .limit = std::move(limit),
               .device = {},
               .fix = std::move(fix)});
}

std::string did_you_mean(std::string_view wanted, const std::vector<std::string>& candidates) {
  const std::string guess = nearest(wanted, candidates);
  return guess.empty() ? "" : fmt::format("did you mean {}?", guess);
}

template <class Root>
std::vector<std::string> all_keys() {
  std::vector<std::string> keys;
  for (const Field<Root>& field : schema<Root>()) {
    keys.emplace_back(field.key);
  }
  return keys;
}

toml::table parse_toml(std::string_view text, std::string_view name) {
  try {
    return toml::parse(text, name);
  } catch (const toml::parse_error& error) {
    fail(kInvalid, "a hardware file is TOML",
         fmt::format("{}:{}: {}", name, error.source().begin.line, error.description()), "");
  }
}

toml::table parse_file(const std::string& path) {
  try {
    return toml::parse_file(path);
  } catch (const toml::parse_error& error) {
    const auto line = error.source().begin.line;
    fail(kInvalid, "a hardware file is readable TOML",
         line > 0 ? fmt::format("{}:{}: {}", path, line, error.description())
                  : fmt::format("{}: {}", path, error.description()),
         "");
  }
}

// Reads one document into one root, row by row of its schema.
template <class Root>
class Reader {
 public:
  Reader(const toml::table& document, std::string_view file, Root& root)
      : document_(document), file_(file), root_(root) {}

  void read() {
    refuse_unknown_keys(document_, "");
    for (const Field<Root>& field : schema<Root>()) {
      read_field(field);
    }
  }

 private:
  std::string at(const toml::node& node) const {
    const auto line = node.source().begin.line;
    return line > 0 ? fmt::format("{}:{}", file_, line) : file_;
  }

  ValuePlace place(const Field<Root>& field, const toml::node& node) const {
    return {at(node), kInvalid, std::string(field.key), field.unit, field.range};
  }

  void refuse_unknown_keys(const toml::table& table, const std::string& prefix) const {
    for (const auto& [key, node] : table) {
      const std::string path = prefix + std::string(key.str());
      if (is_field(path)) {
        continue;
      }
      if (is_section(path) && node.is_table()) {
        refuse_unknown_keys(*node.as_table(), path + ".");
        continue;
      }
      fail(kInvalid, "a hardware file has no other keys than those of the schema",
           fmt::format("{}: {} is not a key", at(node), path),
           "the keys of the files that come with Trena, see docs/describe-a-chip.md",
           did_you_mean(path, all_keys<Root>()));
    }
  }

  static bool is_field(std::string_view path) {
    for (const Field<Root>& field : schema<Root>()) {
      if (field.key == path) {
        return true;
      }
    }
    return false;
  }

  static bool is_section(const std::string& path) {
    const std::string start = path + ".";
    for (const Field<Root>& field : schema<Root>()) {
      if (field.key.substr(0, start.size()) == start) {
        return true;
      }
    }
    return false;
  }

  std::int64_t generation() const {
    if constexpr (std::is_same_v<Root, Machine>) {
      return root_.chip.generation;
    } else {
      return 0;
    }
  }

  void read_field(const Field<Root>& field) {
    const toml::node* node = document_.at_path(field.key).node();
    if (node == nullptr) {
      if (field.since <= generation()) {
        fail(kInvalid, "a hardware file has every figure of its generation",
             fmt::format("{}: {} is missing ({})", file_, field.key, field.meaning),
             fmt::format("{} = {}", field.key, form(field)));
      }
      return;
    }
    std::visit([&](auto member) { read_member(field, *node, member(root_)); }, field.member);
  }

  static std::string_view form(const Field<Root>& field) {
    if (field.is_name) {
      return "a plain value";
    }
    return std::holds_alternative<StreamLaw& (*)(Root&)>(field.member) ? kLawForm : kFigureForm;
  }

  const toml::table& figure_table(const Field<Root>& field, const toml::node& node) const {
    if (!node.is_table()) {
      fail(kInvalid, "a figure says where it comes from and how sure it is",
           fmt::format("{}: {} is a bare value", at(node), field.key),
           fmt::format("{} = {}", field.key, form(field)));
    }
    return *node.as_table();
  }

  template <class T>
  void read_member(const Field<Root>& field, const toml::node& node, T& value) {
    if constexpr (std::is_same_v<T, NameTable> || std::is_same_v<T, EngineTable>) {
      const toml::table& table = figure_table(field, node);
      for (const auto& [key, entry] : table) {
        if (key.str() != "source" && key.str() != "evidence") {
          read_value(entry, value[std::string(key.str())], place(field, entry));
        }
      }
      read_source(field, table);
    } else if constexpr (std::is_same_v<T, StreamLaw>) {
      const toml::table& table = figure_table(field, node);
      require_only(field, table, {"offset_cycles", "cycles_per_element", "source", "evidence"});
      read_value(*table.get("offset_cycles"), value.offset_cycles, place(field, node));
      read_value(*table.get("cycles_per_element"), value.cycles_per_element, place(field, node));
      value.evidence = read_source(field, table).evidence;
    } else if (field.is_name) {
      if constexpr (!std::is_same_v<T, StreamLaw>) {
        read_value(node, value, place(field, node));
      }
    } else {
      const toml::table& table = figure_table(field, node);
      require_only(field, table, {"value", "source", "evidence"});
      read_value(*table.get("value"), value, place(field, node));
      read_source(field, table);
    }
  }

  // All of `names` are there, and nothing else.
  void require_only(const Field<Root>& field, const toml::table& table,
                    const std::vector<std::string>& names) const {
    for (const auto& [key, node] : table) {
      if (std::find(names.begin(), names.end(), key.str()) == names.end()) {
        fail(kInvalid, "a figure has no other keys than those of its form",
             fmt::format("{}: {}.{} is not a key", at(node), field.key, key.str()),
             std::string(form(field)), did_you_mean(key.str(), names));
      }
    }
    for (const std::string& name : names) {
      if (!table.contains(name)) {
        fail(kInvalid, "a figure says where it comes from and how sure it is",
             fmt::format("{}: {} has no {}", at(table), field.key, name), std::string(form(field)));
      }
    }
  }

  const FigureSource& read_source(const Field<Root>& field, const toml::table& table) {
    FigureSource source;
    const toml::node* text = table.get("source");
    const toml::node* evidence = table.get("evidence");
    if (text == nullptr || evidence == nullptr || !text->is_string() || !evidence->is_string() ||
        text->as_string()->get().empty()) {
      fail(kInvalid, "a figure says where it comes from and how sure it is",
           fmt::format("{}: {} lacks the text of `source` or `evidence`", at(table), field.key),
           fmt::format("source = \"where from\", evidence = one of {}", kEvidences));
    }
    source.source = text->as_string()->get();
    source.evidence = evidence_from_name(evidence->as_string()->get(), field, table);
    return root_.sources[std::string(field.key)] = std::move(source);
  }

  Evidence evidence_from_name(const std::string& name, const Field<Root>& field,
                              const toml::table& table) const {
    for (const Evidence evidence : {Evidence::kDocumented, Evidence::kMeasured, Evidence::kEstimate,
                                    Evidence::kExtrapolated}) {
      if (name == to_string(evidence)) {
        return evidence;
      }
    }
    fail(kInvalid, "a figure says how sure it is",
         fmt::format("{}: {} has evidence \"{}\"", at(table), field.key, name),
         std::string(kEvidences));
  }

  const toml::table& document_;
  std::string file_;
  Root& root_;
};

template <class Root>
Root load(const toml::table& document, std::string_view name) {
  Root root;
  root.origin = name;
  Reader<Root>(document, name, root).read();
  validate(root, name);
  return root;
}

// A value as people type it: TOML, or else a bare word that stands for a text.
toml::table parse_assigned(std::string_view text) {
  try {
    return toml::parse(fmt::format("value = {}", text));
  } catch (const toml::parse_error&) {
    toml::table table;
    table.insert("value", std::string(text));
    return table;
  }
}

std::string_view without_alias(std::string_view key) {
  for (const KeyAlias& alias : key_aliases()) {
    if (alias.alias == key) {
      return alias.key;
    }
  }
  return key;
}

// The row `key` belongs to, and what of it is meant: "" for the whole value, else the part of a law
// or table.
struct Target {
  const Field<Machine>* field;
  std::string part;
};

Target find_target(std::string_view key, std::string_view assignment) {
  for (const Field<Machine>& field : schema<Machine>()) {
    if (field.key == key) {
      return {&field, ""};
    }
    const bool inside = key.size() > field.key.size() &&
                        key.substr(0, field.key.size()) == field.key &&
                        key[field.key.size()] == '.';
    const bool has_parts = std::holds_alternative<StreamLaw& (*)(Machine&)>(field.member) ||
                           std::holds_alternative<NameTable& (*)(Machine&)>(field.member) ||
                           std::holds_alternative<EngineTable& (*)(Machine&)>(field.member);
    if (inside && has_parts) {
      return {&field, std::string(key.substr(field.key.size() + 1))};
    }
  }
  std::vector<std::string> candidates = all_keys<Machine>();
  for (const KeyAlias& alias : key_aliases()) {
    candidates.emplace_back(alias.alias);
  }
  fail(kOverride, "an override names a key of the machine",
       fmt::format("{}: {} is not a key", assignment, key), "the keys that `trena machine` lists",
       did_you_mean(key, candidates));
}

template <class T>
void assign(const toml::node& node, T& value, const Target& target, ValuePlace place) {
  if constexpr (std::is_same_v<T, StreamLaw>) {
    if (target.part == "offset_cycles") {
      read_value(node, value.offset_cycles, place);
    } else if (target.part == "cycles_per_element") {
      read_value(node, value.cycles_per_element, place);
    } else {
      throw_bad_value(
          place, target.part.empty() ? "a law" : target.part,
          fmt::format("{0}.offset_cycles or {0}.cycles_per_element", target.field->key));
    }
    value.evidence = Evidence::kGiven;
  } else if constexpr (std::is_same_v<T, NameTable> || std::is_same_v<T, EngineTable>) {
    if (target.part.empty()) {
      throw_bad_value(place, "a table", fmt::format("{}.<name> = a list", target.field->key));
    }
    read_value(node, value[target.part], place);
  } else {
    read_value(node, value, place);
  }
}

// The short name asks for more memory, whatever the addresses: partitions move apart as far as they
// must. The full key changes one figure and nothing else.
void follow_short_name(Machine& machine, std::string_view name, std::string_view assignment) {
  Sbuf& sbuf = machine.core.sbuf;
  const double wanted = sbuf.partition_kib * 1024;
  if (name != "core.sbuf_kib" || wanted <= static_cast<double>(sbuf.partition_stride_bytes)) {
    return;
  }
  while (static_cast<double>(sbuf.partition_stride_bytes) < wanted) {
    sbuf.partition_stride_bytes *= 2;
  }
  machine.sources["core.sbuf.partition_stride_bytes"] = {
      Evidence::kGiven, fmt::format("follows from: {}", assignment)};
}

}  // namespace

Machine load_machine(const std::string& path) { return load<Machine>(parse_file(path), path); }

Machine load_machine_text(std::string_view text, std::string_view name) {
  return load<Machine>(parse_toml(text, name), name);
}

Server load_server(const std::string& path) { return load<Server>(parse_file(path), path); }
Fabric load_fabric(const std::string& path) { return load<Fabric>(parse_file(path), path); }

void set_value(Machine& machine, std::string_view assignment) {
  const std::size_t equals = assignment.find('=');
  if (equals == std::string_view::npos || equals == 0 || equals + 1 == assignment.size()) {
    fail(kOverride, "an override is KEY=VALUE", std::string(assignment),
         "for example core.sbuf.partition_kib=256");
  }
  const std::string key(without_alias(assignment.substr(0, equals)));
  const Target target = find_target(key, assignment);
  const toml::table parsed = parse_assigned(assignment.substr(equals + 1));
  const ValuePlace place{std::string(assignment), kOverride, key, target.field->unit,
                         target.field->range};

  Machine changed = machine;  // a refused override leaves the machine as it was
  std::visit([&](auto member) { assign(*parsed.get("value"), member(changed), target, place); },
             target.field->member);
  if (!target.field->is_name) {
    changed.sources[std::string(target.field->key)] = {Evidence::kGiven,
                                                       fmt::format("set: {}", assignment)};
  }
  follow_short_name(changed, assignment.substr(0, equals), assignment);
  changed.overrides.emplace_back(assignment);
  validate(changed, assignment);
  machine = std::move(changed);
}

const std::vector<KeyAlias>& key_aliases() {
  static const std::vector<KeyAlias> aliases = {
      {"core.sbuf_kib", "core.sbuf.partition_kib"},
      {"core.psum_banks", "core.psum.banks"},
      {"core.pe_ghz", "core.tensor.clock_ghz"},
      {"core.tensor_ghz", "core.tensor.clock_ghz"},
      {"core.dve_ghz", "core.vector.clock_ghz"},
      {"core.vector_ghz", "core.vector.clock_ghz"},
      {"core.act_ghz", "core.scalar.clock_ghz"},
      {"core.scalar_ghz", "core.scalar.clock_ghz"},
      {"core.pool_ghz", "core.gpsimd.clock_ghz"},
      {"core.gpsimd_ghz", "core.gpsimd.clock_ghz"},
      {"core.hbm_gbs", "hbm.core_gbs"},
      {"core.dma_engines", "core.dma.engines"},
      {"throttle", "core.tensor.throttle.ramp"},
      {"launch_ns", "launch.kernel_fixed_ns"},
  };
  return aliases;
}

}  // namespace trena
