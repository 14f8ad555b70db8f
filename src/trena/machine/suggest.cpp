#include "trena/machine/suggest.h"

#include <algorithm>
#include <numeric>

namespace trena {
namespace {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row[b.size()];
}

std::string_view last_part(std::string_view key) { return key.substr(key.rfind('.') + 1); }

}  // namespace

std::string nearest(std::string_view wanted, const std::vector<std::string>& candidates) {
  std::string best;
  std::size_t best_distance = wanted.size() / 3 + 1;  // further than this is another word
  for (const std::string& candidate : candidates) {
    // A key in the wrong section is as good a guess as one with a wrong letter.
    const bool moved = last_part(candidate) == last_part(wanted) && candidate != wanted;
    const std::size_t distance = moved ? 1 : edit_distance(wanted, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

}  // namespace trena
