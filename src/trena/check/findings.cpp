#include "trena/check/findings.h"

#include <fmt/format.h>

#include <algorithm>

namespace trena {

bool Findings::known(std::string_view id, Position where, Position other) {
  const auto found = index_.find({std::string(id), where.file, where.line, other.file, other.line});
  if (found == index_.end()) {
    return false;
  }
  ++found_[found->second].count;
  return true;
}

void Findings::add(Finding finding, Position where, Position other) {
  if (known(finding.id, where, other)) {
    return;
  }
  index_.emplace(Key{finding.id, where.file, where.line, other.file, other.line}, found_.size());
  finding.where = program_.source_line(where);
  if (other.line > 0) {
    finding.other = program_.source_line(other);
  }
  found_.push_back(std::move(finding));
}

std::string Findings::place(Position position) const {
  const SourceLine line = program_.source_line(position);
  return fmt::format("{}:{}", line.file.substr(line.file.rfind('/') + 1), line.line);
}

std::vector<Finding> Findings::take() {
  std::stable_sort(found_.begin(), found_.end(), [](const Finding& a, const Finding& b) {
    return std::tie(a.where.file, a.where.line, a.id) < std::tie(b.where.file, b.where.line, b.id);
  });
  index_.clear();
  return std::move(found_);
}

std::string quoted(const Buffer& buffer) {
  return buffer.name.empty() ? "another tensor" : fmt::format("`{}`", buffer.name);
}

}  // namespace trena
