// Fabric and collectives: ranks of one process, each a program on a thread of its own
// (fabric/collective.h).
#include "bindings.h"
#include "objects.h"
#include "trena/fabric/collective.h"
#include "trena/machine/load.h"

namespace trena::bindings {
namespace {

thread_local RankSeat rank_seat;

// "trn2.48xlarge", or none: the server whose chips are the machine's.
Server server_for(const Machine& machine, const std::optional<std::string>& name,
                  const std::string& directory) {
  return load_server(name ? find_server(*name, directory) : find_server_with(machine, directory));
}

std::vector<std::vector<int>> groups_of(nb::handle replica_group) {
  return nb::cast<std::vector<std::vector<int>>>(replica_group.attr("replica_groups"));
}

}  // namespace

void bind_fabric(nb::module_& module) {
  nb::class_<AllReduceResult>(module, "AllReduceResult")
      .def_ro("algorithm", &AllReduceResult::algorithm)
      .def_ro("ranks", &AllReduceResult::ranks)
      .def_ro("bytes", &AllReduceResult::bytes)
      .def_ro("steps", &AllReduceResult::steps)
      .def_ro("time_ns", &AllReduceResult::time_ns)
      .def_ro("latency_ns", &AllReduceResult::latency_ns)
      .def_ro("link_bytes", &AllReduceResult::link_bytes)
      .def_ro("bus_gbs", &AllReduceResult::bus_bytes_per_ns)
      .def_ro("order", &AllReduceResult::order);
  nb::class_<Network>(module, "Network")
      .def(
          "__init__",
          [](Network* self, const Machine& machine, const std::string& directory,
             const std::optional<std::string>& server, int ranks_per_chip) {
            const Server found = server_for(machine, server, directory);
            new (self) Network(machine, found, load_fabric(find_fabric(found.fabric, directory)),
                               ranks_per_chip);
          },
          "machine"_a, "directory"_a, "server"_a = nb::none(), "ranks_per_chip"_a = 0)
      .def_prop_ro("rank_limit", &Network::rank_limit)
      .def_prop_ro("ranks_per_chip", &Network::ranks_per_chip)
      .def_prop_ro("server", [](const Network& self) { return self.server().name; })
      .def("all_reduce", &Network::all_reduce, "ranks"_a, "bytes"_a, "element_bytes"_a = 1);

  nb::module_ collectives = module.def_submodule("collectives");
  // The calling thread becomes this rank until `leave`; the network must outlive that.
  collectives.def(
      "enter",
      [](int rank, int world, const Network* network) { rank_seat = {rank, world, network}; },
      "rank"_a, "world"_a, "network"_a.none());
  collectives.def("leave", [] { rank_seat = {}; });
  collectives.def(
      "all_reduce",
      [](std::vector<Tensor> srcs, std::vector<Tensor> dsts, nb::handle replica_group,
         const Operator& op, std::optional<int> priority, const std::optional<std::string>& name) {
        const std::vector<std::vector<int>> groups = groups_of(replica_group);
        auto instruction = std::make_unique<AllReduce>(std::move(srcs), std::move(dsts), priority);
        const Seat seat = prepare(*instruction, name);
        const AluOp alu = alu_of(op, "op");
        nb::gil_scoped_release free_python;
        append_all_reduce(seat, rank_seat, std::move(instruction), groups, alu);
      },
      "srcs"_a, "dsts"_a, "replica_group"_a, "op"_a, "priority"_a = nb::none(),
      "name"_a = nb::none());
  collectives.def(
      "rank_id", [](const std::optional<std::string>&) { return rank_seat.rank; },
      "name"_a = nb::none());
}

}  // namespace trena::bindings
