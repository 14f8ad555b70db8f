// Expected values are literals with their source, never read back from the files.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

#include "trena/error.h"
#include "trena/machine/load.h"
#include "trena/machine/schema.h"

namespace trena {
namespace {

const std::string kHardware = TRENA_SOURCE_DIR "/hardware";

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

Machine machine(std::string_view name) { return load_machine(find_machine(name, kHardware)); }

// The text of trn2's file with one line replaced.
std::string edited(const std::string& from, const std::string& to) {
  std::string text = text_of(kHardware + "/trainium2.toml");
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string message_of(const std::string& text) {
  try {
    load_machine_text(text, "my.toml");
  } catch (const Error& error) {
    EXPECT_EQ(error.id(), "machine-invalid");
    EXPECT_EQ(error.kind(), ErrorKind::kMachine);
    return error.what();
  }
  return "no error";
}

std::string override_message(std::string_view assignment) {
  Machine target = machine("trn2");
  try {
    set_value(target, assignment);
  } catch (const Error& error) {
    EXPECT_TRUE(target.overrides.empty());
    return error.what();
  }
  return "no error";
}

#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST(MachineFiles, ClocksAreThoseOfTheArchitectureGuides) {  // AWS *_arch.rst, hw.md §1.3
  EXPECT_EQ(machine("trn1").core.tensor.clock_ghz, 2.8);
  EXPECT_EQ(machine("inf2").core.tensor.clock_ghz, 2.8);
  EXPECT_EQ(machine("trn2").core.tensor.clock_ghz, 2.4);
  EXPECT_EQ(machine("trn3").core.tensor.clock_ghz, 2.4);
  EXPECT_EQ(machine("trn1").core.vector.clock_ghz, 1.12);
  EXPECT_EQ(machine("trn2").core.vector.clock_ghz, 0.96);
  EXPECT_EQ(machine("trn3").core.vector.clock_ghz, 1.2);
  EXPECT_EQ(machine("trn1").core.scalar.clock_ghz, 1.4);
  EXPECT_EQ(machine("trn2").core.gpsimd.clock_ghz, 1.2);
}

TEST(MachineFiles, MemoriesAreThoseOfTheArchitectureGuides) {  // hw.md §1.1, §1.4
  EXPECT_EQ(machine("trn1").core.sbuf.usable_bytes(), 180224);
  EXPECT_EQ(machine("trn2").core.sbuf.usable_bytes(), 212984);
  EXPECT_EQ(machine("trn3").core.sbuf.usable_bytes(), 245752);
  for (const char* name : {"trn1", "inf2", "trn2", "trn3"}) {
    EXPECT_EQ(machine(name).core.psum.partition_bytes(), 16384) << name;
  }
  EXPECT_EQ(machine("trn1").hbm_gib(), 32);
  EXPECT_EQ(machine("trn2").hbm_gib(), 96);
  EXPECT_EQ(machine("trn3").hbm_gib(), 144);
}

TEST(MachineFiles, PeakIsTheProfilersDenominator) {
  // hw.md §1.2: 91.8 and 78.6 TFLOPS; the profiler divides by 78.64 on trn2.
  EXPECT_NEAR(machine("trn1").peak_flops_per_ns(), 91750, 5);
  EXPECT_NEAR(machine("trn2").peak_flops_per_ns(), 78643, 5);
}

// MATMUL and LDWEIGHTS durations of published profiles at full rate, within 5 % (hw.md §2.7).
TEST(MachineFiles, TensorLawMeetsMeasuredRows) {
  const Machine trn2 = machine("trn2");
  const TensorEngine& tensor = trn2.core.tensor;
  const auto matmul_ns = [&](double columns, double per_column, double limit) {
    return (tensor.matmul_fixed_cycles +
            (columns * per_column + tensor.matmul_throttled_cycles) / limit) /
           tensor.clock_ghz;
  };
  const auto load_ns = [&](double per_column, double limit) {
    return (tensor.load_fixed_cycles + (128 * per_column + tensor.load_throttled_cycles) / limit) /
           tensor.clock_ghz;
  };
  EXPECT_NEAR(matmul_ns(512, tensor.moving_cycles_per_column, 1.0), 379, 19);        // INST-051
  EXPECT_NEAR(matmul_ns(512, tensor.moving_cycles_per_column, 0.5), 630, 32);        // INST-052
  EXPECT_NEAR(matmul_ns(512, tensor.moving_cycles_per_column_fp32, 1.0), 591, 30);   // INST-056
  EXPECT_NEAR(matmul_ns(512, tensor.moving_cycles_per_column_fp32, 0.5), 1060, 53);  // INST-057
  EXPECT_NEAR(load_ns(tensor.stationary_cycles_per_column, 1.0), 97, 5);             // INST-045
  EXPECT_NEAR(load_ns(tensor.stationary_cycles_per_column_fp32, 1.0), 191, 10);      // INST-043
  EXPECT_NEAR(load_ns(tensor.stationary_cycles_per_column_fp32, 0.5), 333, 17);      // INST-042
  EXPECT_NEAR(load_ns(tensor.stationary_cycles_per_column_fp32_transpose, 1.0), 140,
              7);  // INST-048
}

TEST(MachineFiles, StreamLawsMeetMeasuredRows) {
  const Machine trn2 = machine("trn2");
  const Core& core = trn2.core;
  const auto vector_ns = [&](double cycles) { return cycles / core.vector.clock_ghz; };
  const auto scalar_ns = [&](double cycles) { return cycles / core.scalar.clock_ghz; };
  EXPECT_NEAR(vector_ns(core.vector.copy_psum.completion_cycles(512)), 690, 14);  // INST-070
  EXPECT_NEAR(vector_ns(core.vector.copy_psum.completion_cycles(128)), 291, 6);   // INST-069
  EXPECT_NEAR(vector_ns(core.vector.reduce.completion_cycles(512)), 679, 14);     // INST-077
  EXPECT_NEAR(vector_ns(core.vector.reciprocal.completion_cycles(8)), 202, 6);    // INST-074
  EXPECT_NEAR(vector_ns(core.vector.copy.completion_cycles(512) + core.vector.operand_cycles), 481,
              10);  // INST-087
  EXPECT_NEAR(scalar_ns(core.scalar.activation.completion_cycles(512) + core.scalar.operand_cycles),
              707,
              20);                                                 // INST-013
  EXPECT_NEAR(scalar_ns(core.scalar.table_load_cycles), 1283, 1);  // INST-014
  EXPECT_NEAR(scalar_ns(core.scalar.copy.completion_cycles(512) - core.scalar.psum_credit_cycles),
              585, 12);  // INST-020
}

TEST(MachineFiles, PacketLawMeetsMeasuredRows) {
  const Machine trn2 = machine("trn2");
  EXPECT_NEAR(trn2.core.dma.packet_time_ns(256), 17, 1);    // DMA-002
  EXPECT_NEAR(trn2.core.dma.packet_time_ns(512), 27, 1.5);  // DMA-003
  EXPECT_NEAR(trn2.core.dma.packet_time_ns(2048), 83, 1);   // DMA-004
  EXPECT_NEAR(trn2.core.dma.packet_time_ns(4096), 158, 1);  // DMA-005
  const Machine trn1 = machine("trn1");
  EXPECT_NEAR(trn1.core.dma.packet_time_ns(4), 7, 1.6);               // hw.md §2.4, trn1 points
  EXPECT_NEAR(32768 / trn1.core.dma.engine_bytes_per_ns, 1810, 250);  // hw.md §2.4, trn1 points
}

TEST(MachineFiles, OfEveryGenerationSayWhatItCan) {  // hw.md §2.3
  const Legality trn1 = machine("trn1").legality;
  const Legality trn2 = machine("trn2").legality;
  const Legality trn3 = machine("trn3").legality;
  EXPECT_FALSE(trn1.allows("tensor_copy", EngineKind::kScalar));
  EXPECT_TRUE(trn2.allows("tensor_copy", EngineKind::kScalar));
  EXPECT_FALSE(trn2.has("nc_matmul_mx"));
  EXPECT_TRUE(trn3.has("nc_matmul_mx"));
  EXPECT_FALSE(trn1.has("range_select"));
  EXPECT_EQ(trn2.engines_for("iota"), std::vector<EngineKind>{EngineKind::kGpsimd});
  EXPECT_TRUE(trn2.engines_for("no_such_thing").empty());
  EXPECT_TRUE(trn1.hwdge_engines.empty());
  EXPECT_TRUE(trn2.hwdge_engines.contains(EngineKind::kScalar));
  EXPECT_FALSE(trn2.hwdge_engines.contains(EngineKind::kGpsimd));
  EXPECT_FALSE(trn2.matmul_dtypes.contains(DType::kFloat8E4m3fn));
  EXPECT_TRUE(trn3.matmul_dtypes.contains(DType::kFloat8E4m3fn));
  EXPECT_FALSE(trn2.dtypes.contains(DType::kInt64));
  EXPECT_FALSE(trn1.activation_bias_constant);
  EXPECT_TRUE(trn2.activation_bias_constant);
}

TEST(MachineFiles, CarryEvidence) {
  const Machine trn2 = machine("trn2");
  const Machine trn3 = machine("trn3");
  EXPECT_EQ(trn2.source_of("core.tensor.clock_ghz").evidence, Evidence::kDocumented);
  EXPECT_EQ(trn2.core.vector.copy.evidence, Evidence::kMeasured);
  EXPECT_EQ(trn3.core.vector.copy.evidence, Evidence::kExtrapolated);
  EXPECT_THROW(trn2.source_of("core.tensor.clock"), Error);
}

TEST(MachineFiles, AbsentFiguresPoisonRatherThanCountAsZero) {
  EXPECT_TRUE(std::isnan(machine("trn2").core.vector.exponential.completion_cycles(10)));
  EXPECT_TRUE(std::isnan(machine("trn1").core.tensor.throttle.floor));
}

TEST(FindMachine, AnswersToAllItsNames) {
  const auto stem = [](std::string_view name) {
    const std::string path = find_machine(name, kHardware);
    return path.substr(kHardware.size() + 1);
  };
  for (const char* name : {"trn2", "TRN2", "trainium2", "Trainium2", "gen3", "NeuronCore-v3",
                           "neuroncore v3", "trn2.48xlarge"}) {
    EXPECT_EQ(stem(name), "trainium2.toml") << name;
  }
  EXPECT_EQ(stem("gen2"), "trainium1.toml");
  EXPECT_EQ(stem("NeuronCore-v2"), "trainium1.toml");
  EXPECT_EQ(stem("inf2"), "inferentia2.toml");
  EXPECT_EQ(stem("gen4"), "trainium3.toml");
  EXPECT_EQ(find_machine(kHardware + "/trainium3.toml", "/nowhere"), kHardware + "/trainium3.toml");
}

TEST(FindMachine, NamesWhatThereIs) {
  try {
    find_machine("trn22", kHardware);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.id(), "machine-unknown");
    EXPECT_HAS(std::string(error.what()), "did you mean trn2?");
    EXPECT_HAS(std::string(error.what()), "inferentia2");
  }
}

TEST(LoadMachine, SuggestsTheKeyThatWasMeant) {
  const std::string text =
      message_of(edited("\nclock_ghz = { value = 2.4", "\nclock_ghs = { value = 2.4"));
  EXPECT_HAS(text, "core.tensor.clock_ghs is not a key");
  EXPECT_HAS(text, "did you mean core.tensor.clock_ghz?");
  EXPECT_HAS(text, "my.toml:");
}

TEST(LoadMachine, NamesAMissingKeyAndItsForm) {
  const std::string text = message_of(edited("\nrings = {", "\n# rings = {"));
  EXPECT_HAS(text, "core.dma.rings is missing (Queues of an engine)");
  EXPECT_HAS(text, "core.dma.rings = { value = ..., source = \"where from\"");
}

TEST(LoadMachine, RefusesWrongTypesAndRanges) {
  const std::string line = "value = 2.4, source = \"AWS trainium2_arch.rst\"";
  const std::string fast = message_of(edited(line, "value = \"fast\", source = \"x\""));
  EXPECT_HAS(fast, "core.tensor.clock_ghz is 'fast', a text");
  EXPECT_HAS(fast, "a number from 0.01 to 100 GHz");
  EXPECT_HAS(message_of(edited(line, "value = 2400, source = \"x\"")),
             "core.tensor.clock_ghz is 2400");
  EXPECT_HAS(message_of(edited(line, "value = nan, source = \"x\"")),
             "a number from 0.01 to 100 GHz");
  EXPECT_HAS(message_of(edited("banks = { value = 8", "banks = { value = 8.0")),
             "an integer from 1");
  EXPECT_HAS(message_of(edited("[\"sync\", \"scalar\"]", "[\"sync\", \"dma\"]")),
             "tensor, vector, scalar, gpsimd or sync");
}

TEST(LoadMachine, InsistsOnSourceAndEvidence) {
  const std::string figure =
      "{ value = 2.4, source = \"AWS trainium2_arch.rst\", evidence = \"documented\" }";
  EXPECT_HAS(message_of(edited(figure, "2.4")), "core.tensor.clock_ghz is a bare value");
  EXPECT_HAS(message_of(edited(figure, "{ value = 2.4, evidence = \"measured\" }")),
             "has no source");
  EXPECT_HAS(message_of(edited(figure, "{ value = 2.4, source = \"x\", evidence = \"sure\" }")),
             "documented, measured, estimate or extrapolated");
  EXPECT_HAS(message_of(edited(figure, "{ value = 2.4, source = \"x\", evidense = \"measured\" }")),
             "did you mean evidence?");
}

TEST(LoadMachine, RefusesFiguresThatDoNotFitEachOther) {
  EXPECT_HAS(message_of(edited("\nstacks = { value = 4", "\nstacks = { value = 3")),
             "hbm.stacks x cores_per_stack = 6, chip.cores = 8");
  EXPECT_HAS(message_of(edited("\nexp = [\"exp\"]", "\nexp = [\"exp\", \"tanh\"]")),
             "a function is in one set");
  EXPECT_HAS(message_of(edited("\nexp = [", "\nexp = [")), "no error");
}

TEST(LoadMachine, TellsTheLineOfASyntaxError) {
  EXPECT_HAS(message_of("[chip\nname = 1\n"), "my.toml:1");
}

TEST(SetValue, ChangesAFigureAndMarksItGiven) {
  Machine trn2 = machine("trn2");
  set_value(trn2, "core.sbuf.partition_kib=256");
  EXPECT_EQ(trn2.core.sbuf.usable_bytes(), 256 * 1024 - 16392);
  EXPECT_EQ(trn2.source_of("core.sbuf.partition_kib").evidence, Evidence::kGiven);
  set_value(trn2, "core.pe_ghz=2.8");
  EXPECT_EQ(trn2.core.tensor.clock_ghz, 2.8);
  set_value(trn2, "core.vector.copy.cycles_per_element=0.125");
  EXPECT_EQ(trn2.core.vector.copy.cycles_per_element, 0.125);
  EXPECT_EQ(trn2.core.vector.copy.offset_cycles, 154);
  EXPECT_EQ(trn2.core.vector.copy.evidence, Evidence::kGiven);
  set_value(trn2, "throttle=false");
  EXPECT_FALSE(trn2.core.tensor.throttle.ramp);
  set_value(trn2, "core.tensor.row_tile_sizes=[128]");
  EXPECT_EQ(trn2.core.tensor.row_tile_sizes, std::vector<std::int64_t>{128});
  set_value(trn2, "legality.engines.iota=[\"vector\"]");
  EXPECT_TRUE(trn2.legality.allows("iota", EngineKind::kVector));
  set_value(trn2, "chip.name=mine");
  EXPECT_EQ(trn2.chip.name, "mine");
  EXPECT_EQ(trn2.overrides.size(), 7u);
  EXPECT_EQ(trn2.overrides[1], "core.pe_ghz=2.8");
}

TEST(SetValue, TheShortNameOfSbufMovesPartitionsApart) {
  Machine trn2 = machine("trn2");
  set_value(trn2, "core.sbuf_kib=256");
  EXPECT_EQ(trn2.core.sbuf.partition_stride_bytes, 256 * 1024);
  set_value(trn2, "core.sbuf_kib=384");
  EXPECT_EQ(trn2.core.sbuf.partition_kib, 384);
  EXPECT_EQ(trn2.core.sbuf.partition_stride_bytes, 512 * 1024);
  EXPECT_EQ(trn2.source_of("core.sbuf.partition_stride_bytes").evidence, Evidence::kGiven);
}

TEST(SetValue, ExplainsWhatItRefuses) {
  EXPECT_HAS(override_message("core.sbuf.partition_kb=256"),
             "did you mean core.sbuf.partition_kib?");
  EXPECT_HAS(override_message("core.pe_ghz=fast"), "a number from 0.01 to 100 GHz");
  EXPECT_HAS(override_message("core.sbuf.partition_kib=512"), "core.sbuf.partition_stride_bytes");
  EXPECT_HAS(override_message("core.pe_ghz"), "KEY=VALUE");
  EXPECT_HAS(override_message("core.vector.copy=3"), "core.vector.copy.offset_cycles or");
  EXPECT_HAS(override_message("core.psum.banks=4"), "no error");
  EXPECT_HAS(override_message("core.tensor.rows=256"), "core.sbuf.partitions = 128");
}

TEST(KeyAliases, NameRealKeys) {
  for (const KeyAlias& alias : key_aliases()) {
    const auto& rows = schema<Machine>();
    EXPECT_TRUE(std::any_of(rows.begin(), rows.end(), [&](const Field<Machine>& row) {
      return row.key == alias.key;
    })) << alias.key;
  }
}

TEST(Describe, ListsEveryFigureWithItsSource) {
  const std::vector<Description> rows = describe(machine("trn2"));
  const auto find = [&](std::string_view key) -> const Description& {
    return *std::find_if(rows.begin(), rows.end(),
                         [&](const Description& row) { return row.key == key; });
  };
  EXPECT_EQ(rows.front().key, "chip.name");
  EXPECT_EQ(rows.front().value, "trn2");
  EXPECT_EQ(find("core.tensor.clock_ghz").value, "2.4");
  EXPECT_EQ(find("core.tensor.clock_ghz").unit, "GHz");
  EXPECT_EQ(find("core.tensor.clock_ghz").evidence, "documented");
  EXPECT_EQ(find("core.vector.copy").value, "154 + 0.5 N");
  EXPECT_EQ(find("core.tensor.throttle.ramp").value, "true");
  for (const Description& row : rows) {
    EXPECT_NE(row.key, "core.vector.exponential");
    EXPECT_FALSE(row.meaning.empty()) << row.key;
    EXPECT_EQ(row.evidence.empty(), row.source.empty()) << row.key;
  }
}

TEST(ContentHash, FollowsValuesAndNothingElse) {
  Machine trn2 = machine("trn2");
  const std::uint64_t before = content_hash(trn2);
  EXPECT_EQ(before, content_hash(machine("trn2")));
  EXPECT_NE(before, content_hash(machine("trn3")));
  EXPECT_EQ(before,
            content_hash(load_machine_text(
                edited("source = \"AWS trainium2_arch.rst\"", "source = \"a book\""), "x")));
  set_value(trn2, "core.sbuf.alignment_bytes=8");
  EXPECT_NE(before, content_hash(trn2));
  set_value(trn2, "core.sbuf.alignment_bytes=4");
  EXPECT_EQ(before, content_hash(trn2));
}

// docs/describe-a-chip.md: its overrides apply, and its lines work in a copy of trn2's file.
TEST(DescribeAChip, OverridesOfThePageApply) {
  const std::string page = text_of(TRENA_SOURCE_DIR "/docs/describe-a-chip.md");
  Machine trn2 = machine("trn2");
  for (std::size_t at = page.find("--set "); at != std::string::npos;
       at = page.find("--set ", at)) {
    at += 6;
    const std::string word = page.substr(at, page.find_first_of(" \n`", at) - at);
    if (word.find('=') != std::string::npos) {
      set_value(trn2, word);
    }
  }
  EXPECT_EQ(trn2.overrides.size(), 4u);
}

TEST(DescribeAChip, LinesOfThePageFormAChip) {
  std::istringstream page(text_of(TRENA_SOURCE_DIR "/docs/describe-a-chip.md"));
  std::string chip = text_of(kHardware + "/trainium2.toml");
  std::string section;
  bool inside = false;
  for (std::string line; std::getline(page, line);) {
    if (line.substr(0, 3) == "```") {
      inside = line == "```toml";
    } else if (inside && line.substr(0, 1) == "[") {
      section = line;
    } else if (inside && !line.empty()) {
      const std::string start = "\n" + line.substr(0, line.find(" = ") + 3);
      const std::size_t from = chip.find(start, chip.find(section)) + 1;
      chip.replace(from, chip.find('\n', from) - from, line);
    }
  }
  const Machine wide = load_machine_text(chip, "wide.toml");
  EXPECT_EQ(wide.chip.name, "wide");
  EXPECT_EQ(wide.core.sbuf.partition_kib, 256);
  EXPECT_EQ(wide.core.vector.clock_ghz, 1.2);
  EXPECT_EQ(wide.core.vector.reciprocal.cycles_per_element, 1);
  EXPECT_EQ(wide.core.scalar.clock_ghz, 1.2);
}

// A member without a row would never be read: count the bytes that the rows cover. Every figure of
// these structs is 8 bytes wide.
TEST(Schema, CoversEveryMember) {
  const auto count = [](std::string_view section) {
    std::size_t bytes = 0;
    for (const Field<Machine>& row : schema<Machine>()) {
      const bool inside = row.key.substr(0, section.size()) == section;
      if (inside && row.key.find('.', section.size()) == std::string_view::npos) {
        bytes +=
            std::holds_alternative<StreamLaw& (*)(Machine&)>(row.member) ? sizeof(StreamLaw) : 8;
      }
    }
    return bytes;
  };
  EXPECT_EQ(count("core.vector."), sizeof(VectorEngine));
  EXPECT_EQ(count("core.gpsimd."), sizeof(GpsimdEngine));
  EXPECT_EQ(count("core.scalar.") - 8 + sizeof(NameTable), sizeof(ScalarEngine));
  EXPECT_EQ(count("core.tensor.") - 2 * 8 + 2 * sizeof(std::vector<std::int64_t>),
            sizeof(TensorEngine) - sizeof(TensorThrottle));
  EXPECT_EQ(count("core.tensor.throttle."), sizeof(TensorThrottle));
  EXPECT_EQ(count("core.sequencer."), sizeof(Sequencer));
  EXPECT_EQ(count("core.sync."), sizeof(Sync));
  EXPECT_EQ(count("core.dma."), sizeof(Dma) - 4 * sizeof(DmaMode));
  EXPECT_EQ(count("hbm."), sizeof(Hbm));
  EXPECT_EQ(count("pair."), sizeof(Pair));
}

TEST(Ticks, RoundsOnceAtTheEnd) {
  EXPECT_EQ(ticks(24, 2.4), 10 * kTicksPerNs);
  EXPECT_EQ(ticks(1, 2.4), 416'667);  // 416,666.67 fs
  EXPECT_EQ(ticks(3'000'000, 2.4), 1'250'000 * kTicksPerNs);
  EXPECT_EQ(ticks_from_ns(7.35), 7'350'000);
}

TEST(Engines, HaveNamesOfKernelsAndOfTheProfiler) {
  EXPECT_EQ(engine_from_name("DVE"), EngineKind::kVector);
  EXPECT_EQ(engine_from_name("gpsimd"), EngineKind::kGpsimd);
  EXPECT_EQ(engine_from_name("dma"), std::nullopt);
  EXPECT_EQ(name(EngineKind::kScalar), "scalar");
}

TEST(Servers, Trn2IsATorusOfSixteen) {  // AWS trn2-arch.rst, fleet.md §1.0
  const Server server = load_server(find_server("trn2.48xl", kHardware));
  EXPECT_EQ(server.chips, 16);
  EXPECT_EQ(load_machine(find_machine(server.machine, kHardware)).chip.name, "trn2");
  const Fabric fabric = load_fabric(find_fabric(server.fabric, kHardware));
  EXPECT_EQ(fabric.topology, "torus");
  EXPECT_EQ(fabric.dimensions, (std::vector<std::int64_t>{4, 4}));
  EXPECT_EQ(fabric.link_gbs * 4 * 2, 1024);
  EXPECT_EQ(describe(fabric).size(), 7u);
}

}  // namespace
}  // namespace trena
