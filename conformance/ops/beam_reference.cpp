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
uint32_t as_word(double value) { return std::bit_cast<uint32_t>(static_cast<float>(value)); }

struct Continuation {
  float sum;
  uint32_t row;  // of the hypothesis it continues
  uint32_t token;
};

struct Finished {
  double score;
  uint32_t length, row, step;
};

// The state of one item, out of the words and back.
class Item {
 public:
  Item(const BeamStateLayout& layout, uint32_t index, std::vector<uint32_t>& words)
      : layout_(layout),
        words_(words),
        first_row_(index * layout.beams),
        state_(layout.item_state + index * BEAM_ITEM_WORDS) {
    for (uint32_t i = 0; i < words_[state_ + BEAM_ITEM_COUNT]; ++i) {
      const uint32_t* entry = &words_[entry_of(i)];
      finished_.push_back({as_float(entry[BEAM_FINISHED_SCORE]), entry[BEAM_FINISHED_LENGTH],
                           entry[BEAM_FINISHED_ROW], entry[BEAM_FINISHED_STEP]});
    }
  }

  bool done() const { return words_[state_ + BEAM_ITEM_DONE] != BEAM_SEARCHES; }

  void advance(std::span<const double> candidates, uint32_t k) {
    uint32_t position = words_[layout_.position], beams = layout_.beams;
    const uint32_t* settings = &words_[layout_.settings];
    uint32_t length = position + 1;  // ids generated, with the new one
    bool at_limit = length >= settings[BEAM_LAST_POSITION];
    double penalty = as_float(settings[BEAM_LENGTH_PENALTY]);
    auto score_of = [&](double sum, uint32_t ids) {
      return sum / std::pow(std::max(ids, 1u), penalty);
    };

    // The best 2 * beams continuations over all beams; of equals, the lower beam and then the
    // better candidate first.
    std::vector<Continuation> all;
    bool lost = false;
    for (uint32_t row = first_row_; row < first_row_ + beams; ++row) {
      lost = lost || static_cast<uint32_t>(candidates[row * k * 2 + 1]) == kNoId;
      for (uint32_t i = 0; i < k; ++i) {
        const double* entry = &candidates[(row * k + i) * 2];
        float sum =
            as_float(words_[layout_.scores + row]) + as_float(static_cast<uint32_t>(entry[0]));
        if (sum > kImpossible) all.push_back({sum, row, static_cast<uint32_t>(entry[1])});
      }
    }
    std::ranges::stable_sort(all, [](const auto& a, const auto& b) { return a.sum > b.sum; });
    if (all.size() > 2 * beams) all.resize(2 * beams);

    std::vector<Continuation> next;
    for (uint32_t rank = 0; rank < all.size(); ++rank) {
      const Continuation& candidate = all[rank];
      bool ends = candidate.token == settings[BEAM_EOS] && settings[BEAM_EOS] != kNoId;
      bool counts = rank < beams;
      if (ends && counts) {
        finished_.push_back({score_of(candidate.sum, length), length, candidate.row, position});
      }
      if (ends || next.size() == beams) continue;
      if (at_limit && counts) {
        uint32_t row = first_row_ + static_cast<uint32_t>(next.size());
        finished_.push_back({score_of(candidate.sum, length), length, row, length});
      }
      next.push_back(candidate);
    }
    keep_best();
    if (next.empty() && finished_.empty()) {
      for (uint32_t row = first_row_; row < first_row_ + beams; ++row) {
        float sum = as_float(words_[layout_.scores + row]);
        if (sum == kImpossible) continue;
        finished_.push_back({score_of(sum, position), position, row, position});
        break;
      }
    }

    bool done = at_limit || next.empty() || lost;
    if (beams == 1) {
      done = done || !finished_.empty();
    } else if (!done && finished_.size() == beams) {
      bool never = settings[BEAM_EARLY_STOPPING] == BEAM_STOP_NEVER && penalty > 0;
      double hope = score_of(next[0].sum, never ? settings[BEAM_LAST_POSITION] : length);
      done = settings[BEAM_EARLY_STOPPING] == BEAM_STOP_EARLY || hope <= finished_.back().score;
    }
    write(next, done, length);
    words_[state_ + BEAM_ITEM_DONE] = lost ? BEAM_NOT_FINITE : done ? BEAM_DONE : BEAM_SEARCHES;
  }

