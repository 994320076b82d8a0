#include "conformance/ops/beam_reference.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "conformance/bounds.h"
#include "shaders/beam.h"

namespace mulciber::conformance {
namespace {

constexpr uint32_t kNoId = 0xffffffff;
constexpr float kImpossible = -std::numeric_limits<float>::infinity();

float as_float(uint32_t word) { return std::bit_cast<float>(word); }

struct Continuation {
  float sum;
  uint32_t row;  // row of the hypothesis it continues
  uint32_t token;
};

struct Finished {
  double score;
  uint32_t length, row, step, end;
};

// The state of one item, read from the words and written back.
class Item {
 public:
  Item(const BeamStateLayout& layout, uint32_t index, ControlWords& control)
      : layout_(layout), control_(control), index_(index), first_row_(index * layout.beams) {
    for (uint32_t i = 0; i < control_.get(layout_.items, index_).count; ++i) {
      const shader::BeamFinished entry = control_.get(layout_.finished, first_row_ + i);
      finished_.push_back({entry.score, entry.length, entry.row, entry.step, entry.end});
    }
  }

  bool done() const { return control_.get(layout_.items, index_).status != BEAM_SEARCHES; }
  void end() {
    shader::BeamItem item = control_.get(layout_.items, index_);
    item.status = BEAM_DONE;
    control_.set(layout_.items, index_, item);
  }

  void advance(std::span<const double> candidates, uint32_t k) {
    const shader::BeamSearch search = control_.get(layout_.search);
    const shader::BeamItem item = control_.get(layout_.items, index_);
    const uint32_t position = control_.get(layout_.positions, first_row_), beams = layout_.beams;
    uint32_t length = position + 1;  // ids generated, including the new one
    bool at_limit = length >= item.last_position;
    double penalty = search.length_penalty;
    auto score_of = [&](double sum, uint32_t ids) {
      return sum / std::pow(std::max(ids, 1u), penalty);
    };

    // The best continuations over all beams; of equal ones the lower beam comes first, then the
    // better candidate.
    std::vector<Continuation> all;
    bool lost = false;
    for (uint32_t row = first_row_; row < first_row_ + beams; ++row) {
      lost = lost || static_cast<uint32_t>(candidates[row * k * 2 + 1]) == kNoId;
      for (uint32_t i = 0; i < k; ++i) {
        const double* entry = &candidates[(row * k + i) * 2];
        float sum = control_.get(layout_.scores, row) + as_float(static_cast<uint32_t>(entry[0]));
        if (sum > kImpossible) all.push_back({sum, row, static_cast<uint32_t>(entry[1])});
      }
    }
    std::ranges::stable_sort(all, [](const auto& a, const auto& b) { return a.sum > b.sum; });
    const std::span<const uint32_t> ends = control_.values(layout_.ends);
    const auto last_end = ends.begin() + 1 + ends.front();
    std::vector<Continuation> next;
    for (uint32_t rank = 0; rank < all.size(); ++rank) {
      const Continuation& candidate = all[rank];
      bool is_end = std::find(ends.begin() + 1, last_end, candidate.token) != last_end;
      bool counts = rank < beams;
      if (is_end && counts) {
        finished_.push_back(
            {score_of(candidate.sum, length), length, candidate.row, position, candidate.token});
      }
      if (is_end || next.size() == beams) continue;
      if (at_limit && counts) {
        uint32_t row = first_row_ + static_cast<uint32_t>(next.size());
        finished_.push_back({score_of(candidate.sum, length), length, row, length, kNoId});
      }
      next.push_back(candidate);
    }
    keep_best();
    if (next.empty() && finished_.empty()) {
      for (uint32_t row = first_row_; row < first_row_ + beams; ++row) {
        float sum = control_.get(layout_.scores, row);
        if (sum == kImpossible) continue;
        finished_.push_back({score_of(sum, position), position, row, position, kNoId});
        break;
      }
    }

    bool done = at_limit || next.empty() || lost;
    if (beams == 1) {
      done = done || !finished_.empty();
    } else if (!done && finished_.size() == beams) {
      bool never = search.early_stopping == BEAM_STOP_NEVER && penalty > 0;
      double hope = score_of(next[0].sum, never ? item.last_position : length);
      done = search.early_stopping == BEAM_STOP_EARLY || hope <= finished_.back().score;
    }
    write(next, lost ? BEAM_NOT_FINITE : done ? BEAM_DONE : BEAM_SEARCHES, length);
  }

 private:
  void keep_best() {
    std::ranges::stable_sort(finished_,
                             [](const auto& a, const auto& b) { return a.score > b.score; });
    if (finished_.size() > layout_.beams) finished_.resize(layout_.beams);
  }

  void write(const std::vector<Continuation>& next, uint32_t status, uint32_t length) {
    uint32_t beams = layout_.beams, rows = layout_.batch * beams;
    const uint32_t pad = control_.get(layout_.search).pad;
    const ControlWords before = control_;
    for (uint32_t beam = 0; beam < beams; ++beam) {
      uint32_t row = first_row_ + beam;
      bool there = beam < next.size();
      uint32_t token = there ? next[beam].token : pad, parent = there ? next[beam].row : row;
      control_.set(layout_.positions, row, length);
      control_.set(layout_.tokens, row, status == BEAM_SEARCHES ? token : pad);
      control_.set(layout_.scores, row, there ? next[beam].sum : kImpossible);
      control_.set(layout_.history_tokens, length * rows + row, token);
      control_.set(layout_.history_parents, length * rows + row, parent);
      for (uint32_t position = 0; position < length && status == BEAM_SEARCHES; ++position) {
        control_.set(layout_.ancestry, row * layout_.context + position,
                     before.get(layout_.ancestry, parent * layout_.context + position));
      }
    }
    for (uint32_t i = 0; i < finished_.size(); ++i) {
      const Finished& f = finished_[i];
      control_.set(layout_.finished, first_row_ + i,
                   {static_cast<float>(f.score), f.length, f.row, f.step, f.end});
    }
    shader::BeamItem item = control_.get(layout_.items, index_);
    item.status = status;
    item.count = static_cast<uint32_t>(finished_.size());
    if (!finished_.empty()) item.worst = static_cast<float>(finished_.back().score);
    control_.set(layout_.items, index_, item);
  }

