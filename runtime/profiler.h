// Device time per node, summed over replays, as a table and as a trace for Perfetto.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/program.h"

namespace mulciber {

/// One timed dispatch.
struct ProfileEvent {
  std::string label;  // layer path
  const Kernel* kernel;
  double start_us;  // since the first event of the device
  double duration_us;
  Work work;
};

/// Times of one kernel row, summed over its dispatches.
struct KernelTotal {
  const Kernel* kernel = nullptr;
  uint64_t dispatches = 0;
  double total_us = 0;
  Work work;
};

class Profiler {
 public:
  /// Adds the events of one replay. ticks: 2 per node, in order. period: nanoseconds per tick.
  void add(const std::vector<Node>& nodes, size_t first_node, const std::vector<uint64_t>& ticks,
           double period);
  const std::vector<ProfileEvent>& events() const { return events_; }
  /// Totals by kernel, longest first.
  std::vector<KernelTotal> totals() const;
  double total_us() const;
  void clear() { events_.clear(); }
  /// Restores events that were read earlier.
  void restore(std::vector<ProfileEvent> events) { events_ = std::move(events); }

  /// A table of time, achieved rates and dispatches per kernel. Floors follow from the peak rates
  /// in bytes and operations per second; at 0 the columns of floor and ratio are left out.
  std::string table(double peak_bytes_per_s, double peak_flops_per_s) const;
  /// Chrome trace event JSON, which Perfetto and about:tracing read.
  std::string trace_json(const std::string& device_name) const;

 private:
  std::vector<ProfileEvent> events_;
  uint64_t origin_ticks_ = 0;
  bool has_origin_ = false;
};

}  // namespace mulciber
