#include "models/translation/search_task.h"

#include <array>
#include <utility>

namespace mulciber {

SearchTask::SearchTask(Device& device, std::shared_ptr<SearchPrograms> programs,
                       ControlWords control, const GenerationSettings& settings)
    : programs_(std::move(programs)), settings_(settings), control_(std::move(control)) {
  for (uint32_t i = 0; i < kAhead; ++i)
    copies_.push_back(device.memory().allocate(programs_->control.size(), MemoryUsage::kReadback));
}

bool SearchTask::next(Stage& stage) {
  const bool encodes = stages_given_ == 0;
  const uint64_t steps = stages_given_ - (encodes ? 0 : 1);
  if (finished_ || steps >= settings_.max_new_tokens) return false;
  if (!encodes && steps - steps_ended_ >= kAhead) return false;
  ++stages_given_;
  if (encodes) {
    stage.update(programs_->control.view(), control_.words());
    if (programs_->all.shape.masked_output)
      stage.update(programs_->output_bias.view(), programs_->output_bias_words(settings_.banned));
    stage.program = &*programs_->encode;
    return true;
  }
  BufferView from = programs_->control.view();
  from.size = programs_->all.words * sizeof(uint32_t);
  stage.program = &*programs_->all.program;
  stage.copies.push_back({from, copies_[steps % kAhead].view()});
  return true;
}

void SearchTask::ended(uint64_t stages) {
  stages_ended_ = stages;
  if (stages > 1) {
    steps_ended_ = static_cast<uint32_t>(stages - 1);
    const auto* words =
        reinterpret_cast<const uint32_t*>(copies_[(steps_ended_ - 1) % kAhead].view().mapped);
    control_ = ControlWords(std::vector<uint32_t>(words, words + programs_->all.words));
    finished_ = control_.get(programs_->all.beam.search).unfinished == 0;
  }
  const bool all = finished_ || steps_ended_ >= settings_.max_new_tokens;
  done_ = all && stages_ended_ == stages_given_;
}

bool SearchTask::not_finite() const {
  return control_.get(programs_->all.beam.items, 0).status == BEAM_NOT_FINITE;
}

std::vector<Hypothesis> SearchTask::finished_so_far() const {
  return finished_hypotheses(programs_->all.beam, control_, 0);
}

std::vector<Hypothesis> SearchTask::running() const {
  if (steps_ended_ == 0) return {};
  return running_hypotheses(programs_->all.beam, control_, 0);
}

std::optional<Hypothesis> SearchTask::best() const {
  for (std::vector<Hypothesis>& found : std::array{running(), finished_so_far()}) {
    if (!found.empty()) return std::move(found.front());
  }
  return std::nullopt;
}

std::vector<Hypothesis> SearchTask::hypotheses() const {
  std::vector<Hypothesis> found = finished_so_far();
  if (found.size() > settings_.n_best) found.resize(settings_.n_best);
  return found;
}

}  // namespace mulciber
