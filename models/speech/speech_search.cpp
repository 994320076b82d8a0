#include "models/speech/speech_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

namespace mulciber {
namespace {

struct Branch {
  std::vector<uint32_t> ids;
  double log_probability = 0;
  bool ended = false;
};

/// A continuation of a branch.
struct Continuation {
  uint32_t branch, id;
  double log_probability;
};

SpeechText text_of(const Branch& branch) {
  return {.ids = branch.ids,
          .log_probability = branch.log_probability,
          .tokens = static_cast<uint32_t>(branch.ids.size()) + (branch.ended ? 1 : 0)};
}

class SpeechSearch {
 public:
  SpeechSearch(MemoryReader& model, const SpeechSearchSettings& settings)
      : model_(model),
        settings_(settings),
        vocabulary_(model.vocabulary()),
        draws_(settings.temperature > 0),
        rows_(draws_ ? settings.candidates : settings.beams),
        random_(settings.seed) {}

  SpeechText run(std::span<const uint32_t> prompt) {
    model_.begin(rows_);
    branches_.resize(rows_);
    tokens_.resize(rows_);
    parents_.resize(rows_);
    std::iota(parents_.begin(), parents_.end(), 0u);
    const size_t silence_at = settings_.silence_at.value_or(0);
    const std::span<const float> behind = model_.prompt(prompt, silence_at);
    const double no_speech =
        settings_.silence && settings_.silence_at ? silence_in(behind.subspan(vocabulary_)) : 0;
    std::span<const float> logits = behind;
    const auto context = static_cast<uint32_t>(model_.context() - prompt.size());
    const uint32_t most = std::min(settings_.max_tokens, context);
    bool cancelled = false;
    for (uint32_t step = 0; step < most && !done(); ++step) {
      if (step > 0) logits = model_.step(tokens_, parents_);
      choose(logits, step == 0);
      if (settings_.on_text) settings_.on_text(branches_.front().ids);
      cancelled = settings_.cancel && *settings_.cancel;
      if (cancelled) break;
    }
    SpeechText text = best();
    text.no_speech = no_speech;
    text.cancelled = cancelled;
    return text;
  }

 private:
  double silence_in(std::span<const float> logits) const {
    std::vector<float> row(logits.begin(), logits.begin() + vocabulary_);
    log_softmax(row);
    return std::exp(row[*settings_.silence]);
  }

  bool ends(uint32_t id) const { return std::ranges::count(settings_.ends, id) > 0; }

  bool done() const {
    if (!draws_ && rows_ > 1) return finished_.size() >= rows_;
    return std::all_of(branches_.begin(), branches_.end(), [](const Branch& b) { return b.ended; });
  }

  void choose(std::span<const float> logits, bool first) {
    std::vector<Continuation> all;
    std::vector<float> row(vocabulary_);
    for (uint32_t i = 0; i < rows_; ++i) {
      if (branches_[i].ended) continue;
      // Behind the prompt all rows have the same logits.
      const uint64_t from = first ? 0 : uint64_t{i} * vocabulary_;
      std::copy_n(logits.begin() + static_cast<std::ptrdiff_t>(from), vocabulary_, row.begin());
      if (settings_.rules) settings_.rules(row, branches_[i].ids);
      if (draws_) {
        take(i, draw(row));
      } else if (rows_ == 1) {
        const auto best = std::max_element(row.begin(), row.end()) - row.begin();
        log_softmax(row);
        take(i, {i, static_cast<uint32_t>(best), row[static_cast<size_t>(best)]});
      } else if (!first || i == 0) {
        // All beams hold the same text before the first step.
        add_best(all, i, row);
      }
    }
    if (!draws_ && rows_ > 1) follow(all);
  }

  void take(uint32_t row, const Continuation& chosen) {
    Branch& branch = branches_[row];
    branch.log_probability += chosen.log_probability;
    branch.ended = ends(chosen.id);
    if (!branch.ended) branch.ids.push_back(chosen.id);
    tokens_[row] = chosen.id;
    parents_[row] = row;
  }

