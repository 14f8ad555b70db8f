#include <string>

#include "trena/machine/load.h"
#include "trena/machine/schema.h"
#include "trena/machine/value.h"

namespace trena {
namespace {

// Members are reached through non-const accessors; nothing here writes through them.
template <class Root, class Visit>
void visit_member(const Root& root, const Field<Root>& field, Visit visit) {
  std::visit([&](auto member) { visit(member(const_cast<Root&>(root))); }, field.member);
}

template <class Root>
bool is_present(const Root& root, const Field<Root>& field) {
  return field.is_name || root.sources.find(field.key) != root.sources.end();
}

template <class Root>
std::vector<Description> describe_rows(const Root& root) {
  std::vector<Description> rows;
  for (const Field<Root>& field : schema<Root>()) {
    if (!is_present(root, field)) {
      continue;
    }
    Description row;
    row.key = field.key;
    row.unit = field.unit;
    row.meaning = field.meaning;
    visit_member(root, field, [&](const auto& value) { row.value = write_value(value); });
    if (!field.is_name) {
      const FigureSource& source = root.sources.find(field.key)->second;
      row.evidence = to_string(source.evidence);
      row.source = source.source;
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

// FNV-1a, 64 bit: enough to tell edited files apart, the same on every host.
class Hash {
 public:
  void add(std::string_view text) {
    for (const char c : text) {
      state_ = (state_ ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
    }
    state_ = (state_ ^ 0xffu) * 0x100000001b3ull;  // ends the text: "ab","c" is not "a","bc"
  }
  std::uint64_t value() const { return state_; }

 private:
  std::uint64_t state_ = 0xcbf29ce484222325ull;
};

}  // namespace

std::vector<Description> describe(const Machine& machine) { return describe_rows(machine); }
std::vector<Description> describe(const Server& server) { return describe_rows(server); }
std::vector<Description> describe(const Fabric& fabric) { return describe_rows(fabric); }

std::uint64_t content_hash(const Machine& machine) {
  Hash hash;
  for (const Field<Machine>& field : schema<Machine>()) {
    if (is_present(machine, field)) {
      hash.add(field.key);
      visit_member(machine, field, [&](const auto& value) { hash.add(write_value(value)); });
    }
  }
  return hash.value();
}

}  // namespace trena
