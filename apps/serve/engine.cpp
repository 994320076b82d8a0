#include "apps/serve/engine.h"

#include <utility>

#include "models/decoding/not_finite.h"
#include "mulciber/error.h"

namespace mulciber::apps::serve {

Engine::Engine(std::vector<std::unique_ptr<ServedModel>> models, size_t sequences, size_t waiting,
               Metrics& metrics)
    : models_(std::move(models)),
      metrics_(metrics),
      admission_(sequences + waiting),
      thread_([this] { loop(); }) {}

Engine::~Engine() {
  admission_.close("the server is stopping");
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  arrived_.notify_one();
  thread_.join();
}

std::shared_ptr<AnswerChannel> Engine::submit(std::vector<TextJob> jobs) {
  admission_.enter(jobs.size());
  auto channel = std::make_shared<AnswerChannel>();
  {
    const std::lock_guard lock(mutex_);
    for (TextJob& job : jobs) queue_.push_back({nullptr, std::move(job), channel});
  }
  arrived_.notify_one();
  return channel;
}

void Engine::call(const Work& work, const std::function<bool()>& gone) {
  constexpr std::chrono::milliseconds kLook(20);  // at gone()
  admission_.enter(1);
  const auto task = std::make_shared<Task>();
  task->work = work;
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back({task, {}, nullptr});
  }
  arrived_.notify_one();
  std::unique_lock lock(task->mutex);
  while (!task->ended.wait_for(lock, kLook, [&] { return task->done.load(); }))
    if (gone() || cancel_all_) task->cancel = true;
  if (task->error) std::rethrow_exception(task->error);
}

std::optional<std::string> Engine::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

void Engine::loop() {
  bool idle = true;
  std::deque<Waiting> waiting;
  do {
    for (Waiting& next : waiting) begin(next);
    waiting.clear();
    cancel_unwanted();
    idle = !step();
    for (const auto& model : models_)
      if (model->generator)
        metrics_.set_batch({model->id, model->generator->running(), model->generator->waiting(),
                            model->generator->statistics()});
  } while (take(waiting, idle));
}

/// What came since; waits for something where there is nothing else to do. False at the end.
bool Engine::take(std::deque<Waiting>& waiting, bool idle) {
  std::unique_lock lock(mutex_);
  if (idle) arrived_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
  waiting.swap(queue_);
  return !stopping_ || !waiting.empty() || !idle;
}

void Engine::begin(Waiting& next) {
  if (next.task)
    run(*next.task);
  else
    begin_text(std::move(next.job), std::move(next.channel));
}

void Engine::run(Task& task) {
  try {
    if (const auto reason = failure()) throw ApiError(503, *reason, "", "device_failed");
    if (!task.cancel) task.work(task.cancel);
  } catch (const DeviceError& error) {
    task.error = std::current_exception();
    // What did not fit now may fit later; a device that is lost stays lost.
    if (error.kind() == DeviceError::Kind::kLost) fail(error);
  } catch (...) {
    task.error = std::current_exception();
  }
  admission_.leave();
  const std::lock_guard lock(task.mutex);
  task.done = true;
  task.ended.notify_one();
}

void Engine::begin_text(TextJob job, std::shared_ptr<AnswerChannel> channel) {
  const auto active = active_.insert(active_.end(), {job.model, 0, std::move(channel), job.choice});
  BatchRequest& request = job.request;
  request.on_token = [active](const BatchToken& token) {
    AnswerEvent event;
    event.choice = active->choice;
    event.piece = token.piece;
    if (token.log_probability) event.token = {token.id, *token.log_probability};
    for (const TokenProbability& likely : token.likeliest)
      event.likeliest.push_back({likely.id, likely.log_probability});
    active->channel->push(std::move(event));
  };
  request.on_end = [this, active](const Generation& made, std::string_view last_piece) {
    AnswerEvent event;
    event.piece = last_piece;
    event.end = made.end;
    event.prompt_tokens = made.prompt_ids.size();
    event.answer_tokens = made.ids.size();
    end_text(*active, std::move(event));
    active_.erase(active);
  };
  request.on_error = [this, active](const std::exception& error) {
    AnswerEvent event;
    const bool lost = dynamic_cast<const LogitsError*>(&error) != nullptr;
    event.error = lost ? ApiError(500, error.what(), "", "not_finite") : to_api_error(error);
    end_text(*active, std::move(event));
    active_.erase(active);
  };
  try {
    if (const auto reason = failure()) throw ApiError(503, *reason, "", "device_failed");
    active->number = active->model->generator->submit(std::move(request));
  } catch (const std::exception& error) {
    AnswerEvent event;
    event.error = to_api_error(error);
    end_text(*active, std::move(event));
    active_.erase(active);
  }
}

void Engine::end_text(const Active& active, AnswerEvent last) {
  last.choice = active.choice;
  // First: who has the last event may ask again at once.
  admission_.leave();
  active.channel->push(std::move(last));
}

void Engine::cancel_unwanted() {
  for (auto next = active_.begin(); next != active_.end();) {
    Active& active = *next++;  // whose end may take it out of the list
    if (active.cancelled || !(cancel_all_ || active.channel->cancelled())) continue;
    active.cancelled = true;
    active.model->generator->cancel(active.number);
  }
}

bool Engine::step() {
  if (failure()) return false;
  bool busy = false;
  try {
    for (const auto& model : models_)
      if (model->generator) busy |= model->generator->step();
  } catch (const std::exception& error) {
    fail(error);
  }
  return busy;
}

/// The state of the generators is unknown from here on, or the device is gone: nothing is computed
/// any more, and everybody is told why.
void Engine::fail(const std::exception& error) {
  {
    const std::lock_guard lock(mutex_);
    if (failure_) return;
    failure_ = error.what();
  }
  admission_.close(error.what());
  for (const Active& active : active_) {
    AnswerEvent event;
    event.error = ApiError(503, error.what(), "", "device_failed");
    end_text(active, std::move(event));
  }
  active_.clear();
}

}  // namespace mulciber::apps::serve
