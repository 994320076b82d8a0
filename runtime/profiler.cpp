#include "runtime/profiler.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace mulciber {

void Profiler::add(const std::vector<Node>& nodes, size_t first_node,
                   const std::vector<uint64_t>& ticks, double period) {
  if (ticks.empty()) return;
  if (!has_origin_) {
    origin_ticks_ = ticks[0];
    has_origin_ = true;
  }
  for (size_t i = 0; i * 2 + 1 < ticks.size(); ++i) {
    const Node& node = nodes[first_node + i];
    // A tick counter may wrap between two replays; such an event keeps its duration and starts at
    // 0.
    double start = ticks[2 * i] >= origin_ticks_
                       ? static_cast<double>(ticks[2 * i] - origin_ticks_) * period / 1000
                       : 0;
    double duration = static_cast<double>(ticks[2 * i + 1] - ticks[2 * i]) * period / 1000;
    events_.push_back({node.label, node.kernel, start, duration, node.work});
  }
}

std::vector<KernelTotal> Profiler::totals() const {
  std::map<const Kernel*, KernelTotal> by_kernel;
  for (const ProfileEvent& event : events_) {
    KernelTotal& total = by_kernel[event.kernel];
    total.kernel = event.kernel;
    ++total.dispatches;
    total.total_us += event.duration_us;
    total.work.bytes += event.work.bytes;
    total.work.flops += event.work.flops;
  }
  std::vector<KernelTotal> list;
  for (auto& [kernel, total] : by_kernel) list.push_back(total);
  std::sort(list.begin(), list.end(),
            [](const KernelTotal& a, const KernelTotal& b) { return a.total_us > b.total_us; });
  return list;
}

double Profiler::total_us() const {
  double total = 0;
  for (const ProfileEvent& event : events_) total += event.duration_us;
  return total;
}

std::string Profiler::table(double peak_bytes_per_s, double peak_flops_per_s) const {
  const bool floors = peak_bytes_per_s > 0 && peak_flops_per_s > 0;
  std::string text = fmt::format("{:<36}{:>10}{:>12}{:>7}{:>10}{:>10}", "kernel", "dispatches",
                                 "ms", "%", "GFLOP/s", "GB/s");
  text += floors ? fmt::format("{:>10}{:>8}\n", "floor ms", "ratio") : "\n";
  double all = total_us();
  for (const KernelTotal& total : totals()) {
    double seconds = total.total_us * 1e-6;
    double per_second = seconds > 0 ? 1 / seconds : 0;
    text += fmt::format("{:<36}{:>10}{:>12.3f}{:>7.1f}{:>10.2f}{:>10.2f}", total.kernel->id,
                        total.dispatches, total.total_us / 1000,
                        all > 0 ? 100 * total.total_us / all : 0,
                        static_cast<double>(total.work.flops) * per_second * 1e-9,
                        static_cast<double>(total.work.bytes) * per_second * 1e-9);
    if (floors) {
      double floor = std::max(static_cast<double>(total.work.bytes) / peak_bytes_per_s,
                              static_cast<double>(total.work.flops) / peak_flops_per_s);
      text += fmt::format("{:>10.3f}{:>8.2f}", floor * 1000, floor > 0 ? seconds / floor : 0);
    }
    text += "\n";
  }
  text += fmt::format("{:<36}{:>10}{:>12.3f}\n", "total", events_.size(), all / 1000);
  return text;
}

std::string Profiler::trace_json(const std::string& device_name) const {
  nlohmann::json list = nlohmann::json::array();
  list.push_back(
      {{"name", "process_name"}, {"ph", "M"}, {"pid", 1}, {"args", {{"name", device_name}}}});
  list.push_back({{"name", "thread_name"},
                  {"ph", "M"},
                  {"pid", 1},
                  {"tid", 1},
                  {"args", {{"name", "compute queue"}}}});
  for (const ProfileEvent& event : events_) {
    list.push_back({{"name", event.label},
                    {"cat", name_of(event.kernel->op)},
                    {"ph", "X"},
                    {"pid", 1},
                    {"tid", 1},
                    {"ts", event.start_us},
                    {"dur", event.duration_us},
                    {"args",
                     {{"kernel", event.kernel->id},
                      {"bytes", event.work.bytes},
                      {"flops", event.work.flops}}}});
  }
  return nlohmann::json{{"traceEvents", list}, {"displayTimeUnit", "ms"}}.dump();
}

}  // namespace mulciber
