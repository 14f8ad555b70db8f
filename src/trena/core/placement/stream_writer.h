// Writes the Stream while tiles come and go: each instruction with what it must wait for, the moves
// between them, and who stayed where meanwhile.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "trena/core/dependences.h"
#include "trena/core/placement/lent_banks.h"
#include "trena/core/placement/manual_addresses.h"
#include "trena/core/placement/spill_moves.h"
#include "trena/core/placement/tenant.h"
#include "trena/core/stream.h"

namespace trena {

class StreamWriter {
 public:
  StreamWriter(const Lifetimes& lifetimes, const ManualAddresses& manual, const Machine& machine);

  Stay next_stay() const { return static_cast<Stay>(stream_.residences.size()); }
  // Of a tenant whose `stay` is next_stay(), in bytes that `former` stays had.
  void begin_stay(const Tenant& tenant, std::int64_t start, const std::vector<Stay>& former);
  void end_stay(Stay stay);

  // A recorded instruction; `tenants` are all tiles, those it touches on the chip.
  void write(std::size_t step, Insertion insertion, std::span<const Tenant> tenants,
             const LentBanks& lent_banks);
  // A whole tile to its slot in HBM scratch, or back, on behalf of the instruction at `step`.
  void write_move(std::int32_t tile, const Tenant& tenant, SpillMove::Direction direction,
                  std::size_t step);

  Stream take() { return std::move(stream_); }

 private:
  std::uint32_t next_item() const { return static_cast<std::uint32_t>(stream_.items.size()); }
  Dependences::Key key(Stay stay) const { return lifetimes_.lives().size() + stay; }
  void order_use(const Use& use, std::uint32_t item, std::span<const Tenant> tenants,
                 const LentBanks& lent_banks);
  void order_as_asked(std::size_t step, std::uint32_t item);
  void keep_order(const Step& step, std::uint32_t item);
  void order_meetings(const Instruction& instruction, std::uint32_t item);

  const Lifetimes& lifetimes_;
  const ManualAddresses& manual_;
  const Machine& machine_;
  Dependences order_;
  Stream stream_;
  std::vector<std::uint32_t> item_of_;  // by step
  std::optional<std::uint32_t> last_meeting_;
  // Of nl.no_reorder, and the last item of each queue in it: of an engine's instructions, and of
  // the transfers that it triggers.
  std::uint32_t order_block_ = 0;
  std::array<std::optional<std::uint32_t>, 2 * kEngineCount> last_ordered_;
  AccessList scratch_;
};

}  // namespace trena
