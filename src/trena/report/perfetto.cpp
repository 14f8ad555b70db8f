#include "trena/report/perfetto.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <protozero/pbf_builder.hpp>
#include <vector>

#include "trena/core/operands.h"
#include "trena/report/perfetto_proto.h"

namespace trena {
namespace {

using perfetto::AnnotationField;
using perfetto::CounterField;
using perfetto::DescriptorField;
using perfetto::EventField;
using perfetto::EventType;
using perfetto::InternedEntryField;
using perfetto::InternedField;
using perfetto::PacketField;
using perfetto::ProcessField;
using perfetto::TraceField;
using protozero::pbf_builder;

constexpr std::uint32_t kSequence = 1;

std::uint64_t nanoseconds(Ticks time) {
  return static_cast<std::uint64_t>((time + kTicksPerNs / 2) / kTicksPerNs);
}

// Texts by number; the packet that first uses one defines it.
class Interned {
 public:
  struct Entry {
    std::uint64_t iid;
    std::string_view text;
  };

  std::uint64_t operator()(std::string_view text) {
    const auto found = iids_.find(text);
    if (found != iids_.end()) {
      return found->second;
    }
    const std::uint64_t iid = iids_.size() + 1;
    const auto added = iids_.emplace(std::string(text), iid).first;
    fresh_.push_back({iid, added->first});
    return iid;
  }
  const std::vector<Entry>& fresh() const { return fresh_; }
  void defined() { fresh_.clear(); }

 private:
  std::map<std::string, std::uint64_t, std::less<>> iids_;
  std::vector<Entry> fresh_;
};

// A row of a core: an engine or a DMA queue, in the order of queue_name().
struct RowKey {
  int core;
  int queue;
  auto operator<=>(const RowKey&) const = default;
};

class Writer {
 public:
  explicit Writer(const Run& run) : run_(run) {
    collect_rows();
    collect_waiters();
  }

  std::string write() {
    for (int core = 0; core < run_.cores; ++core) {
      describe_core(core);
    }
    for (const auto& [key, events] : rows_) {
      write_row(key, events);
    }
    for (int core = 0; core < run_.cores; ++core) {
      write_bandwidth(core);
    }
    return std::move(bytes_);
  }

 private:
  void collect_rows() {
    for (std::size_t k = 0; k < run_.events.size(); ++k) {
      rows_[{run_.events[k].core, run_.events[k].queue}].push_back(k);
    }
    for (auto& [key, events] : rows_) {
      std::stable_sort(events.begin(), events.end(), [&](std::size_t a, std::size_t b) {
        return run_.events[a].start < run_.events[b].start;
      });
    }
  }

  void collect_waiters() {
    waiters_.resize(run_.events.size());
    for (std::size_t k = 0; k < run_.events.size(); ++k) {
      if (run_.events[k].cause != kNoCause) {
        waiters_[static_cast<std::size_t>(run_.events[k].cause)].push_back(k);
      }
    }
  }

  // The arrow to an event from what it waited for; 0 is no id.
  static std::uint64_t flow_to(std::size_t event) { return event + 1; }

  // ---- Packets ----

  template <typename Fill>
  void packet(std::uint64_t timestamp, Fill&& fill) {
    std::string body;
    pbf_builder<PacketField> packet(body);
    packet.add_uint64(PacketField::kTimestamp, timestamp);
    finish_packet(packet, fill);
    append(body);
  }

  template <typename Fill>
  void finish_packet(pbf_builder<PacketField>& packet, Fill&& fill) {
    packet.add_uint32(PacketField::kSequenceId, kSequence);
    packet.add_uint32(
        PacketField::kSequenceFlags,
        bytes_.empty() ? perfetto::kStateCleared | perfetto::kNeedsState : perfetto::kNeedsState);
    std::string payload;
    const PacketField field = fill(payload);
    define_texts(packet);
    packet.add_message(field, payload);
  }

  void append(const std::string& body) {
    pbf_builder<TraceField> trace(bytes_);
    trace.add_message(TraceField::kPacket, body);
  }

  void define_texts(pbf_builder<PacketField>& packet) {
    std::string data;
    pbf_builder<InternedField> interned(data);
    define(interned, InternedField::kCategories, categories_);
    define(interned, InternedField::kEventNames, names_);
    define(interned, InternedField::kAnnotationNames, keys_);
    define(interned, InternedField::kAnnotationStrings, texts_);
    if (!data.empty()) {
      packet.add_message(PacketField::kInternedData, data);
    }
  }

