#include "trena/core/timeline/engines.h"

#include <algorithm>

namespace trena {

Engines::Engines(const Machine& machine)
    : table_load_(machine.ticks(EngineKind::kScalar, machine.core.scalar.table_load_cycles)),
      tensor_(machine) {}

Ticks Engines::ports_free_at(EngineKind user, const PortKeys& ports, Ticks now) const {
  Ticks free_at = 0;
  for (const EngineKind kind : {EngineKind::kVector, EngineKind::kScalar, EngineKind::kGpsimd}) {
    const Engine& other = of(kind);
    if (kind != user && other.held_until > now && share_port(other.held, ports)) {
      free_at = std::max(free_at, other.held_until);
    }
  }
  return free_at;
}

Ticks Engines::table_load(EngineKind engine, const EngineWork& work) const {
  const bool resident = work.activation_table.empty() || work.activation_table == of(engine).table;
  return resident ? 0 : table_load_;
}

void Engines::start(const Item& item, const Work& work, const PortKeys& ports, Ticks now,
                    RunEvent& event) {
  Engine& engine = of(item.engine);
  event.start = now;
  if (const auto* product = std::get_if<TensorWork>(&work.of)) {
    multiply(*product, event);
  } else {
    stream(work, engine, item.engine, event);
  }
  if (item.ports) {
    engine.held = ports;
    engine.held_until = event.busy_until;
  }
  const Ticks until = std::max(event.end, event.busy_until);
  engine.use.active += std::max<Ticks>(0, until - std::max(event.start, engine.last_end));
  engine.use.instructions += 1;
  engine.last_end = std::max(engine.last_end, until);
}

void Engines::multiply(const TensorWork& work, RunEvent& event) {
  const TensorClock::Product product = tensor_.run(work, event.start);
  const TensorClock::Shown shown = tensor_.shown(work, product.limit);
  event.busy_until = product.busy_until;
  event.end = product.end;
  event.load_weights = shown.load_weights;
  event.multiply = shown.multiply;
}

void Engines::stream(const Work& work, Engine& engine, EngineKind kind, RunEvent& event) {
  const auto& own = std::get<EngineWork>(work.of);
  Ticks begin = event.start;
  if (const Ticks load = table_load(kind, own); load > 0) {
    engine.table = own.activation_table;
    table_loads_ += 1;
    begin += load;
  }
  if (own.route >= 0) {
    if (engine.route >= 0 && engine.route != own.route) {
      begin = std::max(begin, engine.route_start + own.reroute);
    }
    engine.route = own.route;
    engine.route_start = begin;
  }
  event.busy_until = begin + work.interval;
  event.end = begin + own.completion;
}

void Engines::report(CoreRun& core) const {
  for (std::size_t engine = 0; engine < engines_.size(); ++engine) {
    core.engines[engine] = engines_[engine].use;
  }
  core.table_loads = table_loads_;
  core.table_load_time = table_loads_ * table_load_;
}

}  // namespace trena
