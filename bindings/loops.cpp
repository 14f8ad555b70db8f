// Order and device loops: NkiInstruction.depends_on, nl.no_reorder, and what an iteration of
// nl.fori_loop, nl.while_loop, nl.dynamic_range or `while register:` costs.
//
// A device loop runs its body once per iteration while it is traced, so that registers have values.
#include <algorithm>
#include <array>
#include <map>

#include "bindings.h"
#include "objects.h"
#include "trena/isa/sync/branch.h"

namespace trena::bindings {
namespace {

// Iterations are numbered from 1; parents[i - 1] is the iteration around number i.
struct Iterations {
  const Program* program = nullptr;
  std::vector<std::uint32_t> parents;
  std::uint32_t current = 0;
};

Iterations& iterations() {
  thread_local Iterations mine;
  return mine;
}

// Is `outer` the iteration `inner`, or around it?
bool encloses(std::uint32_t outer, std::uint32_t inner) {
  const std::vector<std::uint32_t>& parents = iterations().parents;
  while (inner != outer && inner != 0) {
    inner = parents[inner - 1];
  }
  return inner == outer;
}

std::uint32_t begin_iteration() {
  const Tracer& tracer = current_tracer();
  if (tracer.program->keeps_order(tracer.core)) {
    throw Error(ErrorKind::kIllegal, "no-reorder-loop",
                {.rule = "nl.no_reorder holds no device loop",
                 .here = "fori_loop, while_loop or dynamic_range inside `with nl.no_reorder():`",
                 .fix = "use nl.static_range, which is unrolled, or put no_reorder into the body"});
  }
  Iterations& all = iterations();
  if (all.program != tracer.program) {
    all = {tracer.program, {}, 0};
  }
  all.parents.push_back(all.current);
  all.current = static_cast<std::uint32_t>(all.parents.size());
  return static_cast<std::uint32_t>(tracer.program->instructions(tracer.core).size());
}

void leave_iteration() {
  Iterations& all = iterations();
  all.current = all.current != 0 ? all.parents[all.current - 1] : 0;
}

// One compare-and-branch for each engine that has worked since instruction number `first`; the
// number of the next instruction.
std::uint32_t branch(std::uint32_t first) {
  const Tracer& tracer = current_tracer();
  const auto& instructions = tracer.program->instructions(tracer.core);
  std::array<bool, kEngineCount> busy{};
  for (std::size_t i = first; i < instructions.size(); ++i) {
    busy[static_cast<std::size_t>(instructions[i]->engine(tracer.program->machine()))] = true;
  }
  for (std::size_t engine = 0; engine < busy.size(); ++engine) {
    if (busy[engine]) {
      emit(Branch{static_cast<EngineKind>(engine)}, std::nullopt);
    }
  }
  return static_cast<std::uint32_t>(tracer.program->instructions(tracer.core).size());
}

void add_edge(const InstructionHandle& consumer, const InstructionHandle& producer) {
  if (consumer.instruction == nullptr || producer.instruction == nullptr) {
    return;
  }
  const Tracer& tracer = current_tracer();
  const auto& instructions = tracer.program->instructions(tracer.core);
  const auto is_mine = [&](const InstructionHandle& handle) {
    return handle.program == tracer.program && handle.core == tracer.core &&
           handle.index < instructions.size() &&
           instructions[handle.index].get() == handle.instruction;
  };
  const auto complain = [&](std::string here) {
    throw Error(
        ErrorKind::kUsage, "depends-on",
        {.rule = "an instruction waits for earlier ones of the same kernel and core, of its own "
                 "iteration of a device loop or one around it",
         .here = std::move(here),
         .device = "a semaphore that never fires, or fires too often"});
  };
  if (!is_mine(consumer) || !is_mine(producer)) {
    complain("an instruction of another launch or core");
  }
  if (producer.index >= consumer.index) {
    complain(std::string(consumer.instruction->name()) + " on " +
             std::string(producer.instruction->name()) + ", which comes later");
  }
  if (producer.iteration != 0 && !encloses(producer.iteration, consumer.iteration)) {
    complain(std::string(producer.instruction->name()) + " is in another iteration of a loop");
  }
  instructions[consumer.index]->depends_on.push_back(producer.index);
}

// The recorded instruction that the kernel called `label`.
std::uint32_t named(const std::string& label) {
  const Tracer& tracer = current_tracer();
  const auto& instructions = tracer.program->instructions(tracer.core);
  std::optional<std::uint32_t> found;
  for (std::uint32_t i = 0; i < instructions.size(); ++i) {
    if (instructions[i]->label != label) {
      continue;
    }
    if (found) {
      throw Error(ErrorKind::kUsage, "schedule-name",
                  {.rule = "a schedule names each instruction once",
                   .here = "two instructions are called " + label,
                   .fix = "pass different name= to them"});
    }
    found = i;
  }
  if (!found) {
    throw Error(ErrorKind::kUsage, "schedule-name",
                {.rule = "a schedule names instructions by the name= of their calls",
                 .here = "no instruction is called " + label});
  }
  return *found;
}

// Edges of kernel.with_schedule([(later, earlier), ...]), once the kernel is recorded.
void order_by_name(const std::vector<std::pair<std::string, std::string>>& pairs) {
  const Tracer& tracer = current_tracer();
  const auto& instructions = tracer.program->instructions(tracer.core);
  for (const auto& [later, earlier] : pairs) {
    const std::uint32_t consumer = named(later);
    const std::uint32_t producer = named(earlier);
    if (producer >= consumer) {
      throw_not_modelled("a schedule that turns program order around: " + later + " after " +
                         earlier + ", which the kernel calls later");
    }
    instructions[consumer]->depends_on.push_back(producer);
  }
}

}  // namespace

std::uint32_t current_iteration() {
  const Iterations& all = iterations();
  return all.program == current_tracer().program ? all.current : 0;
}

void bind_loops(nb::module_& module) {
  nb::class_<InstructionHandle>(module, "NkiInstruction",
                                "A recorded instruction, as nki.isa functions return it.")
      .def(
          "depends_on",
          [](nb::object self, const nb::args& producers) {
            for (const nb::handle producer : producers) {
              add_edge(nb::cast<const InstructionHandle&>(self),
                       nb::cast<const InstructionHandle&>(producer));
            }
            return self;
          },
          "producers"_a, "This instruction starts after each of these has ended. Returns itself.")
      .def_prop_ro("name", [](const InstructionHandle& self) {
        return self.instruction == nullptr ? std::string_view() : self.instruction->name();
      });
  module.def("begin_iteration", begin_iteration);
  module.def("leave_iteration", leave_iteration);
  module.def("branch", branch, "first"_a);
  module.def("order_by_name", order_by_name, "pairs"_a);
  module.def("keep_order", [](bool on) {
    const Tracer& tracer = current_tracer();
    tracer.program->keep_order(tracer.core, on);
  });
}

}  // namespace trena::bindings
