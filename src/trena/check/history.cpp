#include "trena/check/history.h"

namespace trena {

Region region_in_memory(const Tensor& tensor) {
  Region region = region_of(tensor);
  const Buffer& buffer = *tensor.buffer();
  if (buffer.address) {
    region.offset_bytes +=
        buffer.address->partition * buffer.pitch_bytes + buffer.address->offset_bytes;
    region.row_first += buffer.address->partition;
    region.row_last += buffer.address->partition;
    region.byte_first += buffer.address->offset_bytes;
    region.byte_last += buffer.address->offset_bytes;
  }
  return region;
}

bool meet(const Region& a, const Region& b) {
  const bool apart = a.byte_last < b.byte_first || b.byte_last < a.byte_first ||
                     a.row_last < b.row_first || b.row_last < a.row_first;
  return !apart && overlaps(a, b);
}

}  // namespace trena