  Continuation draw(std::vector<float>& row) {
    std::vector<float> tempered = row;
    for (float& value : tempered) value /= static_cast<float>(settings_.temperature);
    log_softmax(tempered);
    log_softmax(row);
    double left = std::uniform_real_distribution<double>(0, 1)(random_);
    uint32_t last = 0;
    for (uint32_t id = 0; id < vocabulary_; ++id) {
      const double probability = std::exp(static_cast<double>(tempered[id]));
      if (probability == 0) continue;
      last = id;
      left -= probability;
      if (left < 0) break;
    }
    return {0, last, row[last]};
  }

  /// Adds the continuations of a branch that can be among the best of all: one more than there are
  /// beams, as one of them may end the text.
  void add_best(std::vector<Continuation>& all, uint32_t branch, std::vector<float>& row) const {
    log_softmax(row);
    // The best ids so far, best first; of equal ones the smaller id comes first.
    std::vector<uint32_t> best;
    float least = -std::numeric_limits<float>::infinity();
    for (uint32_t id = 0; id < vocabulary_; ++id) {
      if (!(row[id] > least)) continue;
      best.insert(std::upper_bound(best.begin(), best.end(), id,
                                   [&](uint32_t a, uint32_t b) { return row[a] > row[b]; }),
                  id);
      if (best.size() <= rows_) continue;
      if (best.size() > rows_ + 1) best.pop_back();
      least = row[best.back()];
    }
    for (const uint32_t id : best)
      all.push_back({branch, id, branches_[branch].log_probability + row[id]});
  }

  void follow(std::vector<Continuation>& all) {
    std::stable_sort(all.begin(), all.end(), [](const Continuation& a, const Continuation& b) {
      return a.log_probability > b.log_probability;
    });
    std::vector<Branch> next;
    for (const Continuation& one : all) {
      if (next.size() == rows_) break;
      Branch branch = {branches_[one.branch].ids, one.log_probability, ends(one.id)};
      if (branch.ended) {
        if (finished_.size() < rows_) finished_.push_back(std::move(branch));
        continue;
      }
      branch.ids.push_back(one.id);
      tokens_[next.size()] = one.id;
      parents_[next.size()] = one.branch;
      next.push_back(std::move(branch));
    }
    // Where the rules leave fewer continuations than beams, the other beams end.
    for (size_t i = next.size(); i < rows_; ++i) {
      tokens_[i] = tokens_[0];
      parents_[i] = parents_[0];
      next.push_back({{}, -std::numeric_limits<double>::infinity(), true});
    }
    branches_ = std::move(next);
  }

  SpeechText best() const {
    std::vector<Branch> all = finished_;
    // Texts that have not ended count where too few have.
    for (const Branch& branch : branches_)
      if ((draws_ || all.size() < rows_) && std::isfinite(branch.log_probability))
        all.push_back(branch);
    SpeechText result;
    bool any = false;
    for (const Branch& branch : all) {
      const SpeechText text = text_of(branch);
      if (!any || text.mean_log_probability() > result.mean_log_probability()) result = text;
      any = true;
    }
    return result;
  }

  MemoryReader& model_;
  const SpeechSearchSettings& settings_;
  uint32_t vocabulary_;
  bool draws_;
  uint32_t rows_;
  std::mt19937_64 random_;
  std::vector<Branch> branches_, finished_;
  std::vector<uint32_t> tokens_, parents_;
};

}  // namespace

void log_softmax(std::span<float> logits) {
  // The omitted terms together, of any vocabulary, are below the precision of the sum.
  constexpr float kNothing = -45;
  const float greatest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float value : logits)
    if (value - greatest > kNothing) sum += std::exp(static_cast<double>(value - greatest));
  const auto shift = static_cast<float>(greatest + std::log(sum));
  for (float& value : logits) value -= shift;
}

SpeechText search_speech(MemoryReader& model, std::span<const uint32_t> prompt,
                         const SpeechSearchSettings& settings) {
  return SpeechSearch(model, settings).run(prompt);
}

}  // namespace mulciber
