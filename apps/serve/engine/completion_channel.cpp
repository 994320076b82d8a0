#include "apps/serve/engine/completion_channel.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace mulciber::apps::serve {

void CompletionChannel::push(CompletionEvent event) {
  {
    const std::lock_guard lock(mutex_);
    if (event.again) ended_.erase(event.choice);
    events_.push_back(std::move(event));
  }
  arrived_.notify_one();
}

std::optional<CompletionEvent> CompletionChannel::pop(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  if (!arrived_.wait_for(lock, time, [this] { return !events_.empty(); })) return std::nullopt;
  CompletionEvent event = std::move(events_.front());
  events_.pop_front();
  return event;
}

void CompletionChannel::end(uint32_t choice) {
  const std::lock_guard lock(mutex_);
  const bool begins_again = std::ranges::any_of(
      events_, [&](const CompletionEvent& event) { return event.again && event.choice == choice; });
  if (!begins_again) ended_.insert(choice);
}

bool CompletionChannel::ends(uint32_t choice) const {
  const std::lock_guard lock(mutex_);
  return ended_.contains(choice);
}

void Admission::enter(size_t count) {
  const std::lock_guard lock(mutex_);
  if (closed_) throw ApiError(503, *closed_, "", "unavailable").retry_after(5);
  if (count > most_)
    refuse("n",
           fmt::format("asks for {} answers at once; this server takes {} at most", count, most_));
  if (inside_ + count > most_)
    throw ApiError(
        429, fmt::format("{} answers are under way or wait already; try again later", inside_), "",
        "queue_full")
        .retry_after(1);
  inside_ += count;
}

void Admission::leave(size_t count) {
  {
    const std::lock_guard lock(mutex_);
    inside_ -= count;
  }
  left_.notify_all();
}

void Admission::close(const std::string& reason) {
  const std::lock_guard lock(mutex_);
  if (!closed_) closed_ = reason;
}

bool Admission::wait_until_empty(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  return left_.wait_for(lock, time, [this] { return inside_ == 0; });
}

size_t Admission::inside() const {
  const std::lock_guard lock(mutex_);
  return inside_;
}

std::optional<std::string> Admission::closed() const {
  const std::lock_guard lock(mutex_);
  return closed_;
}

}  // namespace mulciber::apps::serve
