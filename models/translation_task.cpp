// Translations in slices.
#include "models/frame_task.h"
#include "models/translator_impl.h"

namespace mulciber {

struct TranslationTask::Work {
  std::shared_ptr<Translator::Impl> translator;
  Translation translation;
  std::vector<std::vector<uint32_t>> sources;  // one
  GenerationRequest request;
  std::unique_ptr<SearchTask> started;  // until the task has it
  SearchTask* search = nullptr;         // null: the text has no tokens

  Work(std::shared_ptr<Translator::Impl> owner, const std::string& text,
       const TranslateOptions& options)
      : translator(std::move(owner)) {
    std::vector<Translation> results(1);
    sources = translator->tokenize({&text, 1}, results);
    translation = std::move(results.front());
    request.sources = sources;
    request.settings = translator->settings(options);
    request.head_masks = options.head_masks;
    if (sources.front().empty()) return;
    started = translator->translation->start(request);
    search = started.get();
  }
};

namespace {

/// Of a text without tokens: nothing is to be done.
class NoStages : public StageSource {
 public:
  std::optional<Stage> next() override { return std::nullopt; }
  void ended(uint64_t) override {}
  bool done() const override { return true; }
};

}  // namespace

TranslationTask::TranslationTask(Translator& translator, const std::string& text,
                                 const TranslateOptions& options)
    : TranslationTask(std::make_unique<Work>(translator.impl_, text, options)) {}

TranslationTask::TranslationTask(std::unique_ptr<Work> work)
    : FrameTask([&work]() -> std::unique_ptr<Impl> {
        std::unique_ptr<StageSource> source = std::move(work->started);
        if (!source) source = std::make_unique<NoStages>();
        return std::make_unique<Impl>(work->translator->device, work->translator,
                                      std::move(source));
      }()),
      work_(std::move(work)) {}

TranslationTask::~TranslationTask() = default;

std::string TranslationTask::text() const {
  if (!work_->search) return {};
  const std::vector<uint32_t> ids = work_->search->ids();
  return work_->translator->tokenizers.target->decode(std::vector<int32_t>(ids.begin(), ids.end()));
}

Translation TranslationTask::result() {
  if (!work_->search) return work_->translation;
  if (!done())
    throw SettingError("TranslationTask", "is not done", "ask for its result when done() says so");
  work_->translator->translation->check(*work_->search, work_->request);
  Translation result = work_->translation;
  if (!work_->search->finished()) return result;
  work_->translator->finish(result, work_->search->hypotheses());
  return result;
}

}  // namespace mulciber
