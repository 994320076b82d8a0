// Cases of beam_step; conformance/op_cases.cpp declares them.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>

#include "conformance/bounds.h"
#include "conformance/op_case.h"
#include "conformance/ops/beam_reference.h"
#include "mulciber/error.h"
#include "ops/search.h"

namespace mulciber::conformance {

namespace {

constexpr uint32_t kBeamStepNever = 0xffffffff;

class BeamStepCases : public OpCases {
 public:
  std::string shape_format() const override { return "batch,beams"; }

  std::vector<std::vector<uint64_t>> bench_shapes() const override {
    return {{1, 1}, {1, 4}, {16, 5}, {64, 4}};
  }

  OpCase make(std::span<const uint64_t> shape, KernelTypes types) const override {
    if (shape.size() != 2 || shape[0] == 0 || shape[1] == 0 || shape[1] > 32) {
      throw ShapeError("beam step", "a shape is two positive numbers, beams up to 32",
                       "give batch,beams such as 16,5");
    }
    // A typical step: half way through a search that has not ended.
    Variant options;
    options.settings.max_length = 128;
    options.settings.ends = {};
    options.first_position = 63;
    options.steps = 1;
    return variant(static_cast<uint32_t>(shape[0]), static_cast<uint32_t>(shape[1]), types,
                   options);
  }

  std::vector<OpCase> samples(KernelTypes types) const override {
    std::vector<OpCase> cases;
    auto add = [&](uint32_t batch, uint32_t beams, Variant options) {
      cases.push_back(variant(batch, beams, types, std::move(options)));
    };
    // Except for penalties 0 and 1, no two scores of different length are equal, so rounding
    // decides nothing.
    for (EarlyStopping early :
         {EarlyStopping::kHeuristic, EarlyStopping::kEarly, EarlyStopping::kNever}) {
      for (float penalty : {1.0f, 0.0f, 1.7f, 0.6f, -0.5f}) {
        for (uint32_t beams : {1, 2, 3, 4, 5, 8}) {
          Variant options;
          options.settings.early_stopping = early;
          options.settings.length_penalty = penalty;
          options.settings.max_length = 9;
          options.steps = 10;  // the last step is one too many and must change nothing
          add(beams % 3 + 1, beams, options);
        }
      }
    }
    for (uint32_t beams : {1, 3}) {
      Variant not_finite;
      not_finite.lost_share = 0.2;
      not_finite.settings.max_length = 12;
      not_finite.steps = 5;
      add(7, beams, not_finite);
    }
    for (uint32_t beams : {1, 4}) {
      Variant never_ends;
      never_ends.settings.ends = {};
      never_ends.settings.max_length = 6;
      never_ends.steps = 6;
      add(2, beams, never_ends);
      Variant ends_at_once;
      ends_at_once.eos_share = 1;
      ends_at_once.settings.max_length = 12;
      ends_at_once.steps = 8;
      add(3, beams, ends_at_once);
      Variant impossible;
      impossible.impossible_share = 0.7;
      impossible.settings.max_length = 12;
      impossible.steps = 7;
      add(5, beams, impossible);
      Variant nothing_possible;
      nothing_possible.impossible_share = 1;
      nothing_possible.steps = 2;
      add(2, beams, nothing_possible);
      Variant unfilled;  // the cache has more room than the search uses
      unfilled.spare_capacity = 21;
      unfilled.first_position = 3;
      unfilled.settings.max_length = 12;
      unfilled.steps = 4;
      add(5, beams, unfilled);
    }
    // Few ids, so that n-grams repeat.
    for (uint32_t ngram : {1, 2, 3, 5}) {
      for (uint32_t beams : {1, 3, 4}) {
        Variant no_repeats;
        no_repeats.settings.ngram = ngram;
        no_repeats.settings.max_length = 16;
        no_repeats.ids = ngram > 2 ? 9 : 12;
        no_repeats.steps = 13;
        no_repeats.eos_share = 0.05;
        add(ngram, beams, no_repeats);
      }
    }
    // Several end ids, with as many candidates as they need.
    for (uint32_t beams : {1, 2, 4}) {
      for (uint32_t ends : {2, 5}) {
        Variant several;
        several.settings.ends.resize(ends);
        std::iota(several.settings.ends.begin(), several.settings.ends.end(), 0);
        several.settings.max_length = 10;
        several.steps = 7;
        several.eos_share = 0.4;
        several.candidates = beams == 1 ? 1 : beams + std::max(beams, ends);
        add(3, beams, several);
      }
    }
    // Forbidden sequences of few ids, so that their beginnings occur; with and without n-grams.
    for (uint32_t ngram : {0, 3}) {
      for (uint32_t beams : {1, 3, 4}) {
        Variant words;
        words.settings.words = {{10, 11}, {12, 12}, {3, 14, 15}, {15}, {13, 10, 11, 12}, {11, 13}};
        words.settings.ngram = ngram;
        words.settings.max_length = 16;
        words.ids = 9;
        words.steps = 13;
        words.eos_share = 0.05;
        add(2, beams, words);
      }
    }
    // Items that began at different steps.
    for (uint32_t beams : {1, 3, 4}) {
      for (uint32_t apart : {1, 3}) {
        Variant staggered;
        staggered.first_position = 9;
        staggered.apart = apart;
        staggered.settings.max_length = 16;
        staggered.settings.ngram = apart;
        staggered.settings.words = {{10, 11}, {12, 12}, {3, 14, 15}};
        staggered.ids = 9;
        staggered.steps = 8;
        staggered.eos_share = 0.05;
        add(6, beams, staggered);
        staggered.settings.ngram = 0;
        staggered.settings.words.clear();
        staggered.settings.early_stopping = EarlyStopping::kNever;
        staggered.eos_share = 0.3;
        add(70, beams, staggered);
      }
    }
    Variant few_candidates;  // a vocabulary below 2 * beams
    few_candidates.candidates = 3;
    few_candidates.settings.max_length = 8;
    few_candidates.steps = 8;
    add(2, 4, few_candidates);
    Variant one_candidate;  // arg max
    one_candidate.candidates = 1;
    one_candidate.settings.max_length = 8;
    one_candidate.steps = 8;
    add(5, 1, one_candidate);
    Variant many;
    many.settings.max_length = 20;
    many.steps = 6;
    add(70, 4, many);
    add(2, 32, many);
    return cases;
  }

