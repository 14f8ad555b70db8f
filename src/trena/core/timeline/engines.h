// The five engines of one core in time: what one instruction does to the next one on its engine,
// and to the engines that share a port with it.
#pragma once

#include <array>

#include "trena/core/timeline/agenda.h"
#include "trena/core/timeline/tensor_clock.h"

namespace trena {

class Engines {
 public:
  explicit Engines(const Machine& machine);

  // When no engine but `user` uses one of these ports any more, as far as that is after `now`.
  Ticks ports_free_at(EngineKind user, const PortKeys& ports, Ticks now) const;

  // What loading the functions of `work` would take, 0 if they are there (hw.md §2.4).
  Ticks table_load(EngineKind engine, const EngineWork& work) const;

  // The item starts now; its operands are ready, its engine and ports are free. Says in `event`
  // how long it takes.
  void start(const Item& item, const Work& work, const PortKeys& ports, Ticks now, RunEvent& event);

  // Who was busy how long, and with what.
  void report(CoreRun& core) const;

 private:
  struct Engine {
    PortKeys held{};  // by the last item, until …
    Ticks held_until = 0;
    std::int32_t route = -1;  // of the last block transpose, which began at …
    Ticks route_start = 0;
    std::string_view table;  // resident activation functions
    EngineUse use;
    Ticks last_end = 0;  // of the union of activity
  };
  Engine& of(EngineKind engine) { return engines_[static_cast<std::size_t>(engine)]; }
  const Engine& of(EngineKind engine) const { return engines_[static_cast<std::size_t>(engine)]; }
  void multiply(const TensorWork& work, RunEvent& event);
  void stream(const Work& work, Engine& engine, EngineKind kind, RunEvent& event);

  Ticks table_load_;
  TensorClock tensor_;
  std::array<Engine, kEngineCount> engines_;
  std::int64_t table_loads_ = 0;
};

}  // namespace trena
