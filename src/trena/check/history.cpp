#include "trena/check/history.h"

namespace trena {

bool meet(const Region& a, const Region& b) {
  const bool apart = a.byte_last < b.byte_first || b.byte_last < a.byte_first ||
                     a.row_last < b.row_first || b.row_last < a.row_first;
  return !apart && overlaps(a, b);
}

}  // namespace trena