 private:
  struct Variant {
    BeamSettings settings = {.start = 3, .ends = {0}, .pad = 1, .max_length = 10};
    uint32_t first_position = 0;  // steps start here, from a made-up state of that position
    uint32_t apart = 0;           // distance of the items' starts and of their last positions
    uint32_t steps = 1;
    uint32_t candidates = 0;  // 0: 2 * beams
    uint32_t spare_capacity = 0;
    double eos_share = 0.3;       // share of candidate rows that hold eos
    double impossible_share = 0;  // share of candidates that are -inf
    double lost_share = 0;        // share of rows whose logits are not finite
    uint32_t ids = 100;           // number of ids from which candidates are drawn
  };
  static constexpr uint32_t kFirstWord = 3;

  // Sorted best first, with distinct ids and multiples of 1/64, whose sums in f32 are exact.
  static std::vector<uint32_t> random_candidates(uint32_t rows, uint32_t k, const Variant& options,
                                                 std::mt19937& random) {
    std::vector<uint32_t> words;
    std::uniform_real_distribution<double> share(0, 1);
    std::uniform_int_distribution<int> drop(0, 90);
    for (uint32_t row = 0; row < rows; ++row) {
      std::vector<uint32_t> ids(options.ids);
      std::iota(ids.begin(), ids.end(), 10);
      std::ranges::shuffle(ids, random);
      ids.resize(k);
      if (share(random) < options.eos_share) {
        const std::vector<uint32_t>& ends = options.settings.ends;
        ids[random() % std::max(1u, k / 2)] = ends.empty() ? 5 : ends.front();
        for (size_t end = 1; end < ends.size() && end < k; ++end) {
          uint32_t& other = ids[random() % k];
          if (std::ranges::count(ends, other) == 0) other = ends[end];
        }
      }
      int level = 0;
      for (uint32_t i = 0; i < k; ++i) {
        level += drop(random) < 30 ? 0 : drop(random);
        bool impossible =
            share(random) < options.impossible_share * (i + 1) / k || options.impossible_share == 1;
        words.push_back(bits_of(impossible ? -std::numeric_limits<float>::infinity()
                                           : -static_cast<float>(level) / 64.0f));
        words.push_back(ids[i]);
        if (impossible) {  // all following ones are impossible too
          for (++i; i < k; ++i) {
            words.push_back(bits_of(-std::numeric_limits<float>::infinity()));
            words.push_back(ids[i]);
          }
        }
      }
      if (options.lost_share > 0 && share(random) < options.lost_share) {
        for (size_t i = words.size() - 2 * k; i < words.size(); i += 2) {
          words[i] = bits_of(-std::numeric_limits<float>::infinity());
          words[i + 1] = kBeamStepNever;
        }
      }
      // Equal values are sorted by id, like in top_k.
      for (size_t i = words.size() - 2 * k + 2; i < words.size();) {
        bool swap = words[i - 2] == words[i] && words[i - 1] > words[i + 1];
        if (swap) std::swap(words[i - 1], words[i + 1]);
        i = swap && i > words.size() - 2 * k + 2 ? i - 2 : i + 2;
      }
    }
    return words;
  }

  // More room than is used.
  static BeamRoom room_for(const BeamSettings& settings) {
    BeamRoom room = {.banned = 2,
                     .ends = static_cast<uint32_t>(settings.ends.size()) + 1,
                     .ngrams = settings.ngram > 0};
    for (const std::vector<uint32_t>& word : settings.words)
      room.word_ids += static_cast<uint32_t>(word.size());
    if (room.word_ids > 0) room.words = static_cast<uint32_t>(settings.words.size()) + 2;
    return room;
  }

