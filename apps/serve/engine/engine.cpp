#include "apps/serve/engine/engine.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "mulciber/error.h"

namespace mulciber::apps::serve {
namespace {

/// The statistics of translations in the form of those of answers.
BatchGeneratorStatistics batch_statistics(const ServedModel& model) {
  const BatchTranslatorStatistics& counted = model.translations->statistics();
  const TranslateStatistics& loaded = model.translator->statistics();
  return {.load_seconds = loaded.load_seconds,
          .requests = counted.requests,
          .ended = counted.ended,
          .cancelled = counted.cancelled,
          .prompt_tokens = counted.source_tokens,
          .new_tokens = counted.target_tokens,
          .steps = counted.steps,
          .row_steps = counted.sequence_steps,
          .prefill_seconds = counted.encode_seconds,
          .decode_seconds = counted.decode_seconds,
          .weight_bytes = loaded.weight_bytes};
}

}  // namespace

Engine::Engine(ServedModels models, size_t sequences, size_t waiting, Metrics& metrics,
               EngineDevice device)
    : models_(std::move(models)),
      metrics_(metrics),
      device_(std::move(device)),
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

std::shared_ptr<CompletionChannel> Engine::submit(std::vector<TextJob> jobs) {
  admission_.enter(jobs.size());
  auto channel = std::make_shared<CompletionChannel>();
  {
    const std::lock_guard lock(mutex_);
    for (TextJob& job : jobs)
      queue_.push_back({nullptr, {.job = std::move(job), .channel = channel}});
  }
  arrived_.notify_one();
  return channel;
}

void Engine::call(const Work& work, const std::function<bool()>& gone) {
  const auto task = std::make_shared<Task>();
  task->work = work;
  wait_for(task, gone);
}

std::vector<Translation> Engine::translate(ServedModel& model, std::span<const std::string> texts,
                                           const TranslateOptions& options,
                                           const std::function<bool()>& gone) {
  const auto task = std::make_shared<Task>();
  task->translations = {&model, texts, options};
  wait_for(task, gone);
  return std::move(task->translations->made);
}

/// Hands a task to the engine's thread, and returns when it has ended.
void Engine::wait_for(const std::shared_ptr<Task>& task, const std::function<bool()>& gone) {
  constexpr std::chrono::milliseconds kLook(20);  // interval of gone()
  admission_.enter(1);
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back({task, {}});
  }
  arrived_.notify_one();
  std::unique_lock lock(task->mutex);
  while (!task->ended.wait_for(lock, kLook, [&] { return task->done.load(); }))
    if (gone() || cancel_all_) task->cancel = true;
  if (task->error) std::rethrow_exception(task->error);
  // The results of a cancelled task are incomplete.
  if (!task->cancel) return;
  if (gone()) throw ClientGone{};
  throw ApiError(503, "the server is stopping", "", "unavailable");
}

std::optional<std::string> Engine::trouble() const {
  const std::lock_guard lock(mutex_);
  return trouble_;
}

void Engine::loop() {
  bool idle = true;
  std::deque<Waiting> waiting;
  do {
    idle = !advance(waiting) && !warm_up();
    if (trouble() && !failed_) recover();
    show_state();
  } while (take(waiting, idle));
}

/// Builds one of the pipelines that answers will need: without this, the first long prompt would
/// delay all requests. Returns false where none is left.
bool Engine::warm_up() {
  if (trouble()) return false;
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return false;
  }
  for (const auto& model : models_) {
    if (!model->generator || model->warm) continue;
    try {
      // Finding the pipelines takes a fraction of a second: not before the server listens.
      if (!model->warmup) model->warmup.emplace(*model->generator);
      model->warm = model->warmup->prewarm(1) == 0;
    } catch (const Error&) {
      model->warm = true;  // a request that needs it gets the error
    }
    if (model->warm) model->warmup.reset();
    return true;
  }
  return false;
}

void Engine::go_on() {
  std::deque<Waiting> texts;
  {
    const std::lock_guard lock(mutex_);
    const auto tasks = std::stable_partition(queue_.begin(), queue_.end(), [](const Waiting& next) {
      return !next.task || next.task->translations;
    });
    std::move(queue_.begin(), tasks, std::back_inserter(texts));
    queue_.erase(queue_.begin(), tasks);
  }
  advance(texts);
  show_state();
}

/// Begins what has arrived, and makes a step. Returns false where there was nothing to do.
bool Engine::advance(std::deque<Waiting>& arrived) {
  for (Waiting& next : std::exchange(arrived, {})) begin(next);
  cancel_unwanted();
  return step();
}

void Engine::show_state() {
  for (const auto& model : models_) {
    if (model->generator)
      metrics_.set_batch({model->id, model->generator->running(), model->generator->waiting(),
                          model->generator->statistics()});
    if (model->translations)
      metrics_.set_batch({model->id, model->translations->running(), model->translations->waiting(),
                          batch_statistics(*model)});
  }
  metrics_.set_device_bytes(device_.used_bytes());
}

