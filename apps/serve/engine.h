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

#include "apps/serve/answer_channel.h"
#include "apps/serve/metrics.h"
#include "apps/serve/served_model.h"

namespace mulciber::apps::serve {

/// A text that one of the language models shall continue. The callbacks of `request` are the
/// engine's.
struct TextJob {
  ServedModel* model = nullptr;
  BatchRequest request;
  uint32_t choice = 0;
};

class Engine {
 public:
  /// Starts the thread. waiting: answers that may wait beside those that grow.
  Engine(std::vector<std::unique_ptr<ServedModel>> models, size_t sequences, size_t waiting,
         Metrics& metrics);
  /// Waits for what is under way; what only waits ends with an error.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  std::span<const std::unique_ptr<ServedModel>> models() const { return models_; }

  /// Takes a request's answers, all or none. From any thread. Throws ApiError: 429, 503.
  std::shared_ptr<AnswerChannel> submit(std::vector<TextJob> jobs);

  /// Runs `work` on the engine's thread between two steps, and waits for it; it should look at
  /// `cancel` now and then, which becomes true once gone() does. What it throws comes out here.
  /// From any thread but the engine's. Throws ApiError as submit().
  using Work = std::function<void(const std::atomic<bool>& cancel)>;
  void call(const Work& work, const std::function<bool()>& gone);

  /// Ends everything that is under way, from any thread.
  void cancel_all() { cancel_all_ = true; }
  Admission& admission() { return admission_; }
  /// Why nothing can be computed any more: the device was lost, say.
  std::optional<std::string> failure() const;

 private:
  struct Active {
    ServedModel* model;
    uint64_t number;  // of the generator's
    std::shared_ptr<AnswerChannel> channel;
    uint32_t choice;
    bool cancelled = false;
  };
  struct Task {
    Work work;
    std::atomic<bool> cancel{false}, done{false};
    std::exception_ptr error;
    std::mutex mutex;
    std::condition_variable ended;
  };
  struct Waiting {  // one of the two
    std::shared_ptr<Task> task;
    TextJob job;
    std::shared_ptr<AnswerChannel> channel;
  };

  void loop();
  bool take(std::deque<Waiting>& waiting, bool idle);
  void begin(Waiting& next);
  void run(Task& task);
  void begin_text(TextJob job, std::shared_ptr<AnswerChannel> channel);
  void end_text(const Active& active, AnswerEvent last);
  void cancel_unwanted();
  bool step();
  void fail(const std::exception& error);

  std::vector<std::unique_ptr<ServedModel>> models_;
  Metrics& metrics_;
  Admission admission_;

  mutable std::mutex mutex_;  // of the next three
  std::condition_variable arrived_;
  std::deque<Waiting> queue_;
  bool stopping_ = false;
  std::optional<std::string> failure_;

  std::atomic<bool> cancel_all_{false};
  std::list<Active> active_;  // of the engine's thread
  std::thread thread_;
};

}  // namespace mulciber::apps::serve
