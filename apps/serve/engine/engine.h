// The thread that owns the device. Everything that computes is handed to it: answers of language
// models, which it makes in batches, and whatever else runs between two steps of those.
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

#include "apps/serve/engine/answer_channel.h"
#include "apps/serve/engine/metrics.h"
#include "apps/serve/engine/served_model.h"

namespace mulciber::apps::serve {

/// A text that one of the language models shall continue. The callbacks of `request` are the
/// engine's.
struct TextJob {
  ServedModel* model = nullptr;
  BatchRequest request;
  uint32_t choice = 0;
};

using ServedModels = std::vector<std::unique_ptr<ServedModel>>;

/// The device behind the engine, which its thread calls.
struct EngineDevice {
  /// Opens it anew and loads the models, of which none is loaded. Without this, a device that is
  /// lost stays lost.
  std::function<void(const ServedModels& models)> reopen = {};
  /// Losses in a row, with no answer completed between them, after which nothing is tried again.
  uint32_t attempts = 5;
  /// Before the second attempt in a row; each further one doubles it, up to half a minute.
  std::chrono::milliseconds pause{500};
  /// Bytes of its memory that are handed out.
  std::function<uint64_t()> used_bytes = [] { return uint64_t{0}; };
  /// Told of losses and reopenings in words.
  std::function<void(const std::string&)> tell = [](const std::string&) {};
};

class Engine {
 public:
  /// Starts the thread. waiting: answers that may wait beside those that grow.
  Engine(ServedModels models, size_t sequences, size_t waiting, Metrics& metrics,
         EngineDevice device = {});
  /// Waits for what is under way; what only waits ends with an error.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  std::span<const std::unique_ptr<ServedModel>> models() const { return models_; }

  /// Takes a request's answers, all or none. From any thread. Throws ApiError: 429, 503.
  std::shared_ptr<AnswerChannel> submit(std::vector<TextJob> jobs);

  /// Runs `work` on the engine's thread between two steps, and waits for it; it should look at
  /// `cancel` now and then, which becomes true once gone() does. What it throws comes out here.
  /// From any thread but the engine's. Throws ApiError as submit(), and where it was cancelled.
  using Work = std::function<void(const std::atomic<bool>& cancel)>;
  void call(const Work& work, const std::function<bool()>& gone);

  /// Has texts join those that a model translates, between two steps, and waits for all of them.
  /// From any thread but the engine's. Throws ApiError as submit(), and what
  /// BatchTranslator::submit() throws of one of them.
  std::vector<Translation> translate(ServedModel& model, std::span<const std::string> texts,
                                     const TranslateOptions& options,
                                     const std::function<bool()>& gone);

  /// For work that call() runs: answers and translations go on by a step, and take in what came for
  /// them since. Other work waits.
  void go_on();

  /// Ends everything that is under way, from any thread.
  void cancel_all() { cancel_all_ = true; }
  Admission& admission() { return admission_; }
  /// Why nothing can be computed now: the device was lost, say. Who asks meanwhile waits in the
  /// queue, unless failed() says that it does not come back.
  std::optional<std::string> trouble() const;
  bool failed() const { return failed_; }

 private:
  /// So often is begun again what was under way when the device was lost.
  static constexpr uint32_t kMostRestarts = 2;
  struct Active {
    TextJob job;
    std::shared_ptr<AnswerChannel> channel;
    uint32_t losses = 0;  // that it has lived through
    uint64_t number = 0;  // of the generator's
    bool begun = false;   // something was told of it
    bool cancelled = false;
  };
  /// Texts that BatchTranslator has.
  struct Translations {
    ServedModel* model = nullptr;
    std::span<const std::string> texts;
    TranslateOptions options;
    std::vector<Translation> made = {};
    std::vector<uint64_t> numbers = {};  // of the BatchTranslator's
    size_t left = 0;                     // that have not ended
    bool cancelled = false;
  };
  struct Task {  // one of the first two
    Work work;
    std::optional<Translations> translations;
    std::atomic<bool> cancel{false}, done{false};
    std::exception_ptr error;
    uint32_t losses = 0;
    std::mutex mutex;
    std::condition_variable ended;
  };
  struct Waiting {  // one of the two
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
  void end_text(const Active& active, AnswerEvent last);
  void end_text(const Active& active, const ApiError& error);
  void cancel_unwanted();
  bool step();
  bool warm_up();
  void show_state();
  // After a loss (engine_recovery.cpp).
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

  mutable std::mutex mutex_;  // of the next three
  std::condition_variable arrived_;
  std::deque<Waiting> queue_;
  bool stopping_ = false;
  std::optional<std::string> trouble_;
  std::atomic<bool> failed_{false};

  std::atomic<bool> cancel_all_{false};
  // Of the engine's thread.
  std::list<Active> active_;
  std::list<std::shared_ptr<Task>> translating_;
  std::deque<Waiting> kept_;  // to be begun once the device is back
  uint32_t losses_in_a_row_ = 0;
  std::thread thread_;
};

}  // namespace mulciber::apps::serve
