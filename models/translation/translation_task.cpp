// Translations in slices.
#include "models/core/frame_task.h"
#include "models/translation/translator_impl.h"

namespace mulciber {

struct TranslationTask::Work {
  std::shared_ptr<Translator::Impl> translator;
  Translation translation;
  std::vector<std::vector<uint32_t>> sources;  // only one
  GenerationRequest request;
  std::unique_ptr<SearchTask> started;  // until the task has it
  SearchTask* search = nullptr;         // null: the text has no tokens

  /// read: tokenizes, or takes ids.
  Work(std::shared_ptr<Translator::Impl> owner, const TranslateOptions& options,
       const Translator::Impl::ReadSources& read)
      : translator(std::move(owner)) {
    std::vector<Translation> results(1);
    sources = read(results);
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

/// The stages of a text without tokens: none.
class NoStages : public StageSource {
 public:
  bool next(Stage&) override { return false; }
  void ended(uint64_t) override {}
  bool done() const override { return true; }
};

}  // namespace

TranslationTask::TranslationTask(Translator& translator, const std::string& text,
                                 const TranslateOptions& options)
    : TranslationTask(
          std::make_unique<Work>(translator.impl_, options, [&](std::vector<Translation>& results) {
            return translator.impl_->tokenize({&text, 1}, results, options);
          })) {}

TranslationTask::TranslationTask(Translator& translator, const std::vector<uint32_t>& source_ids,
                                 const TranslateOptions& options)
    : TranslationTask(
          std::make_unique<Work>(translator.impl_, options, [&](std::vector<Translation>& results) {
            return translator.impl_->take_ids({&source_ids, 1}, results, options);
          })) {}

TranslationTask::TranslationTask(std::unique_ptr<Work> work)
    : FrameTask([&work]() -> std::unique_ptr<Impl> {
        std::unique_ptr<StageSource> source = std::move(work->started);
        if (!source) source = std::make_unique<NoStages>();
        return std::make_unique<Impl>(work->translator->device, work->translator, std::move(source),
                                      work->translator->model);
      }()),
      work_(std::move(work)) {}

TranslationTask::~TranslationTask() = default;

uint32_t TranslationTask::steps() const { return work_->search ? work_->search->steps() : 0; }

std::string TranslationTask::text() const { return so_far().text; }

Translation TranslationTask::so_far() const {
  Translation result = work_->translation;
  result.complete = false;
  if (!work_->search) return result;
  const std::optional<Hypothesis> best = work_->search->best();
  if (best) take(result, work_->translator->alternative(*best));
  return result;
}

std::vector<Beam> TranslationTask::beams() const {
  std::vector<Beam> all;
  if (!work_->search) return all;
  for (const Hypothesis& hypothesis : work_->search->finished_so_far())
    all.push_back({work_->translator->alternative(hypothesis), true});
  for (const Hypothesis& hypothesis : work_->search->running())
    all.push_back({work_->translator->alternative(hypothesis), false});
  return all;
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
