// Collects what the rules find: one finding per rule and pair of lines, however often the two met.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "trena/core/finding.h"
#include "trena/core/program.h"

namespace trena {

class Findings {
 public:
  explicit Findings(const Program& program) : program_(program) {}

  // Were the two lines reported already? Then they are counted once more.
  bool known(std::string_view id, Position where, Position other);

  void add(Finding finding, Position where, Position other);
  void add(Finding finding, Position where) { add(std::move(finding), where, {}); }

  const Program& program() const { return program_; }
  // "kernel.py:12", for texts.
  std::string place(Position position) const;

  // Sorted by file and line.
  std::vector<Finding> take();

 private:
  using Key = std::tuple<std::string, std::uint32_t, std::int32_t, std::uint32_t, std::int32_t>;

  const Program& program_;
  std::vector<Finding> found_;
  std::map<Key, std::size_t> index_;
};

// "`name`", or "another tensor".
std::string quoted(const Buffer& buffer);

}  // namespace trena
