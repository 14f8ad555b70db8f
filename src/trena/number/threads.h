// Threads of the number kernels (oneTBB). No result depends on how many there are.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

namespace trena {

// At least 1; the default is the number of CPUs. May exceed it. Not to be called while kernels run.
void set_thread_count(int count);
int thread_count();

// While alive, denormal inputs and results of float operations on this thread are zero; restored on
// destruction.
class FlushDenormals {
 public:
  FlushDenormals();
  ~FlushDenormals();
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
  unsigned long long saved_;
};

// While alive, parallel_for_partitions on this thread stays on it: the others have work of their
// own.
class SerialScope {
 public:
  SerialScope();
  ~SerialScope();
  SerialScope(const SerialScope&) = delete;
  SerialScope& operator=(const SerialScope&) = delete;

 private:
  bool before_;
};

// Calls that run on the pool's threads while the caller goes on.
class BackgroundTasks {
 public:
  BackgroundTasks();
  ~BackgroundTasks();  // waits
  // From any thread; `task` must not throw.
  void start(std::function<void()> task);
  // Helps until all are done, those too that they start.
  void wait();

 private:
  struct Group;
  std::unique_ptr<Group> group_;
};

namespace detail {
using RangeFunction = void (*)(void* context, std::size_t begin, std::size_t end);
void parallel_ranges(std::size_t count, std::size_t cost_hint, RangeFunction function,
                     void* context);
}  // namespace detail

// Calls fn(begin, end) so that the ranges cover 0 … count-1 once each, on several threads when
// `cost_hint`, the whole work in units of about one nanosecond (say, elements touched), is worth
// it. fn runs with denormals flushed. Each index must write only what is its own. An exception of
// fn reaches the caller.
template <typename Function>
void parallel_for_partitions(std::size_t count, std::size_t cost_hint, Function&& fn) {
  using Callable = std::remove_reference_t<Function>;
  detail::parallel_ranges(
      count, cost_hint,
      [](void* context, std::size_t begin, std::size_t end) {
        (*static_cast<Callable*>(context))(begin, end);
      },
      const_cast<void*>(static_cast<const void*>(&fn)));
}

}  // namespace trena
