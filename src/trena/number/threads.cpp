#include "trena/number/threads.h"

#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/info.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace trena {
namespace {

thread_local bool serial = false;

// Work below this runs on the calling thread: waking another costs several microseconds.
constexpr std::size_t kParallelCostMin = 50'000;
// Ranges per thread, so that a thread that is late does not hold up the others for long.
constexpr std::size_t kRangesPerThread = 4;

struct Pool {
  std::mutex mutex;
  std::atomic<int> count{oneapi::tbb::info::default_concurrency()};
  std::unique_ptr<oneapi::tbb::global_control> limit;  // lets the arena exceed the CPUs
  std::unique_ptr<oneapi::tbb::task_arena> arena;
};

Pool& pool() {
  static Pool instance;
  return instance;
}

oneapi::tbb::task_arena& arena() {
  Pool& current = pool();
  const std::lock_guard lock(current.mutex);
  if (!current.arena) {
    const int count = current.count.load();
    current.limit = std::make_unique<oneapi::tbb::global_control>(
        oneapi::tbb::global_control::max_allowed_parallelism, static_cast<std::size_t>(count));
    current.arena = std::make_unique<oneapi::tbb::task_arena>(count);
  }
  return *current.arena;
}

#if defined(__SSE__)
constexpr unsigned kFlushBits = 0x8040U;  // flush to zero, denormals are zero
unsigned long long read_mode() { return _mm_getcsr(); }
void write_mode(unsigned long long mode) { _mm_setcsr(static_cast<unsigned>(mode)); }
#elif defined(__aarch64__)
// FZ. It tests for tininess before rounding, x86 after: a result that rounds up to 2^-126 differs.
constexpr unsigned long long kFlushBits = 1ULL << 24U;
unsigned long long read_mode() {
  std::uint64_t mode = 0;
  asm volatile("mrs %0, fpcr" : "=r"(mode));
  return mode;
}
void write_mode(unsigned long long mode) {
  asm volatile("msr fpcr, %0" : : "r"(static_cast<std::uint64_t>(mode)));
}
#else
#error "no way to flush denormals on this CPU: values would differ from other machines"
#endif

}  // namespace

void set_thread_count(int count) {
  Pool& current = pool();
  const std::lock_guard lock(current.mutex);
  current.count = std::max(count, 1);
  current.arena.reset();
  current.limit.reset();
}

int thread_count() { return pool().count.load(std::memory_order_relaxed); }

FlushDenormals::FlushDenormals() : saved_(read_mode()) {
  if ((saved_ & kFlushBits) != kFlushBits) {
    write_mode(saved_ | kFlushBits);
  }
}

FlushDenormals::~FlushDenormals() {
  if ((saved_ & kFlushBits) != kFlushBits) {
    write_mode(saved_);
  }
}

SerialScope::SerialScope() : before_(std::exchange(serial, true)) {}
SerialScope::~SerialScope() { serial = before_; }

struct BackgroundTasks::Group {
  oneapi::tbb::task_group tasks;
};

BackgroundTasks::BackgroundTasks() : group_(std::make_unique<Group>()) {}
// A call that has done its work may not have returned yet.
BackgroundTasks::~BackgroundTasks() { wait(); }

void BackgroundTasks::start(std::function<void()> task) {
  arena().execute([&] { group_->tasks.run(std::move(task)); });
}

void BackgroundTasks::wait() {
  arena().execute([&] { group_->tasks.wait(); });
}

namespace detail {
namespace {

// ThreadSanitizer does not see the order that an uninstrumented oneTBB gives to a task and its
// caller.
#if defined(__SANITIZE_THREAD__)
void begins_after(void* what) { __tsan_acquire(what); }
void ends_before(void* what) { __tsan_release(what); }
#else
void begins_after(void*) {}
void ends_before(void*) {}
#endif

}  // namespace

void parallel_ranges(std::size_t count, std::size_t cost_hint, RangeFunction function,
                     void* context) {
  if (count == 0) {
    return;
  }
  const auto threads = static_cast<std::size_t>(thread_count());
  if (threads == 1 || count == 1 || serial || cost_hint < kParallelCostMin) {
    const FlushDenormals flush;
    function(context, 0, count);
    return;
  }
  const std::size_t grain = std::max<std::size_t>(1, count / (threads * kRangesPerThread));
  ends_before(context);
  // Isolated: a thread that waits for the last range must not begin work that takes longer.
  const auto ranges = [&] {
    oneapi::tbb::parallel_for(
        oneapi::tbb::blocked_range<std::size_t>(0, count, grain),
        [&](const oneapi::tbb::blocked_range<std::size_t>& range) {
          begins_after(context);
          const FlushDenormals flush;
          function(context, range.begin(), range.end());
          ends_before(context);
        },
        oneapi::tbb::simple_partitioner());
  };
  arena().execute([&] { oneapi::tbb::this_task_arena::isolate(ranges); });
  begins_after(context);
}

}  // namespace detail
}  // namespace trena