  static void define(pbf_builder<InternedField>& interned, InternedField field, Interned& table) {
    for (const Interned::Entry& entry : table.fresh()) {
      pbf_builder<InternedEntryField> item(interned, field);
      item.add_uint64(InternedEntryField::kIid, entry.iid);
      item.add_string(InternedEntryField::kText, entry.text.data(), entry.text.size());
    }
    table.defined();
  }

  // ---- Rows ----

  static std::uint64_t core_uuid(int core) { return static_cast<std::uint64_t>(core) + 1; }

  void describe_core(int core) {
    packet(0, [&](std::string& payload) {
      pbf_builder<DescriptorField> descriptor(payload);
      descriptor.add_uint64(DescriptorField::kUuid, core_uuid(core));
      {
        pbf_builder<ProcessField> process(descriptor, DescriptorField::kProcess);
        process.add_int32(ProcessField::kPid, core + 1);
        process.add_string(ProcessField::kName, fmt::format("{} core {}", run_.machine, core));
      }
      descriptor.add_enum(DescriptorField::kChildOrdering, perfetto::kExplicitOrder);
      return PacketField::kTrackDescriptor;
    });
  }

  std::uint64_t new_track(int core, const std::string& name, std::string_view counter_unit = {}) {
    const std::uint64_t uuid = core_uuid(run_.cores) + track_count_++;
    packet(0, [&](std::string& payload) {
      pbf_builder<DescriptorField> descriptor(payload);
      descriptor.add_uint64(DescriptorField::kUuid, uuid);
      descriptor.add_string(DescriptorField::kName, name);
      descriptor.add_uint64(DescriptorField::kParentUuid, core_uuid(core));
      if (!counter_unit.empty()) {
        pbf_builder<CounterField> counter(descriptor, DescriptorField::kCounter);
        counter.add_string(CounterField::kUnitName, counter_unit.data(), counter_unit.size());
      }
      descriptor.add_int32(DescriptorField::kSiblingRank, static_cast<std::int32_t>(track_count_));
      return PacketField::kTrackDescriptor;
    });
    return uuid;
  }

  // An engine starts one instruction after the other; transfers of a queue overlap and take lanes,
  // which the viewer draws as one row because they share parent and name.
  void write_row(const RowKey& key, const std::vector<std::size_t>& events) {
    std::vector<std::uint64_t> lanes;
    std::vector<Ticks> free_from;
    for (std::size_t k = 0; k < events.size(); ++k) {
      const RunEvent& event = run_.events[events[k]];
      Ticks end = std::max(event.start, event.busy_until);
      if (!event.dma && k + 1 < events.size()) {
        end = std::min(end, run_.events[events[k + 1]].start);
      }
      std::size_t lane = 0;
      while (lane < lanes.size() && free_from[lane] > event.start) {
        ++lane;
      }
      if (lane == lanes.size()) {
        lanes.push_back(new_track(key.core, queue_name(key.queue)));
        free_from.push_back(0);
      }
      free_from[lane] = end;
      write_slice(events[k], end, lanes[lane]);
    }
  }

  void write_slice(std::size_t number, Ticks until, std::uint64_t track) {
    const RunEvent& event = run_.events[number];
    packet(nanoseconds(event.start), [&](std::string& payload) {
      pbf_builder<EventField> begin(payload);
      begin.add_enum(EventField::kType, static_cast<std::int32_t>(EventType::kSliceBegin));
      begin.add_uint64(EventField::kTrackUuid, track);
      begin.add_uint64(EventField::kNameIid, names_(event.name));
      begin.add_uint64(EventField::kCategoryIid, categories_(event.dma ? "dma" : "engine"));
      annotate(begin, event);
      for (const std::size_t waiter : waiters_[number]) {
        begin.add_fixed64(EventField::kFlowId, flow_to(waiter));
      }
      if (event.cause != kNoCause) {
        begin.add_fixed64(EventField::kTerminatingFlowId, flow_to(number));
      }
      return PacketField::kTrackEvent;
    });
    packet(nanoseconds(until), [&](std::string& payload) {
      pbf_builder<EventField> end(payload);
      end.add_enum(EventField::kType, static_cast<std::int32_t>(EventType::kSliceEnd));
      end.add_uint64(EventField::kTrackUuid, track);
      return PacketField::kTrackEvent;
    });
  }

