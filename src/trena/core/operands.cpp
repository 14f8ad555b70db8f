#include "trena/core/operands.h"

#include <algorithm>
#include <tuple>
#include <unordered_set>

namespace trena {
namespace {

// Mnemonics are static text: the address identifies them within one pass.
struct Site {
  std::uint64_t line;
  const char* name;
  bool operator==(const Site&) const = default;
};

struct SiteHash {
  std::size_t operator()(const Site& site) const {
    constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15u;  // spreads lines over the table
    return (site.line ^ reinterpret_cast<std::uintptr_t>(site.name)) * kOdd;
  }
};

std::uint64_t key(Position position) {
  return (static_cast<std::uint64_t>(position.file) << 32) |
         static_cast<std::uint32_t>(position.line);
}

std::string describe(const Instruction& instruction, AccessList& accesses) {
  accesses.clear();
  instruction.access(accesses);
  std::string results;
  std::string sources;
  for (const Access& access : accesses) {
    std::string& side = only_reads(access.kind) ? sources : results;
    side += (side.empty() ? "" : ", ") + access.tensor->describe();
  }
  return sources.empty() ? results : results + " <- " + sources;
}

auto order(Position position, std::string_view name) {
  return std::tuple(position.file, position.line, name);
}

}  // namespace

std::vector<OperandText> describe_operands(const Program& program) {
  std::vector<OperandText> texts;
  std::unordered_set<Site, SiteHash> seen;
  AccessList accesses;
  for (int core = 0; core < program.core_count(); ++core) {
    for (const auto& instruction : program.instructions(core)) {
      const std::string_view name = instruction->name();
      if (seen.insert({key(instruction->position), name.data()}).second) {
        texts.push_back({instruction->position, name, describe(*instruction, accesses)});
      }
    }
  }
  std::stable_sort(texts.begin(), texts.end(), [](const OperandText& a, const OperandText& b) {
    return order(a.position, a.name) < order(b.position, b.name);
  });
  return texts;
}

const OperandText* find_operands(const std::vector<OperandText>& operands, Position position,
                                 std::string_view name) {
  const auto found = std::lower_bound(operands.begin(), operands.end(), order(position, name),
                                      [](const OperandText& text, const auto& wanted) {
                                        return order(text.position, text.name) < wanted;
                                      });
  const bool same =
      found != operands.end() && order(found->position, found->name) == order(position, name);
  return same ? &*found : nullptr;
}

}  // namespace trena
