// Small kernels, written by hand or at random: tiles of two rows, loads, products, copies and
// stores.
#pragma once

#include "core_rig.h"
#include "trena/core/placement/placement.h"
#include "trena/isa/dma/dma_copy.h"

namespace trena::core_test {

constexpr std::int64_t kRows = 2;

// Trainium2 with this many usable bytes per partition.
inline Machine small_machine(std::int64_t sbuf_bytes) {
  Machine machine = machine_named("trn2");
  machine.core.sbuf.partition_kib =
      static_cast<double>(machine.core.sbuf.reserved_bytes + sbuf_bytes) / 1024.0;
  return machine;
}

class Kernel : public Rig {
 public:
  using Rig::Rig;

  Tensor load(std::int64_t bytes) {
    const Tensor tile = sbuf({kRows, bytes}, DType::kUint8);
    add<DmaCopy>(tile, hbm({kRows, bytes}, DType::kUint8), DmaRequest{});
    return tile;
  }
  static Tensor columns(const Tensor& tensor, std::int64_t first, std::int64_t count) {
    return tensor.with(tensor.dtype(), first, std::vector<Dim>{tensor.dim(0), {count, 1}});
  }
  // A tile filled in two parts.
  Tensor load_in_parts(std::int64_t bytes) {
    const Tensor tile = sbuf({kRows, bytes}, DType::kUint8);
    const Tensor source = hbm({kRows, bytes}, DType::kUint8);
    const std::int64_t half = bytes / 2;
    add<DmaCopy>(columns(tile, 0, half), columns(source, 0, half), DmaRequest{});
    add<DmaCopy>(columns(tile, half, bytes - half), columns(source, half, bytes - half),
                 DmaRequest{});
    return tile;
  }
  Tensor compute(std::vector<Tensor> sources, std::int64_t bytes,
                 EngineKind engine = EngineKind::kVector) {
    const Tensor result = sbuf({kRows, bytes}, DType::kUint8);
    std::vector<Touch> touches = {writes(result)};
    for (Tensor& source : sources) {
      touches.push_back(reads(std::move(source)));
    }
    probe(engine, engine_cost(ns(50), ns(200)), touches);
    return result;
  }
  void use(std::vector<Tensor> sources, EngineKind engine = EngineKind::kVector) {
    compute(std::move(sources), 4, engine);
  }
  void product_into(const Tensor& bank, const Tensor& a, const Tensor& b) {
    probe(EngineKind::kTensor, product(ns(10), ns(50)), {reads(a), reads(b), accumulates(bank)});
  }
  void store(const Tensor& tile) { store_to(hbm({kRows, tile.size(1)}, DType::kUint8), tile); }
  void store_to(const Tensor& far, const Tensor& tile) { add<DmaCopy>(far, tile, DmaRequest{}); }

  Stream place(SpillPolicy spill = SpillPolicy::kAuto) {
    return trena::place(program(), 0, program().machine(), spill);
  }
};

inline void fill_randomly(Kernel& kernel, std::uint32_t seed) {
  Random random(seed);
  std::vector<Tensor> live;
  std::vector<Tensor> results;
  const auto pick = [&] {
    return live[static_cast<std::size_t>(random(0, static_cast<std::int64_t>(live.size()) - 1))];
  };
  const auto size = [&] { return 4 * random(1, 16); };
  constexpr EngineKind kEngines[] = {EngineKind::kVector, EngineKind::kScalar, EngineKind::kGpsimd};
  for (int step = 0; step < 120; ++step) {
    const EngineKind engine = kEngines[random(0, 2)];
    const std::int64_t choice = live.size() < 3 ? 0 : random(0, 11);
    if (choice <= 2) {
      live.push_back(random(0, 2) == 0 ? kernel.load_in_parts(size()) : kernel.load(size()));
    } else if (choice <= 4) {
      live.push_back(kernel.compute({pick(), pick()}, size(), engine));
    } else if (choice == 5) {
      const Tensor target = pick();  // in place, or over old contents
      const AccessKind kind = random(0, 1) == 0 ? AccessKind::kUpdate : AccessKind::kWrite;
      kernel.probe(engine, engine_cost(ns(50), ns(200)), {reads(pick()), {kind, target}});
    } else if (choice == 6) {
      const Tensor target = pick();  // a part of it
      kernel.probe(engine, engine_cost(ns(50), ns(200)),
                   {reads(pick()), writes(Kernel::columns(target, 1, 2))});
    } else if (choice <= 8) {
      const Tensor bank = kernel.psum({kRows, 16});
      for (std::int64_t count = random(1, 6); count > 0; --count) {
        kernel.product_into(bank, pick(), pick());
      }
      live.push_back(kernel.compute({bank}, size()));
    } else if (choice == 9) {
      const Tensor tile = pick();
      const Tensor far = kernel.hbm({kRows, tile.size(1)}, DType::kUint8);
      kernel.store_to(far, tile);
      results.push_back(far);
    } else if (choice == 10 && !results.empty()) {
      const Tensor far = results[static_cast<std::size_t>(
          random(0, static_cast<std::int64_t>(results.size()) - 1))];
      const Tensor tile = kernel.sbuf({kRows, far.size(1)}, DType::kUint8);
      kernel.add<DmaCopy>(tile, far, DmaRequest{});
      live.push_back(tile);
    } else {
      live.erase(live.begin() + random(0, static_cast<std::int64_t>(live.size()) - 1));
    }
  }
}

}  // namespace trena::core_test
