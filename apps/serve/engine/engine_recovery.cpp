// Recovery of Engine (engine.h) from a device loss: nothing on the device can be used any more, so
// the device is opened anew, the models are loaded again, and all requests are kept until then.
#include <fmt/format.h>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include <algorithm>
#include <utility>

#include "apps/serve/engine/engine.h"

namespace mulciber::apps::serve {

ApiError Engine::lost_error() const {
  return {503, trouble().value_or("the device was lost"), "", "device_failed"};
}

/// The state of the generators is unknown from here on, or the device is gone.
void Engine::lose(const std::exception& error) {
  if (trouble()) return;
  {
    const std::lock_guard lock(mutex_);
    trouble_ = error.what();
  }
  metrics_.count_loss();
  device_.tell(fmt::format("the device failed: {}", error.what()));
  ++losses_in_a_row_;
  if (!device_.reopen || losses_in_a_row_ > device_.attempts) give_up(error.what());
}

void Engine::recover() {
  keep_active();
  for (const auto& model : models_) model->unload();
#if defined(__GLIBC__)
  // Memory freed after loading would otherwise be kept, and allocated a second time.
  malloc_trim(0);
#endif
  while (true) {
    if (!pause_before_attempt()) return give_up("the server is stopping");
    try {
      device_.reopen(models_);
      break;
    } catch (const std::exception& error) {
      for (const auto& model : models_) model->unload();
      device_.tell(fmt::format("the device cannot be opened again: {}", error.what()));
      if (++losses_in_a_row_ > device_.attempts) return give_up(error.what());
    }
  }
  {
    const std::lock_guard lock(mutex_);
    trouble_.reset();
  }
  metrics_.count_reopening();
  device_.tell("the device is open again");
}

/// Requests under way wait for the device in the order in which they came, before later ones. A
/// request that was under way in several losses may be their cause.
void Engine::keep_active() {
  std::deque<Waiting> kept;
  for (Active& active : active_) {
    if (++active.losses > kMostRestarts) {
      end_text(active, lost_error());
      continue;
    }
    if (std::exchange(active.begun, false)) {
      CompletionEvent event;
      event.choice = active.job.choice;
      event.again = true;
      active.channel->push(std::move(event));
    }
    metrics_.count_restart();
    kept.push_back({nullptr, std::move(active)});
  }
  active_.clear();
  for (const std::shared_ptr<Task>& task : std::exchange(translating_, {})) {
    if (++task->losses > kMostRestarts) {
      task->error = std::make_exception_ptr(lost_error());
      end_task(*task);
      continue;
    }
    metrics_.count_restart();
    kept.push_back({task, {}});
  }
  std::ranges::move(kept_, std::back_inserter(kept));
  kept_ = std::move(kept);
}

/// Returns false where the server stops meanwhile.
bool Engine::pause_before_attempt() {
  using std::chrono::milliseconds;
  constexpr milliseconds kLongest(30'000), kLook(50);
  milliseconds pause{0};
  if (losses_in_a_row_ > 1)
    pause = std::min(kLongest, device_.pause * (1u << std::min(losses_in_a_row_ - 2, 16u)));
  const auto end = std::chrono::steady_clock::now() + pause;
  std::unique_lock lock(mutex_);
  while (!stopping_ && !cancel_all_) {
    const auto now = std::chrono::steady_clock::now();
    if (now >= end) return true;
    arrived_.wait_for(lock, std::min<std::chrono::steady_clock::duration>(end - now, kLook));
  }
  return false;
}

/// Ends all requests with the reason; nothing is computed any more.
void Engine::give_up(const std::string& reason) {
  {
    const std::lock_guard lock(mutex_);
    trouble_ = reason;
  }
  failed_ = true;
  admission_.close(reason);
  for (const Active& active : active_) end_text(active, lost_error());
  active_.clear();
  for (const std::shared_ptr<Task>& task : std::exchange(translating_, {})) {
    task->error = std::make_exception_ptr(lost_error());
    end_task(*task);
  }
  for (const Waiting& waiting : std::exchange(kept_, {})) {
    if (!waiting.task) {
      end_text(waiting.text, lost_error());
      continue;
    }
    waiting.task->error = std::make_exception_ptr(lost_error());
    end_task(*waiting.task);
  }
}

}  // namespace mulciber::apps::serve
