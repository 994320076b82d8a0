// Answers in slices.
#include <atomic>

#include "models/answer.h"
#include "models/decoding/sequence_task.h"
#include "models/frame_task.h"
#include "models/generator_options.h"
#include "models/text_generator_impl.h"

namespace mulciber {

struct GenerationTask::Work {
  std::shared_ptr<TextGenerator::Impl> generator;
  GenerateOptions options;
  std::optional<Answer> answer;
  std::vector<uint32_t> stops;
  std::atomic<bool> stop{false};  // a stop text came, or the host cancelled
  bool cancelled = false;
  uint32_t tokens = 0;                    // of prompt and answer
  std::unique_ptr<SequenceTask> started;  // until the task has it
  SequenceTask* sequence = nullptr;
  std::optional<Generation> result;

  Work(std::shared_ptr<TextGenerator::Impl> owner, const std::string& prompt,
       const GenerateOptions& wanted);
  void look() {
    if (options.cancel && options.cancel->load()) stop = cancelled = true;
  }
};

GenerationTask::Work::Work(std::shared_ptr<TextGenerator::Impl> owner, const std::string& prompt,
                           const GenerateOptions& wanted)
    : generator(std::move(owner)), options(wanted) {
  TextGenerator::Impl& impl = *generator;
  if (options.shift || options.attention)
    throw SettingError(options.shift ? "GenerateOptions::shift" : "GenerateOptions::attention",
                       "is asked for of a task", "generate() such texts whole");
  const std::vector<int32_t> encoded = impl.encode(prompt, options);
  answer.emplace(*impl.tokenizer, encoded, options.stop, options.on_text);
  tokens = static_cast<uint32_t>(encoded.size());
  SequenceRequest request = impl.request(options);
  stops = request.stops;
  request.cancel = &stop;
  request.on_prompt = [this](size_t done, size_t total) {
    look();
    if (options.on_prompt) options.on_prompt(done, total);
  };
  request.on_token = [this](uint32_t, uint32_t id) {
    look();
    if (stop) return;
    ++tokens;
    if (!answer->push(id, std::ranges::binary_search(stops, id))) stop = true;
  };
  impl.reuse(request, {encoded.begin(), encoded.end()});
  started = impl.batch->start(std::move(request));
  sequence = started.get();
}

GenerationTask::GenerationTask(TextGenerator& generator, const std::string& prompt,
                               const GenerateOptions& options)
    : GenerationTask(std::make_unique<Work>(generator.impl_, prompt, options)) {}

GenerationTask::GenerationTask(std::unique_ptr<Work> work)
    : FrameTask([&work] {
        return std::make_unique<Impl>(work->generator->device, work->generator,
                                      std::move(work->started));
      }()),
      work_(std::move(work)) {}

GenerationTask::~GenerationTask() {
  // What the batch holds must be what was computed, whether or not anybody asked for the result.
  if (work_->result || !done()) return;
  try {
    result();
  } catch (const Error&) {
    // The batch is empty then.
  }
}

void GenerationTask::cancel() {
  FrameTask::cancel();
  work_->cancelled = true;
  work_->sequence->cancel();
}

Generation GenerationTask::result() {
  if (work_->result) return *work_->result;
  if (!done())
    throw SettingError("GenerationTask", "is not done", "ask for its result when done() says so");
  const SequenceResult found = work_->sequence->finish();
  TextGenerator::Impl& impl = *work_->generator;
  impl.batch->truncate(0, work_->tokens);
  work_->result = work_->answer->finish(
      end_of(found.rows[0].end, work_->options.max_new_tokens == 0), work_->cancelled);
  return *work_->result;
}

}  // namespace mulciber