  // A state at `position` with made-up history: every hypothesis has always been in its own row.
  static void set_state(ControlWords& control, const BeamStateLayout& layout,
                        const Variant& options) {
    initialize_beam_state(control, layout, options.settings);
    const uint32_t rows = layout.batch * layout.beams;
    for (uint32_t row = 0; row < rows; ++row) {
      const uint32_t item = row / layout.beams,
                     first = options.first_position -
                             std::min(options.first_position, item * options.apart);
      if (options.apart > 0 && row % layout.beams == 0) {
        BeamSettings settings = options.settings;
        settings.max_length -= std::min(item, settings.max_length - first - 2);
        begin_item(control, layout, item, settings);
      }
      if (first == 0) continue;
      control.set(layout.positions, row, first);
      control.set(layout.scores, row, -static_cast<float>(row % layout.beams) / 4.0f);
      for (uint32_t position = 1; position <= first; ++position) {
        control.set(layout.history_tokens, position * rows + row, 200 + position);
        control.set(layout.history_parents, position * rows + row, row);
      }
      control.set(layout.tokens, row, 200 + first);
    }
  }

  static OpCase variant(uint32_t batch, uint32_t beams, KernelTypes types, Variant options) {
    OpCase c;
    c.types = types;
    uint32_t k = options.candidates > 0 ? options.candidates : 2 * beams;
    const char* early[] = {"heuristic", "early", "never"};
    c.name = fmt::format("b{}_beams{}_k{}.from_{}_steps_{}_max_{}.penalty_{}.{}", batch, beams, k,
                         options.first_position, options.steps, options.settings.max_length,
                         name_part(options.settings.length_penalty),
                         early[static_cast<uint32_t>(options.settings.early_stopping)]);
    if (options.apart > 0) c.name += fmt::format(".apart_{}", options.apart);
    if (options.settings.ends.empty()) c.name += ".no_eos";
    if (options.settings.ends.size() > 1)
      c.name += fmt::format(".ends_{}", options.settings.ends.size());
    if (!options.settings.words.empty())
      c.name += fmt::format(".words_{}", options.settings.words.size());
    if (options.eos_share != 0.3) c.name += fmt::format(".eos_{}", name_part(options.eos_share));
    if (options.impossible_share > 0)
      c.name += fmt::format(".impossible_{}", name_part(options.impossible_share));
    if (options.settings.ngram > 0) c.name += fmt::format(".ngram_{}", options.settings.ngram);
    if (options.lost_share > 0) c.name += fmt::format(".lost_{}", name_part(options.lost_share));

    ControlLayout all(kFirstWord);
    const BeamStateLayout layout =
        plan_beam_state(all, batch, beams, options.settings.max_length + options.spare_capacity,
                        room_for(options.settings));
    ControlWords control(all.words(), kBeamStepNever);
    set_state(control, layout, options);
    const std::vector<uint32_t>& words = control.words();
    const uint64_t state_words = words.size();
    c.inputs = {words_input(words)};
    c.must_pass = beams == 4 || (options.settings.ends.size() < 5 &&
                                 (options.steps < 10 || options.settings.length_penalty == 1));
    c.degenerate = true;  // few hypotheses are finished: most scores are initial ones
    for (uint32_t step = 0; step < options.steps; ++step) {
      c.inputs.push_back({{batch * beams, k, 2},
                          DataType::kU32,
                          [=](std::vector<double>& values, std::mt19937& random) {
                            std::ranges::copy(random_candidates(batch * beams, k, options, random),
                                              values.begin());
                          }});
    }

    c.build = [=](ProgramBuilder& builder, std::span<const Tensor> inputs) {
      Tensor progress = builder.activation({1}, DataType::kU32);
      for (uint32_t step = 0; step < options.steps; ++step) {
        beam_step(builder, inputs[1 + step], inputs[0], layout, progress);
      }
      // The words appear twice: as words, and as floats for the scores.
      return std::vector<Tensor>{progress, words_of(inputs[0], DataType::kU32, 0, state_words),
                                 words_of(inputs[0], DataType::kF32, 0, state_words)};
    };
    c.reference = [=](std::span<const CpuTensor> inputs, const Arithmetic&) {
      ControlWords control(std::vector<uint32_t>(inputs[0].values.begin(), inputs[0].values.end()));
      for (uint32_t step = 0; step < options.steps; ++step) {
        beam_step_reference(layout, inputs[1 + step].values, k, control);
      }
      const std::vector<uint32_t>& state = control.words();
      CpuTensor words = u32_tensor(state);
      words.bounds.assign(state_words, 0);
      CpuTensor scores{{state_words},
                       DataType::kF32,
                       std::vector<double>(state_words),
                       std::vector<double>(state_words, kInfinity)};
      for (const BeamScore& score : beam_scores(layout, control)) {
        words.bounds[score.word] = kInfinity;
        scores.values[score.word] = std::bit_cast<float>(state[score.word]);
        scores.bounds[score.word] = score.error;
      }
      const shader::BeamSearch search = control.get(layout.search);
      return std::vector<CpuTensor>{u32_tensor({search.unfinished}), words, scores};
    };
    return c;
  }
};

}  // namespace

const OpCases& beam_step_cases() {
  static const BeamStepCases cases;
  return cases;
}

}  // namespace mulciber::conformance
