// The tiles of one core on their way through the chip: they move in, are used, are stored and
// reloaded, and move out after their last use; the Stream is written meanwhile. Who moves in where,
// and who has to go, is decided elsewhere.
#pragma once

#include <cstdint>
#include <vector>

#include "trena/core/placement/memories.h"
#include "trena/core/placement/stream_writer.h"
#include "trena/core/placement/tenant.h"

namespace trena {

class Residents {
 public:
  Residents(const Lifetimes& lifetimes, const ManualAddresses& manual, const Machine& machine);

  const Lifetimes& lifetimes() const { return lifetimes_; }
  std::vector<Tenant>& tenants() { return tenants_; }  // by tile
  Tenant& tenant(std::int32_t tile) { return tenants_[static_cast<std::size_t>(tile)]; }
  const Tenant& tenant(std::int32_t tile) const { return tenants_[static_cast<std::size_t>(tile)]; }
  std::int32_t tile_of(Stay stay) const { return tile_of_stay_[stay]; }
  Memories& memories() { return memories_; }
  const Memories& memories() const { return memories_; }

  // Into a free place, for its use by `worker` at `step`. False: there is none.
  bool move_in(std::int32_t tile, std::size_t step, int worker, Search search);
  void move_in_at(std::int32_t tile, std::int64_t start);
  // `step`, `worker`: of its last use here.
  void move_out(Tenant& tenant, std::size_t step, int worker);

  // The instruction at `step`, in its turn: whose life ends with it moves out.
  void run(std::size_t step);
  // A load before its turn, or once more.
  void load(std::size_t step, Insertion insertion);
  void spill(std::int32_t tile, std::size_t step);
  void reload(std::int32_t tile, std::size_t step);

  Stream take_stream() { return writer_.take(); }

 private:
  void note_uses(std::size_t step);

  const Lifetimes& lifetimes_;
  Memories memories_;
  StreamWriter writer_;
  std::vector<Tenant> tenants_;
  std::vector<std::int32_t> tile_of_stay_;
};

}  // namespace trena
