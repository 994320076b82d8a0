// The thread that owns the device. All computations are handed to it: answers of language models,
// which it makes in batches, and other work, which runs between two decode steps.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "apps/serve/engine/completion_channel.h"
#include "apps/serve/engine/metrics.h"
#include "apps/serve/engine/served_model.h"

namespace mulciber::apps::serve {

/// A text that one of the language models shall continue. The engine sets the callbacks of
/// `request`.
struct TextJob {
  ServedModel* model = nullptr;
  BatchRequest request;
  uint32_t choice = 0;
};

using ServedModels = std::vector<std::unique_ptr<ServedModel>>;

/// The device behind the engine. The engine's thread makes the calls.
struct EngineDevice {
  /// Opens the device anew and loads the models, of which none is loaded. Without this, a lost
  /// device stays lost.
  std::function<void(const ServedModels& models)> reopen = {};
  /// Losses in a row, with no answer completed between them, after which the engine gives up.
  uint32_t attempts = 5;
  /// The pause before the second attempt in a row; each further attempt doubles it, up to half a
  /// minute.
  std::chrono::milliseconds pause{500};
  /// Allocated bytes of device memory.
  std::function<uint64_t()> used_bytes = [] { return uint64_t{0}; };
  /// Reports losses and reopenings in words.
  std::function<void(const std::string&)> tell = [](const std::string&) {};
};

class Engine {
 public:
  /// Starts the thread. waiting: answers that may wait beside those that are decoded.
  Engine(ServedModels models, size_t sequences, size_t waiting, Metrics& metrics,
         EngineDevice device = {});
  /// Waits for answers that are under way; waiting ones end with an error.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  std::span<const std::unique_ptr<ServedModel>> models() const { return models_; }

  /// Submits a request's answers, all or none. From any thread. Throws ApiError: 429, 503.
  std::shared_ptr<CompletionChannel> submit(std::vector<TextJob> jobs);

  /// Runs `work` on the engine's thread between two steps, and waits for it. The work should check
  /// `cancel` now and then, which becomes true once gone() does. Rethrows what the work throws.
  /// From any thread but the engine's. Throws ApiError as submit(), and where it was cancelled.
  using Work = std::function<void(const std::atomic<bool>& cancel)>;
  void call(const Work& work, const std::function<bool()>& gone);

  /// Adds texts to those that a model translates, between two steps, and waits for all of them.
  /// From any thread but the engine's. Throws ApiError as submit(), and what
  /// BatchTranslator::submit() throws for one of them.
  std::vector<Translation> translate(ServedModel& model, std::span<const std::string> texts,
                                     const TranslateOptions& options,
                                     const std::function<bool()>& gone);

  /// Called by work that call() runs: makes a step of answers and translations, and admits those
  /// that have come since. Other work waits.
  void go_on();

  /// Ends all work and answers, from any thread.
  void cancel_all() { cancel_all_ = true; }
  Admission& admission() { return admission_; }
  /// Why nothing can be computed now, for example because the device was lost. New requests wait in
  /// the queue meanwhile, unless failed() says that the device does not come back.
  std::optional<std::string> trouble() const;
  bool failed() const { return failed_; }

 private:
  /// How often work is begun again that was under way when the device was lost.
  static constexpr uint32_t kMostRestarts = 2;
  struct Active {
    TextJob job;
    std::shared_ptr<CompletionChannel> channel;
    uint32_t losses = 0;  // device losses while it was under way
    uint64_t number = 0;  // the generator's number of it
    bool begun = false;   // whether an event of it was sent
    bool cancelled = false;
  };
  /// Texts that a BatchTranslator has.
  struct Translations {
    ServedModel* model = nullptr;
    std::span<const std::string> texts;
    TranslateOptions options;
    std::vector<Translation> made = {};
    std::vector<uint64_t> numbers = {};  // the BatchTranslator's
    size_t left = 0;                     // texts that have not ended
    bool cancelled = false;
  };
  struct Task {  // has work or translations
    Work work;
    std::optional<Translations> translations;
    std::atomic<bool> cancel{false}, done{false};
    std::exception_ptr error;
    uint32_t losses = 0;
    std::mutex mutex;
    std::condition_variable ended;
  };
  struct Waiting {  // has a task or a text
    std::shared_ptr<Task> task;
    Active text;
  };

  void loop();
  bool take(std::deque<Waiting>& waiting, bool idle);
  bool advance(std::deque<Waiting>& arrived);
  void begin(Waiting& next);
  void run(const std::shared_ptr<Task>& task);
  void wait_for(const std::shared_ptr<Task>& task, const std::function<bool()>& gone);
  void begin_translations(const std::shared_ptr<Task>& task);
  void end_translation(const std::shared_ptr<Task>& task);
  void cancel_translations(Task& task);
  void end_task(Task& task);
  void begin_text(Active text);
  void end_text(const Active& active, CompletionEvent last);
  void end_text(const Active& active, const ApiError& error);
  void cancel_unwanted();
  bool step();
  bool warm_up();
  void show_state();
  // Recovery after a device loss (engine_recovery.cpp).
  void lose(const std::exception& error);
  void recover();
  void keep_active();
  bool pause_before_attempt();
  void give_up(const std::string& reason);
  ApiError lost_error() const;

  ServedModels models_;
  Metrics& metrics_;
  EngineDevice device_;
  Admission admission_;

  mutable std::mutex mutex_;  // guards queue_, stopping_ and trouble_
  std::condition_variable arrived_;
  std::deque<Waiting> queue_;
  bool stopping_ = false;
  std::optional<std::string> trouble_;
  std::atomic<bool> failed_{false};

  std::atomic<bool> cancel_all_{false};
  // Used by the engine's thread alone.
  std::list<Active> active_;
  std::list<std::shared_ptr<Task>> translating_;
  std::deque<Waiting> kept_;  // to be begun once the device is back
  uint32_t losses_in_a_row_ = 0;
  std::thread thread_;
};

}  // namespace mulciber::apps::serve
