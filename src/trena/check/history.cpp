#include "trena/check/history.h"

namespace trena {

bool meet(const Region& a, const Region& b) { return a.box_meets(b) && overlaps(a, b); }

}  // namespace trena
