// Decodes the trace with a reader of its own: wire format as in
// protobuf.dev/programming-guides/encoding, field numbers as in github.com/google/perfetto
// protos/perfetto/trace/ (numbers spelled out again here on purpose).
#include "trena/report/perfetto.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>

#include "hand_made_run.h"

namespace trena {
namespace {

struct Field {
  std::uint64_t number = 0;  // varints and fixed64
  std::string bytes;         // length-delimited
};
using Message = std::multimap<int, Field>;

std::uint64_t read_varint(const std::string& data, std::size_t& at) {
  std::uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = static_cast<unsigned char>(data.at(at++));
    value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
    if ((byte & 0x80) == 0) {
      return value;
    }
  }
}

Message parse(const std::string& data) {
  Message message;
  std::size_t at = 0;
  while (at < data.size()) {
    const std::uint64_t tag = read_varint(data, at);
    Field field;
    switch (tag & 7) {
      case 0:
        field.number = read_varint(data, at);
        break;
      case 1:
        std::memcpy(&field.number, data.substr(at, 8).data(), 8);
        at += 8;
        break;
      case 2: {
        const std::uint64_t size = read_varint(data, at);
        field.bytes = data.substr(at, size);
        EXPECT_EQ(field.bytes.size(), size);
        at += size;
        break;
      }
      default:
        ADD_FAILURE() << "wire type " << (tag & 7);
        return message;
    }
    message.emplace(static_cast<int>(tag >> 3), field);
  }
  return message;
}

std::uint64_t number(const Message& message, int field) {
  const auto found = message.find(field);
  return found == message.end() ? 0 : found->second.number;
}

std::string text(const Message& message, int field) {
  const auto found = message.find(field);
  return found == message.end() ? std::string() : found->second.bytes;
}

Message child(const Message& message, int field) { return parse(text(message, field)); }

double as_double(std::uint64_t bits) {
  double value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

struct Slice {
  std::string row;
  std::string name;
  std::uint64_t begin = 0;
  std::optional<std::uint64_t> end;
  std::map<std::string, std::string> texts;
  std::map<std::string, double> times;
  std::vector<std::uint64_t> flows;
  std::vector<std::uint64_t> ended_flows;
};

struct Decoded {
  std::map<std::uint64_t, std::string> rows;       // uuid -> name
  std::map<std::uint64_t, std::string> processes;  // uuid -> name
  std::map<std::uint64_t, std::uint64_t> parents;
  std::vector<Slice> slices;
  std::vector<std::pair<std::uint64_t, double>> counter;
};

class Decoder {
 public:
  explicit Decoder(const std::string& bytes) {
    for (const auto& [field, packet] : parse(bytes)) {
      EXPECT_EQ(field, 1);  // Trace.packet
      read_packet(parse(packet.bytes));
    }
    for (const auto& [track, open] : open_) {
      EXPECT_TRUE(open.empty()) << "slices left open on row " << track;
    }
  }
  Decoded result;

 private:
  void read_packet(const Message& packet) {
    EXPECT_EQ(number(packet, 10), 1u);  // trusted_packet_sequence_id
    const std::uint64_t flags = number(packet, 13);
    EXPECT_EQ(flags, first_ ? 3u : 2u);  // cleared once, needed always
    first_ = false;
    if (packet.contains(12)) {
      learn(child(packet, 12));
    }
    if (packet.contains(60)) {
      read_descriptor(child(packet, 60));
    }
    if (packet.contains(11)) {
      read_event(number(packet, 8), child(packet, 11));
    }
  }

  void learn(const Message& interned) {
    for (const auto& [table, entry] : interned) {
      const Message item = parse(entry.bytes);
      EXPECT_TRUE(texts_[table].emplace(number(item, 1), text(item, 2)).second);
    }
  }

  void read_descriptor(const Message& descriptor) {
    const std::uint64_t uuid = number(descriptor, 1);
    EXPECT_NE(uuid, 0u);
    if (descriptor.contains(3)) {
      const Message process = child(descriptor, 3);
      EXPECT_GT(number(process, 1), 0u);  // pid
      result.processes[uuid] = text(process, 6);
      EXPECT_EQ(number(descriptor, 11), 3u);  // children in explicit order
      return;
    }
    EXPECT_TRUE(result.processes.contains(number(descriptor, 5))) << "a parent comes first";
    EXPECT_TRUE(result.rows.emplace(uuid, text(descriptor, 2)).second);
    result.parents[uuid] = number(descriptor, 5);
  }

  void read_event(std::uint64_t timestamp, const Message& event) {
    const std::uint64_t track = number(event, 11);
    ASSERT_TRUE(result.rows.contains(track)) << "a row comes before its events";
    EXPECT_GE(timestamp, latest_[track]) << "time goes forward on a row";
    latest_[track] = timestamp;
    switch (number(event, 9)) {
      case 1:
        open_[track].push_back(result.slices.size());
        EXPECT_EQ(open_[track].size(), 1u) << "slices of a row neither nest nor overlap";
        result.slices.push_back(read_slice(timestamp, track, event));
        break;
      case 2:
        ASSERT_FALSE(open_[track].empty());
        result.slices[open_[track].back()].end = timestamp;
        open_[track].pop_back();
        break;
      case 4:
        result.counter.emplace_back(timestamp, as_double(number(event, 44)));
        break;
      default:
        ADD_FAILURE() << "event type " << number(event, 9);
    }
  }

  Slice read_slice(std::uint64_t timestamp, std::uint64_t track, const Message& event) {
    Slice slice;
    slice.row = result.rows[track];
    slice.name = texts_[2].at(number(event, 10));
    slice.begin = timestamp;
    for (const auto& [field, value] : event) {
      if (field == 47) {
        slice.flows.push_back(value.number);
      } else if (field == 48) {
        slice.ended_flows.push_back(value.number);
      } else if (field == 4) {
        read_annotation(slice, parse(value.bytes));
      }
    }
    return slice;
  }

  void read_annotation(Slice& slice, const Message& annotation) {
    const std::string key = texts_[3].at(number(annotation, 1));
    if (annotation.contains(17)) {
      slice.texts[key] = texts_[29].at(number(annotation, 17));
    } else if (annotation.contains(5)) {
      slice.times[key] = as_double(number(annotation, 5));
    } else {
      slice.times[key] = static_cast<double>(number(annotation, 4));
    }
  }

  bool first_ = true;
  std::map<int, std::map<std::uint64_t, std::string>> texts_;
  std::map<std::uint64_t, std::vector<std::size_t>> open_;
  std::map<std::uint64_t, std::uint64_t> latest_;
};

Decoded decode(const Run& run) { return Decoder(perfetto_trace(run)).result; }

const Slice& find(const Decoded& trace, const std::string& row, const std::string& name,
                  std::size_t nth = 0) {
  for (const Slice& slice : trace.slices) {
    if (slice.row == row && slice.name == name && nth-- == 0) {
      return slice;
    }
  }
  static const Slice kNone;
  ADD_FAILURE() << "no slice " << name << " on " << row;
  return kNone;
}

TEST(Perfetto, OneProcessPerCoreAndOneRowPerEngineAndQueueThatWorked) {
  trena::Run run = hand_made_run();
  run.cores = 2;
  const Decoded trace = decode(run);
  ASSERT_EQ(trace.processes.size(), 2u);
  EXPECT_EQ(trace.processes.begin()->second, "trn2 core 0");
  std::vector<std::string> rows;
  for (const auto& [uuid, name] : trace.rows) {
    rows.push_back(name);
  }
  EXPECT_EQ(rows,
            (std::vector<std::string>{"tensor", "vector", "dma.load", "dma.store", "DMA payload"}));
}

TEST(Perfetto, SlicesSpanTheWorkOfTheirEngine) {
  const Decoded trace = decode(hand_made_run());
  EXPECT_EQ(trace.slices.size(), 4u);
  const Slice& product = find(trace, "tensor", "nc_matmul");
  EXPECT_EQ(product.begin, 3050u);
  EXPECT_EQ(product.end, 6050u);
  EXPECT_DOUBLE_EQ(product.times.at("result_ns"), 6250);
  EXPECT_DOUBLE_EQ(product.times.at("waited_ns"), 3050);
  const Slice& load = find(trace, "dma.load", "dma_copy");
  EXPECT_EQ(load.begin, 750u);
  EXPECT_EQ(load.end, 2750u);
  EXPECT_DOUBLE_EQ(load.times.at("bytes"), 65536);
  EXPECT_DOUBLE_EQ(load.times.at("issue_ns"), 0);
  EXPECT_DOUBLE_EQ(load.times.at("result_ns"), 3050);
}

TEST(Perfetto, SlicesCarryTheLineTheOperandsAndTheEvidence) {
  const Decoded trace = decode(hand_made_run());
  const Slice& product = find(trace, "tensor", "nc_matmul");
  EXPECT_EQ(product.texts.at("line"), "kernel.py:9");
  EXPECT_EQ(product.texts.at("operands"), "acc[128,512] float32 psum <- w[128,128] bfloat16 sbuf");
  EXPECT_EQ(product.texts.at("waited_for"), "dma_copy kernel.py:7");
  EXPECT_EQ(find(trace, "vector", "tensor_copy").texts.at("evidence"), "extrapolated");
}

TEST(Perfetto, ArrowsLeadFromWhatWasWaitedForToWhatWaited) {
  const Decoded trace = decode(hand_made_run());
  const Slice& load = find(trace, "dma.load", "dma_copy");
  const Slice& product = find(trace, "tensor", "nc_matmul");
  const Slice& copy = find(trace, "vector", "tensor_copy");
  const Slice& store = find(trace, "dma.store", "dma_copy");
  ASSERT_EQ(load.flows.size(), 1u);
  EXPECT_EQ(load.flows, product.ended_flows);
  EXPECT_EQ(product.flows, copy.ended_flows);
  EXPECT_EQ(copy.flows, store.ended_flows);
  EXPECT_TRUE(load.ended_flows.empty());
  EXPECT_TRUE(store.flows.empty());
}

TEST(Perfetto, EveryArrowHasOneSourceAndOneEnd) {
  std::map<std::uint64_t, int> sources;
  std::map<std::uint64_t, int> ends;
  for (const Slice& slice : decode(hand_made_run()).slices) {
    for (const std::uint64_t flow : slice.flows) {
      ++sources[flow];
    }
    for (const std::uint64_t flow : slice.ended_flows) {
      ++ends[flow];
    }
  }
  EXPECT_EQ(sources.size(), 3u);
  EXPECT_EQ(sources, ends);
  for (const auto& [flow, count] : sources) {
    EXPECT_EQ(count, 1) << flow;
  }
}

TEST(Perfetto, TransfersInFlightAtOnceTakeLanesOfTheSameName) {
  trena::Run run = hand_made_run();
  run.events.push_back(transfer(kLoads, 8, 80, 900, 2000, 4096));
  const Decoded trace = decode(run);
  int lanes = 0;
  for (const auto& [uuid, name] : trace.rows) {
    lanes += name == "dma.load";
  }
  EXPECT_EQ(lanes, 2);
}

TEST(Perfetto, AnEngineThatHidesWorkBehindTheNextInstructionStillShowsOneAfterTheOther) {
  trena::Run run = hand_made_run();
  run.events.push_back(event("nc_matmul", EngineKind::kTensor, 9, 6000, 7000, 7100));
  const Decoded trace = decode(run);  // the decoder refuses overlaps
  EXPECT_EQ(find(trace, "tensor", "nc_matmul").end, 6000u);
}

TEST(Perfetto, PayloadBandwidthIsTheSumOfTheTransfersInFlight) {
  const Decoded trace = decode(hand_made_run());
  ASSERT_EQ(trace.counter.size(), 4u);
  EXPECT_EQ(trace.counter[0].first, 750u);
  EXPECT_DOUBLE_EQ(trace.counter[0].second, 65536 / 2000.0);
  EXPECT_DOUBLE_EQ(trace.counter[1].second, 0);
  EXPECT_DOUBLE_EQ(trace.counter[2].second, 32768 / 500.0);
}

TEST(Perfetto, SameRunSameBytes) {
  EXPECT_EQ(perfetto_trace(hand_made_run()), perfetto_trace(hand_made_run()));
}

TEST(Perfetto, TheFileHoldsTheTrace) {
  const std::string path = ::testing::TempDir() + "trena.pftrace";
  write_perfetto(hand_made_run(), path);
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  EXPECT_EQ(bytes.str(), perfetto_trace(hand_made_run()));
}

TEST(Perfetto, AFileThatCannotBeWrittenIsAnError) {
  try {
    write_perfetto(hand_made_run(), "/no/such/folder/t.pftrace");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.id(), "file-unwritable");
  }
}

}  // namespace
}  // namespace trena
