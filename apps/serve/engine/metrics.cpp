#include "apps/serve/engine/metrics.h"

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>

namespace mulciber::apps::serve {
namespace {

constexpr double kLeastBound = 0.001;

void head(std::string& to, const char* name, const char* type, const char* help) {
  fmt::format_to(std::back_inserter(to), "# HELP mulciber_{} {}\n# TYPE mulciber_{} {}\n", name,
                 help, name, type);
}

/// The value of a label. Models are named after their files, whose names may hold any characters.
std::string quoted(const std::string& text) {
  std::string made;
  for (const char c : text) {
    if (c == '\\' || c == '"') made += '\\';
    made += c == '\n' ? ' ' : c;
  }
  return made;
}

/// Returns 0 where the system gives no number.
uint64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  uint64_t all = 0, resident = 0;
  if (!(file >> all >> resident)) return 0;
  return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

void Histogram::add(double seconds) {
  size_t bucket = 0;
  for (double bound = kLeastBound; bucket < kBounds && seconds > bound; bound *= 2) ++bucket;
  ++counts_[bucket];
  sum_ += seconds;
}

void Histogram::write(std::string& to, const std::string& name) const {
  uint64_t count = 0;
  double bound = kLeastBound;
  for (size_t i = 0; i < kBounds; ++i, bound *= 2) {
    count += counts_[i];
    fmt::format_to(std::back_inserter(to), "mulciber_{}_bucket{{le=\"{:g}\"}} {}\n", name, bound,
                   count);
  }
  count += counts_[kBounds];
  fmt::format_to(std::back_inserter(to),
                 "mulciber_{0}_bucket{{le=\"+Inf\"}} {1}\nmulciber_{0}_sum {2:g}\n"
                 "mulciber_{0}_count {1}\n",
                 name, count, sum_);
}

void Metrics::count_request(const std::string& endpoint, int status, double seconds) {
  const std::lock_guard lock(mutex_);
  ++requests_[{endpoint, status}];
  seconds_.add(seconds);
}

void Metrics::count_first_token(double seconds) {
  const std::lock_guard lock(mutex_);
  first_token_.add(seconds);
}

void Metrics::count_next_token(double seconds) {
  const std::lock_guard lock(mutex_);
  next_token_.add(seconds);
}

void Metrics::set_batch(Batch batch) {
  const std::lock_guard lock(mutex_);
  batches_.insert_or_assign(batch.model, std::move(batch));
}

void Metrics::count_loss() {
  const std::lock_guard lock(mutex_);
  ++losses_;
}

void Metrics::count_reopening() {
  const std::lock_guard lock(mutex_);
  ++reopenings_;
}

void Metrics::count_restart() {
  const std::lock_guard lock(mutex_);
  ++restarts_;
}

void Metrics::set_device_bytes(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  device_bytes_ = bytes;
}

std::string Metrics::text(size_t queued, bool failed) const {
  const std::lock_guard lock(mutex_);
  std::string to;
  const auto one = [&](const char* name, const char* type, const char* help, uint64_t value) {
    head(to, name, type, help);
    fmt::format_to(std::back_inserter(to), "mulciber_{} {}\n", name, value);
  };
  one("device_lost", "gauge", "1 while the device computes nothing.", failed ? 1 : 0);
  one("device_losses_total", "counter", "How often the device was lost.", losses_);
  one("device_reopenings_total", "counter", "How often it was opened again.", reopenings_);
  one("restarts_total", "counter", "What was under way then and was begun again.", restarts_);
  one("device_bytes", "gauge", "Handed out of the device's memory.", device_bytes_);
  one("resident_bytes", "gauge", "Of main memory, as the system counts the process.",
      resident_bytes());
  one("completions", "gauge", "Completions under way and waiting.", queued);
  one("answers", "gauge", "Deprecated name of mulciber_completions.", queued);
  head(to, "requests_total", "counter", "Requests answered, by endpoint and status.");
  for (const auto& [key, count] : requests_)
    fmt::format_to(std::back_inserter(to),
                   "mulciber_requests_total{{endpoint=\"{}\",status=\"{}\"}} {}\n",
                   quoted(key.first), key.second, count);

  const auto each = [&](const char* name, const char* type, const char* help, auto value) {
    head(to, name, type, help);
    for (const auto& [model, batch] : batches_)
      fmt::format_to(std::back_inserter(to), "mulciber_{}{{model=\"{}\"}} {}\n", name,
                     quoted(model), value(batch));
  };
  each("batch_running", "gauge", "Sequences in slots of the batch now.",
       [](const Batch& b) { return b.running; });
  each("batch_waiting", "gauge", "Requests that wait for a slot.",
       [](const Batch& b) { return b.waiting; });
  each("prompt_tokens_total", "counter", "Tokens of prompts.",
       [](const Batch& b) { return b.statistics.prompt_tokens; });
  each("reused_tokens_total", "counter",
       "Of these, whose keys and values were held of an earlier prompt.",
       [](const Batch& b) { return b.statistics.reused_tokens; });
  each("new_tokens_total", "counter", "Tokens of completions.",
       [](const Batch& b) { return b.statistics.new_tokens; });
  each("steps_total", "counter", "Steps of decoding.",
       [](const Batch& b) { return b.statistics.steps; });
  each("row_steps_total", "counter",
       "Sequences that took part in them: over mulciber_steps_total, the mean size of a batch.",
       [](const Batch& b) { return b.statistics.row_steps; });
  each("draft_tokens_total", "counter", "Draft tokens of speculative decoding.",
       [](const Batch& b) { return b.statistics.draft_tokens; });
  each("accepted_tokens_total", "counter", "Draft tokens that the model chose too.",
       [](const Batch& b) { return b.statistics.accepted_tokens; });
  each("proposed_tokens_total", "counter", "draft_tokens_total, by its name in 0.1.",
       [](const Batch& b) { return b.statistics.draft_tokens; });
  each("prefill_seconds_total", "counter", "Time of passes over prompts.",
       [](const Batch& b) { return b.statistics.prefill_seconds; });
  each("decode_seconds_total", "counter", "Time of steps of decoding.",
       [](const Batch& b) { return b.statistics.decode_seconds; });
  each("build_seconds_total", "counter", "Time of making and recording programs, apart from these.",
       [](const Batch& b) { return b.statistics.build_seconds; });
  each("cancelled_total", "counter", "Completions that nobody waited for any more.",
       [](const Batch& b) { return b.statistics.cancelled; });
  each("preemptions_total", "counter", "Sequences that lost their slot because pages ran out.",
       [](const Batch& b) { return b.statistics.preemptions; });
  each("gave_way_total", "counter", "preemptions_total, by its name in 0.1.",
       [](const Batch& b) { return b.statistics.preemptions; });
  each("pages", "gauge", "Of memory for keys and values.",
       [](const Batch& b) { return b.statistics.pages; });
  each("pages_used", "gauge", "Of these, which running sequences hold.",
       [](const Batch& b) { return b.statistics.pages_used; });
  each("weight_bytes", "gauge", "Of the model's weights on the device.",
       [](const Batch& b) { return b.statistics.weight_bytes; });
  each("peak_device_bytes", "gauge", "Handed out of the device's memory at most.",
       [](const Batch& b) { return b.statistics.peak_device_bytes; });

  head(to, "request_seconds", "histogram", "From a request's first byte to its answer's last.");
  seconds_.write(to, "request_seconds");
  head(to, "first_token_seconds", "histogram",
       "From a request to the first token of its completion.");
  first_token_.write(to, "first_token_seconds");
  head(to, "next_token_seconds", "histogram", "From one token of a completion to the next.");
  next_token_.write(to, "next_token_seconds");
  return to;
}

}  // namespace mulciber::apps::serve
