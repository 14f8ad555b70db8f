#include "trena/machine/value.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sstream>

#include "trena/error.h"

namespace trena {
namespace {

std::string text_of(const toml::node& node) {
  std::ostringstream stream;
  node.visit([&](const auto& concrete) { stream << concrete; });
  return stream.str();
}

std::string_view article_and_type(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::string:
      return "a text";
    case toml::node_type::integer:
      return "an integer";
    case toml::node_type::floating_point:
      return "a number";
    case toml::node_type::boolean:
      return "true or false";
    case toml::node_type::array:
      return "a list";
    case toml::node_type::table:
      return "a table";
    default:
      return "a date or time";
  }
}

std::string found(const toml::node& node) {
  return fmt::format("{}, {}", text_of(node), article_and_type(node));
}

std::string allowed_number(std::string_view what, const ValuePlace& place) {
  const std::string space = place.unit.empty() ? "" : " ";
  return fmt::format("{} from {} to {}{}{}", what, place.range.low, place.range.high, space,
                     place.unit);
}

template <class T>
void check_range(T value, const toml::node& node, std::string_view what, const ValuePlace& place) {
  const auto number = static_cast<double>(value);
  if (!(number >= place.range.low && number <= place.range.high)) {
    throw_bad_value(place, text_of(node), allowed_number(what, place));
  }
}

// A list, or a single element standing for a list of one (`--set ...row_tile_sizes=128`).
template <class Visit>
void for_each_element(const toml::node& node, const ValuePlace& place, Visit visit) {
  if (const toml::array* array = node.as_array()) {
    for (const toml::node& element : *array) {
      visit(element);
    }
    return;
  }
  if (node.is_table()) {
    throw_bad_value(place, found(node), "a list");
  }
  visit(node);
}

template <class T, class Add>
void read_list(const toml::node& node, const ValuePlace& place, Add add) {
  for_each_element(node, place, [&](const toml::node& element) {
    T value{};
    read_value(element, value, place);
    add(std::move(value));
  });
}

EngineKind read_engine(const toml::node& node, const ValuePlace& place) {
  std::string text;
  read_value(node, text, place);
  const std::optional<EngineKind> engine = engine_from_name(text);
  if (!engine) {
    throw_bad_value(place, found(node), "tensor, vector, scalar, gpsimd or sync");
  }
  return *engine;
}

DType read_dtype(const toml::node& node, const ValuePlace& place) {
  std::string text;
  read_value(node, text, place);
  const std::optional<DType> dtype = dtype_from_name(text);
  if (!dtype) {
    throw_bad_value(place, found(node), "an element type by NKI's name, such as \"bfloat16\"");
  }
  return *dtype;
}

template <class Table>
std::string write_table(const Table& table) {
  std::vector<std::string> entries;
  for (const auto& [name, list] : table) {
    entries.push_back(fmt::format("{}: {}", name, write_value(list)));
  }
  return fmt::format("{}", fmt::join(entries, "; "));
}

}  // namespace

void throw_bad_value(const ValuePlace& place, std::string_view here, std::string_view allowed) {
  throw Error(ErrorKind::kMachine, place.id,
              {.rule = "a figure has the type and range that the schema gives it",
               .here = fmt::format("{}: {} is {}", place.file, place.key, here),
               .limit = std::string(allowed),
               .device = {},
               .fix = {}});
}

void read_value(const toml::node& node, double& value, const ValuePlace& place) {
  const std::optional<double> number = node.is_number() ? node.value<double>() : std::nullopt;
  if (!number) {
    throw_bad_value(place, found(node), allowed_number("a number", place));
  }
  check_range(*number, node, "a number", place);
  value = *number;
}

void read_value(const toml::node& node, std::int64_t& value, const ValuePlace& place) {
  const std::optional<std::int64_t> number =
      node.is_integer() ? node.value<std::int64_t>() : std::nullopt;
  if (!number) {
    throw_bad_value(place, found(node), allowed_number("an integer", place));
  }
  check_range(*number, node, "an integer", place);
  value = *number;
}

void read_value(const toml::node& node, bool& value, const ValuePlace& place) {
  if (!node.is_boolean()) {
    throw_bad_value(place, found(node), "true or false");
  }
  value = node.as_boolean()->get();
}

void read_value(const toml::node& node, std::string& value, const ValuePlace& place) {
  if (!node.is_string()) {
    throw_bad_value(place, found(node), "a text in quotes");
  }
  value = node.as_string()->get();
}

void read_value(const toml::node& node, std::vector<std::string>& value, const ValuePlace& place) {
  value.clear();
  read_list<std::string>(node, place, [&](std::string text) { value.push_back(std::move(text)); });
}

void read_value(const toml::node& node, std::vector<std::int64_t>& value, const ValuePlace& place) {
  value.clear();
  read_list<std::int64_t>(node, place, [&](std::int64_t number) { value.push_back(number); });
}

void read_value(const toml::node& node, std::vector<EngineKind>& value, const ValuePlace& place) {
  value.clear();
  for_each_element(node, place, [&](const toml::node& element) {
    value.push_back(read_engine(element, place));
  });
}

void read_value(const toml::node& node, EngineSet& value, const ValuePlace& place) {
  value = {};
  for_each_element(node, place,
                   [&](const toml::node& element) { value.add(read_engine(element, place)); });
}

void read_value(const toml::node& node, DTypeSet& value, const ValuePlace& place) {
  value = {};
  for_each_element(node, place,
                   [&](const toml::node& element) { value.add(read_dtype(element, place)); });
}

std::string write_value(double value) { return fmt::format("{}", value); }
std::string write_value(std::int64_t value) { return fmt::format("{}", value); }
std::string write_value(bool value) { return value ? "true" : "false"; }
std::string write_value(const std::string& value) { return value; }

std::string write_value(const std::vector<std::string>& value) {
  return fmt::format("{}", fmt::join(value, ", "));
}

std::string write_value(const std::vector<std::int64_t>& value) {
  return fmt::format("{}", fmt::join(value, ", "));
}

std::string write_value(const std::vector<EngineKind>& value) {
  std::vector<std::string_view> names;
  for (const EngineKind engine : value) {
    names.push_back(name(engine));
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string write_value(const EngineSet& value) {
  std::vector<EngineKind> engines;
  for (int i = 0; i < kEngineCount; ++i) {
    if (value.contains(static_cast<EngineKind>(i))) {
      engines.push_back(static_cast<EngineKind>(i));
    }
  }
  return write_value(engines);
}

std::string write_value(const DTypeSet& value) {
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < kDTypeCount; ++i) {
    if (value.contains(static_cast<DType>(i))) {
      names.push_back(name(static_cast<DType>(i)));
    }
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string write_value(const StreamLaw& value) {
  return fmt::format("{} + {} N", value.offset_cycles, value.cycles_per_element);
}

std::string write_value(const NameTable& value) { return write_table(value); }
std::string write_value(const EngineTable& value) { return write_table(value); }

}  // namespace trena