  const BeamStateLayout& layout_;
  ControlWords& control_;
  uint32_t index_, first_row_;
  std::vector<Finished> finished_;
};

}  // namespace

std::vector<BeamScore> beam_scores(const BeamStateLayout& layout, const ControlWords& control) {
  const double penalty = control.get(layout.search).length_penalty;
  // score = sum / length ^ penalty; penalties of 0 and 1 need no power.
  const auto error_of = [&](double score, uint32_t length) {
    if (!std::isfinite(score)) return 0.0;
    const Bounded size(std::max(length, 1u));
    const Bounded divisor = penalty == 0   ? Bounded(1)
                            : penalty == 1 ? size
                                           : pow(size, Bounded(penalty));
    return (Bounded(score * divisor.value) / divisor).error + ulp32(score);
  };
  std::vector<BeamScore> scores;
  for (uint32_t item = 0; item < layout.batch; ++item) {
    const uint32_t count = control.get(layout.items, item).count;
    double error = 0;
    for (uint32_t rank = 0; rank < count; ++rank) {
      const uint32_t at = item * layout.beams + rank;
      const shader::BeamFinished entry = control.get(layout.finished, at);
      error = error_of(entry.score, entry.length);
      scores.push_back({layout.finished.field(&shader::BeamFinished::score, at).word, error});
    }
    if (count > 0)
      scores.push_back({layout.items.field(&shader::BeamItem::worst, item).word, error});
  }
  return scores;
}

namespace {

/// The tokens at positions 0 to `last` of an unfinished hypothesis, from the history.
std::vector<uint32_t> tokens_of(const BeamStateLayout& layout, const ControlWords& control,
                                uint32_t row, uint32_t last) {
  const uint32_t rows = layout.batch * layout.beams;
  std::vector<uint32_t> tokens(last + 1);
  for (uint32_t position = last + 1; position-- > 0;) {
    tokens[position] = control.get(layout.history_tokens, position * rows + row);
    row = control.get(layout.history_parents, position * rows + row);
  }
  return tokens;
}

/// Bans the tokens that followed the last n - 1 tokens before, like transformers'
/// NoRepeatNGramLogitsProcessor.
void write_repeats(const BeamStateLayout& layout, ControlWords& control, uint32_t row,
                   uint32_t last) {
  const std::vector<uint32_t> tokens = tokens_of(layout, control, row, last);
  const uint32_t ngram = control.get(layout.search).ngram;
  for (uint32_t at = 0; at <= last; ++at) {
    const bool repeats =
        ngram > 0 && at + 1 >= ngram &&
        std::equal(tokens.end() - (ngram - 1), tokens.end(), tokens.begin() + (at + 1 - ngram));
    control.set(layout.forbidden, row * layout.forbidden_row() + layout.room.words + at,
                repeats ? tokens[at] : kNoId);
  }
}

/// Bans the last id of a sequence where the text ends with its other ids, like transformers'
/// NoBadWordsLogitsProcessor.
void write_words(const BeamStateLayout& layout, ControlWords& control, uint32_t row,
                 uint32_t last) {
  const std::vector<uint32_t> tokens = tokens_of(layout, control, row, last);
  const std::span<const uint32_t> words = control.values(layout.words);
  const auto ids = words.begin() + 1 + layout.room.words;
  std::vector<uint32_t> forbidden;
  for (uint32_t word = 0, first = 0; word < words.front(); ++word) {
    const std::vector<uint32_t> sequence(ids + first, ids + words[1 + word]);
    first = words[1 + word];
    const bool follows = sequence.size() <= tokens.size() + 1 &&
                         std::equal(sequence.rbegin() + 1, sequence.rend(), tokens.rbegin());
    forbidden.push_back(follows ? sequence.back() : kNoId);
  }
  for (uint32_t word = 0; word < forbidden.size(); ++word)
    control.set(layout.forbidden, row * layout.forbidden_row() + word, forbidden[word]);
}

}  // namespace

void beam_step_reference(const BeamStateLayout& layout, std::span<const double> candidates,
                         uint32_t k, ControlWords& control) {
  uint32_t unfinished = 0;
  for (uint32_t index = 0; index < layout.batch; ++index) {
    Item item(layout, index, control);
    if (item.done()) continue;
    const uint32_t chosen = control.get(layout.positions, index * layout.beams) + 1;
    if (chosen >= layout.context) {
      item.end();
      continue;
    }
    item.advance(candidates, k);
    if (item.done()) continue;
    ++unfinished;
    for (uint32_t beam = 0; beam < layout.beams; ++beam) {
      const uint32_t row = index * layout.beams + beam;
      if (layout.room.words > 0) write_words(layout, control, row, chosen);
      if (layout.room.ngrams) write_repeats(layout, control, row, chosen);
    }
  }
  shader::BeamSearch search = control.get(layout.search);
  search.unfinished = unfinished;
  control.set(layout.search, 0, search);
}

}  // namespace mulciber::conformance
