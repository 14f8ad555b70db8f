// Field numbers of the Perfetto trace format, from its public protocol definitions
// (github.com/google/perfetto, protos/perfetto/trace/: trace_packet.proto, interned_data/
// interned_data.proto, track_event/track_event.proto, track_descriptor.proto,
// process_descriptor.proto, counter_descriptor.proto, debug_annotation.proto).
#pragma once

#include <cstdint>

namespace trena::perfetto {

enum class TraceField : std::uint32_t { kPacket = 1 };

enum class PacketField : std::uint32_t {
  kTimestamp = 8,
  kSequenceId = 10,
  kTrackEvent = 11,
  kInternedData = 12,
  kSequenceFlags = 13,
  kTrackDescriptor = 60,
};
inline constexpr std::uint32_t kStateCleared = 1;  // SEQ_INCREMENTAL_STATE_CLEARED
inline constexpr std::uint32_t kNeedsState = 2;    // SEQ_NEEDS_INCREMENTAL_STATE

enum class DescriptorField : std::uint32_t {
  kUuid = 1,
  kName = 2,
  kProcess = 3,
  kParentUuid = 5,
  kCounter = 8,
  kChildOrdering = 11,
  kSiblingRank = 12,
};
inline constexpr std::int32_t kExplicitOrder = 3;  // ChildTracksOrdering::EXPLICIT

enum class ProcessField : std::uint32_t { kPid = 1, kName = 6 };
enum class CounterField : std::uint32_t { kUnitName = 6 };

enum class EventField : std::uint32_t {
  kCategoryIid = 3,
  kAnnotation = 4,
  kType = 9,
  kNameIid = 10,
  kTrackUuid = 11,
  kDoubleCounter = 44,
  kFlowId = 47,
  kTerminatingFlowId = 48,
};
enum class EventType : std::int32_t { kSliceBegin = 1, kSliceEnd = 2, kCounter = 4 };

enum class AnnotationField : std::uint32_t {
  kNameIid = 1,
  kInt = 4,
  kDouble = 5,
  kStringIid = 17,
};

enum class InternedField : std::uint32_t {
  kCategories = 1,
  kEventNames = 2,
  kAnnotationNames = 3,
  kAnnotationStrings = 29,
};
enum class InternedEntryField : std::uint32_t { kIid = 1, kText = 2 };

}  // namespace trena::perfetto
