// The server's counters, in the format of Prometheus.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "mulciber/batch_generator.h"

namespace mulciber::apps::serve {

/// A histogram of seconds with bounds that double (Prometheus' histogram).
class Histogram {
 public:
  void add(double seconds);
  void write(std::string& to, const std::string& name) const;

 private:
  static constexpr size_t kBounds = 16;  // 1 ms to 33 s
  std::array<uint64_t, kBounds + 1> counts_ = {};
  double sum_ = 0;
};

/// Thread-safe.
class Metrics {
 public:
  /// The state of a language model between two steps.
  struct Batch {
    std::string model;
    size_t running = 0, waiting = 0;
    BatchGeneratorStatistics statistics;
  };

  void count_request(const std::string& endpoint, int status, double seconds);
  void count_first_token(double seconds);
  void count_next_token(double seconds);
  void set_batch(Batch batch);
  // Count device losses, reopenings, and requests that are begun again after a loss.
  void count_loss();
  void count_reopening();
  void count_restart();
  void set_device_bytes(uint64_t bytes);

  /// The text format, version 0.0.4. queued: answers under way and waiting; failed: whether the
  /// device is lost for good.
  std::string text(size_t queued, bool failed) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::pair<std::string, int>, uint64_t> requests_;
  std::map<std::string, Batch> batches_;
  uint64_t losses_ = 0, reopenings_ = 0, restarts_ = 0, device_bytes_ = 0;
  Histogram seconds_, first_token_, next_token_;
};

}  // namespace mulciber::apps::serve