 private:
  uint32_t entry_of(uint32_t rank) const {
    return layout_.finished + (first_row_ + rank) * BEAM_FINISHED_WORDS;
  }

  void keep_best() {
    std::ranges::stable_sort(finished_,
                             [](const auto& a, const auto& b) { return a.score > b.score; });
    if (finished_.size() > layout_.beams) finished_.resize(layout_.beams);
  }

  void write(const std::vector<Continuation>& next, bool done, uint32_t length) {
    uint32_t beams = layout_.beams, rows = layout_.batch * beams;
    uint32_t pad = words_[layout_.settings + BEAM_PAD];
    std::vector<uint32_t> ancestry = words_;
    for (uint32_t beam = 0; beam < beams; ++beam) {
      uint32_t row = first_row_ + beam;
      bool there = beam < next.size();
      uint32_t token = there ? next[beam].token : pad, parent = there ? next[beam].row : row;
      words_[layout_.tokens + row] = done ? pad : token;
      words_[layout_.scores + row] = as_word(there ? next[beam].sum : kImpossible);
      words_[layout_.history_tokens + length * rows + row] = token;
      words_[layout_.history_parents + length * rows + row] = parent;
      for (uint32_t position = 0; position < length && !done; ++position) {
        words_[layout_.ancestry + row * layout_.context + position] =
            ancestry[layout_.ancestry + parent * layout_.context + position];
      }
    }
    for (uint32_t i = 0; i < finished_.size(); ++i) {
      words_[entry_of(i) + BEAM_FINISHED_SCORE] = as_word(finished_[i].score);
      words_[entry_of(i) + BEAM_FINISHED_LENGTH] = finished_[i].length;
      words_[entry_of(i) + BEAM_FINISHED_ROW] = finished_[i].row;
      words_[entry_of(i) + BEAM_FINISHED_STEP] = finished_[i].step;
    }
    words_[state_ + BEAM_ITEM_COUNT] = static_cast<uint32_t>(finished_.size());
    if (!finished_.empty()) words_[state_ + BEAM_ITEM_WORST] = as_word(finished_.back().score);
  }

  const BeamStateLayout& layout_;
  std::vector<uint32_t>& words_;
  uint32_t first_row_, state_;
  std::vector<Finished> finished_;
};

}  // namespace

std::vector<BeamScore> beam_scores(const BeamStateLayout& layout, std::span<const uint32_t> state) {
  const double penalty = as_float(state[layout.settings + BEAM_LENGTH_PENALTY]);
  // score = sum / length ^ penalty; 0 and 1 need no power.
  const auto error_of = [&](double score, uint32_t length) {
    if (!std::isfinite(score)) return 0.0;
    const Bounded size(std::max(length, 1u));
    const Bounded divisor = penalty == 0   ? Bounded(1)
                            : penalty == 1 ? size
                                           : pow(size, Bounded(penalty));
    return (Bounded(score * divisor.value) / divisor).error + ulp32(score);
  };
  std::vector<BeamScore> scores;
  for (uint64_t item = 0; item < layout.batch; ++item) {
    const uint64_t words = layout.item_state + item * BEAM_ITEM_WORDS;
    const uint32_t count = state[words + BEAM_ITEM_COUNT];
    double error = 0;
    for (uint64_t rank = 0; rank < count; ++rank) {
      const uint64_t entry = layout.finished + (item * layout.beams + rank) * BEAM_FINISHED_WORDS;
      error = error_of(as_float(state[entry + BEAM_FINISHED_SCORE]),
                       state[entry + BEAM_FINISHED_LENGTH]);
      scores.push_back({entry + BEAM_FINISHED_SCORE, error});
    }
    if (count > 0) scores.push_back({words + BEAM_ITEM_WORST, error});
  }
  return scores;
}

void beam_step_reference(const BeamStateLayout& layout, std::span<const double> candidates,
                         uint32_t k, std::vector<uint32_t>& control) {
  uint32_t unfinished = 0;
  bool room = control[layout.position] + 1 < layout.context;
  for (uint32_t index = 0; index < layout.batch && room; ++index) {
    Item item(layout, index, control);
    if (!item.done()) item.advance(candidates, k);
    if (!item.done()) ++unfinished;
  }
  control[layout.unfinished] = unfinished;
  if (room) ++control[layout.position];
}

}  // namespace mulciber::conformance