  // ---- Annotations ----

  void text(pbf_builder<EventField>& begin, std::string_view key, std::string_view value) {
    pbf_builder<AnnotationField> annotation(begin, EventField::kAnnotation);
    annotation.add_uint64(AnnotationField::kNameIid, keys_(key));
    annotation.add_uint64(AnnotationField::kStringIid, texts_(value));
  }

  void number(pbf_builder<EventField>& begin, std::string_view key, std::int64_t value) {
    pbf_builder<AnnotationField> annotation(begin, EventField::kAnnotation);
    annotation.add_uint64(AnnotationField::kNameIid, keys_(key));
    annotation.add_int64(AnnotationField::kInt, value);
  }

  void time(pbf_builder<EventField>& begin, std::string_view key, Ticks value) {
    pbf_builder<AnnotationField> annotation(begin, EventField::kAnnotation);
    annotation.add_uint64(AnnotationField::kNameIid, keys_(key));
    annotation.add_double(AnnotationField::kDouble, ns_from_ticks(value));
  }

  std::string line(Position position) const {
    const bool known = position.line > 0 && position.file < run_.files.size();
    return known ? fmt::format("{}:{}", run_.files[position.file], position.line) : std::string();
  }

  void annotate(pbf_builder<EventField>& begin, const RunEvent& event) {
    if (const std::string where = line(event.position); !where.empty()) {
      text(begin, "line", where);
    }
    if (!event.label.empty()) {
      text(begin, "name", event.label);
    }
    if (const OperandText* operands = find_operands(run_.operands, event.position, event.name)) {
      text(begin, "operands", operands->text);
    }
    if (event.spill) {
      text(begin, "inserted by", "placement (spill)");
    }
    if (event.evidence) {
      text(begin, "evidence", to_string(*event.evidence));
    }
    annotate_times(begin, event);
  }

  void annotate_times(pbf_builder<EventField>& begin, const RunEvent& event) {
    if (event.dma) {
      number(begin, "bytes", event.bytes);
      time(begin, "issue_ns", event.issue);
    }
    time(begin, "start_ns", event.start);
    time(begin, "busy_until_ns", event.busy_until);
    time(begin, "result_ns", event.end);
    if (event.stall > 0) {
      time(begin, "waited_ns", event.stall);
    }
    if (event.cause != kNoCause) {
      const RunEvent& cause = run_.events[static_cast<std::size_t>(event.cause)];
      text(begin, "waited_for", fmt::format("{} {}", cause.name, line(cause.position)));
    }
  }

  // ---- Counter ----

  // The sum of the mean rates of the transfers in flight.
  void write_bandwidth(int core) {
    std::map<Ticks, double> changes;
    for (const RunEvent& event : run_.events) {
      if (event.dma && event.core == core && event.busy_until > event.start) {
        const double rate =
            static_cast<double>(event.bytes) / ns_from_ticks(event.busy_until - event.start);
        changes[event.start] += rate;
        changes[event.busy_until] -= rate;
      }
    }
    if (changes.empty()) {
      return;
    }
    const std::uint64_t track = new_track(core, "DMA payload", "GB/s");
    double rate = 0;
    for (const auto& [when, change] : changes) {
      rate = std::max(0.0, rate + change);
      packet(nanoseconds(when), [&](std::string& payload) {
        pbf_builder<EventField> counter(payload);
        counter.add_enum(EventField::kType, static_cast<std::int32_t>(EventType::kCounter));
        counter.add_uint64(EventField::kTrackUuid, track);
        counter.add_double(EventField::kDoubleCounter, rate);
        return PacketField::kTrackEvent;
      });
    }
  }

  const Run& run_;
  std::map<RowKey, std::vector<std::size_t>> rows_;  // events by start
  std::vector<std::vector<std::size_t>> waiters_;
  std::string bytes_;
  std::uint64_t track_count_ = 0;
  Interned categories_;
  Interned names_;
  Interned keys_;
  Interned texts_;
};

}  // namespace

std::string perfetto_trace(const Run& run) { return Writer(run).write(); }

void write_perfetto(const Run& run, const std::string& path) {
  const std::string bytes = perfetto_trace(run);
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file) {
    throw Error(ErrorKind::kUsage, "file-unwritable",
                {.rule = "a report goes to a file that can be written", .here = path});
  }
}

}  // namespace trena