/// Takes what has arrived; waits for something if idle. Returns false at the end.
bool Engine::take(std::deque<Waiting>& waiting, bool idle) {
  std::unique_lock lock(mutex_);
  if (idle && kept_.empty()) arrived_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
  // Entries that were kept during a device loss came before.
  waiting = std::exchange(kept_, {});
  for (Waiting& next : queue_) waiting.push_back(std::move(next));
  queue_.clear();
  return !stopping_ || !waiting.empty() || !idle;
}

void Engine::begin(Waiting& next) {
  if (trouble() && !failed_)
    kept_.push_back(std::move(next));
  else if (next.task && next.task->translations)
    begin_translations(next.task);
  else if (next.task)
    run(next.task);
  else
    begin_text(std::move(next.text));
}

void Engine::run(const std::shared_ptr<Task>& task) {
  try {
    if (failed_) throw lost_error();
    if (!task->cancel) {
      task->work(task->cancel);
      losses_in_a_row_ = 0;
    }
  } catch (const DeviceError& error) {
    // Work that does not fit into memory now may fit later.
    if (error.kind() == DeviceError::Kind::kLost) {
      lose(error);
      if (!failed_ && ++task->losses <= kMostRestarts) {
        metrics_.count_restart();
        kept_.push_back({task, {}});
        return;
      }
    }
    task->error = std::current_exception();
  } catch (...) {
    task->error = std::current_exception();
  }
  end_task(*task);
}

void Engine::end_task(Task& task) {
  admission_.leave();
  const std::lock_guard lock(task.mutex);
  task.done = true;
  task.ended.notify_one();
}

void Engine::begin_text(Active text) {
  const auto active = active_.insert(active_.end(), std::move(text));
  active->cancelled = false;  // a cancellation before a device loss was the old generator's
  BatchRequest request = active->job.request;
  request.on_token = [active](const BatchToken& token) {
    CompletionEvent event;
    event.choice = active->job.choice;
    event.piece = token.piece;
    if (token.log_probability) event.token = {token.id, *token.log_probability};
    event.likeliest.assign(token.likeliest.begin(), token.likeliest.end());
    active->begun = true;
    active->channel->push(std::move(event));
  };
  request.on_end = [this, active](const Generation& made, std::string_view last_piece) {
    CompletionEvent event;
    event.piece = last_piece;
    const bool enough =
        made.end == GenerateEnd::kCancelled && active->channel->ends(active->job.choice);
    event.end = enough ? GenerateEnd::kStopText : made.end;
    event.prompt_tokens = made.prompt_ids.size();
    event.cached_tokens = made.reused_tokens;
    event.completion_tokens = made.ids.size();
    event.draft_tokens = made.draft_tokens;
    event.accepted_tokens = made.accepted_tokens;
    if (made.end != GenerateEnd::kCancelled) losses_in_a_row_ = 0;
    end_text(*active, std::move(event));
    active_.erase(active);
  };
  request.on_error = [this, active](const std::exception& error) {
    const bool lost = dynamic_cast<const LogitsError*>(&error) != nullptr;
    end_text(*active, lost ? ApiError(500, error.what(), "", "not_finite") : to_api_error(error));
    active_.erase(active);
  };
  try {
    if (failed_) throw lost_error();
    active->number = active->job.model->generator->submit(std::move(request));
  } catch (const std::exception& error) {
    end_text(*active, to_api_error(error));
    active_.erase(active);
  }
}

void Engine::end_text(const Active& active, CompletionEvent last) {
  last.choice = active.job.choice;
  // Admission comes first: the client may send its next request once it has the last event.
  admission_.leave();
  active.channel->push(std::move(last));
}

void Engine::end_text(const Active& active, const ApiError& error) {
  CompletionEvent event;
  event.error = error;
  end_text(active, std::move(event));
}

void Engine::cancel_unwanted() {
  for (auto next = active_.begin(); next != active_.end();) {
    Active& active = *next++;  // its end may take it out of the list
    if (active.cancelled ||
        !(cancel_all_ || active.channel->cancelled() || active.channel->ends(active.job.choice)))
      continue;
    active.cancelled = true;
    active.job.model->generator->cancel(active.number);
  }
  for (const auto& task : translating_)
    if (task->cancel || cancel_all_) cancel_translations(*task);
}

bool Engine::step() {
  if (trouble()) return false;
  bool busy = false;
  try {
    for (const auto& model : models_) {
      if (model->generator) busy |= model->generator->step();
      if (model->translations) busy |= model->translations->step();
    }
  } catch (const std::exception& error) {
    lose(error);
  }
  return busy;
}

}  // namespace mulciber::apps::serve
