#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "conformance/bounds.h"
#include "conformance/op_case.h"
#include "conformance/ops/beam_reference.h"
#include "mulciber/error.h"
#include "ops/search.h"
#include "runtime/op.h"
#include "shaders/beam.h"

namespace mulciber::conformance {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr uint32_t kNever = 0xffffffff;

// Words [first, first + count) of a tensor under another type, as an output of its own.
Tensor words_of(const Tensor& tensor, DataType type, uint64_t first, uint64_t count) {
  Tensor part = tensor;
  part.shape = {count};
  part.type = type;
  part.byte_offset += first * 4;
  return part;
}

struct TopKVariant {
  std::vector<uint32_t> banned;
  uint32_t spare_banned = 0;  // room beyond what is banned
  uint32_t position = 7;
  uint32_t forced_index = kNever, forced_id = 0;
  double levels = 0;        // > 0: logits are multiples of 1 / levels, so that many are equal
  bool odd_values = false;  // NaN and infinities; a row of NaN, a row of -inf
  double offset = 0;
};

class TopKCases : public OpCases {
 public:
  Op op() const override { return Op::kTopK; }
  std::string shape_format() const override { return "rows,vocabulary,k"; }

  std::vector<std::vector<uint64_t>> bench_shapes() const override {
    return {{1, 6000, 2},  {5, 6000, 10}, {80, 6000, 10},
            {1, 60000, 2}, {4, 60000, 8}, {64, 60000, 16}};
  }

  OpCase make(std::span<const uint64_t> shape, KernelTypes types) const override {
    if (shape.size() != 3 || std::ranges::count(shape, uint64_t{0}) > 0 || shape[2] > 64 ||
        shape[2] > shape[1]) {
      throw ShapeError("top k", "a shape is three positive numbers, k up to 64 and the vocabulary",
                       "give rows,vocabulary,k such as 4,60000,8");
    }
    return variant(shape[0], shape[1], static_cast<uint32_t>(shape[2]), types,
                   {.banned = {static_cast<uint32_t>(shape[1] - 1)}});
  }

  std::vector<OpCase> samples(KernelTypes types) const override {
    std::vector<OpCase> cases;
    auto add = [&](uint64_t rows, uint64_t vocabulary, uint32_t k, TopKVariant options = {}) {
      cases.push_back(variant(rows, vocabulary, k, types, options));
    };
    auto range = [](uint32_t first, uint32_t last) {
      std::vector<uint32_t> ids(last - first);
      std::iota(ids.begin(), ids.end(), first);
      return ids;
    };
    for (uint64_t vocabulary : {1, 2, 3, 4, 7, 31, 64, 127, 128, 129, 255, 256, 257, 1000, 1027}) {
      for (uint32_t k : {1, 2, 5, 8, 64}) {
        if (k <= vocabulary) add(2, vocabulary, k);
      }
    }
    add(1, 6000, 2);
    add(7, 6007, 16);
    add(3, 60000, 8);
    add(2, 65537, 64);
    add(2, 262144, 10);
    for (double levels : {0.25, 1.0, 8.0}) {
      add(3, 50, 20, {.levels = levels});
      add(3, 1001, 64, {.levels = levels});
      add(2, 20000, 9, {.levels = levels});
    }
    add(4, 300, 6, {.offset = 1e4});
    add(6, 260, 8, {.odd_values = true});
    add(6, 67, 64, {.odd_values = true});
    add(6, 5000, 3, {.banned = {7, 0, 4999}, .odd_values = true});
    // Rules: some ids, the same twice, more room than ids, ids past the vocabulary, all but a few,
    // all.
    add(3, 40, 4, {.banned = {0}});
    add(3, 40, 40, {.banned = {39, 39, 12}, .spare_banned = 5});
    add(3, 400, 2, {.banned = range(0, 399)});
    add(3, 130, 8, {.banned = range(5, 130)});
    add(2, 130, 9, {.banned = range(0, 130)});
    add(2, 30, 3, {.banned = {1000, 0xfffffffe}});
    add(3, 1000, 5, {.banned = range(100, 900), .levels = 1});
    // A forced id, at this index and at another.
    add(2, 90, 4, {.forced_index = 8, .forced_id = 2});
    add(2, 90, 6, {.forced_index = 8, .forced_id = 89});
    add(2, 90, 1, {.forced_index = 8, .forced_id = 0});
    add(2, 90, 4, {.banned = {2}, .forced_index = 8, .forced_id = 2});
    add(2, 90, 4, {.forced_index = 7, .forced_id = 2});
    // Logits above 1 MiB: several nodes where the storage range is that small.
    add(300, 1030, 4);
    add(9, 32771, 12);
    return cases;
  }

 private:
  static constexpr uint32_t kPosition = 1, kForced = 2, kBanned = 5;

  static OpCase variant(uint64_t rows, uint64_t vocabulary, uint32_t k, KernelTypes types,
                        TopKVariant options) {
    OpCase c;
    c.types = types;
    c.name = fmt::format("r{}_v{}_k{}", rows, vocabulary, k);
    if (!options.banned.empty()) c.name += fmt::format(".banned_{}", options.banned.size());
    if (options.forced_index != kNever) {
      c.name += fmt::format(".forced_{}_at_{}", options.forced_id, options.forced_index);
    }
    if (options.levels > 0) c.name += fmt::format(".ties_{}", name_part(options.levels));
    if (options.odd_values) c.name += ".odd_values";
    if (options.offset != 0) c.name += ".offset";

    // Few logits stand close together: the logarithm of a probability near one is all rounding.
    CaseInput logits = normal_input({rows, vocabulary}, DataType::kF32, vocabulary < 8 ? 0.5 : 3);
    logits.fill = [=, normal = logits.fill](std::vector<double>& values, std::mt19937& random) {
      normal(values, random);
      for (double& value : values) {
        if (options.levels > 0) value = std::round(value * options.levels) / options.levels;
        value += options.offset;
      }
      if (!options.odd_values) return;
      for (size_t i = 0; i < values.size(); i += 3) values[i] = std::nan("");
      for (size_t i = 1; i < values.size(); i += 7) values[i] = -kInfinity;
      for (uint64_t i = 0; i < vocabulary; ++i) {
        values[i] = std::nan("");
        values[vocabulary + i] = -kInfinity;
        values[2 * vocabulary + i] = i == 5 ? 1 : std::nan("");
      }
      values[3 * vocabulary + vocabulary / 2] = kInfinity;
      values[4 * vocabulary + vocabulary / 3] = kInfinity;
      values[4 * vocabulary + vocabulary / 2] = kInfinity;
    };
    std::vector<uint32_t> words = {kNever,
                                   options.position,
                                   options.forced_index,
                                   options.forced_id,
                                   kNever,
                                   static_cast<uint32_t>(options.banned.size())};
    words.insert(words.end(), options.banned.begin(), options.banned.end());
    words.insert(words.end(), options.spare_banned + 1, 3);
    c.inputs = {logits, words_input(words)};

    uint32_t capacity = static_cast<uint32_t>(options.banned.size()) + options.spare_banned;
    c.build = [=](ProgramBuilder& builder, std::span<const Tensor> inputs) {
      TokenRules rules{kBanned, capacity, kPosition, kForced};
      Tensor result = top_k(builder, inputs[0], k, inputs[1], rules);
      // The same words twice: as floats for the values, as words for the ids.
      std::vector<Tensor> outputs = {words_of(result, DataType::kF32, 0, rows * k * 2),
                                     words_of(result, DataType::kU32, 0, rows * k * 2)};
      for (Tensor& output : outputs) output.shape = {rows, k * 2ull};
      return outputs;
    };
    c.must_pass = vocabulary <= 300 ? vocabulary % 2 == 1 || k == 5 : vocabulary < 10000;
    // Ties, rules and odd values leave few results that differ: they are what such a case is about.
    c.degenerate = options.levels > 0 || options.odd_values || !options.banned.empty() ||
                   options.forced_index != kNever;
    c.reference = [=](std::span<const HostTensor> inputs, const Arithmetic&) {
      HostTensor values{{rows, k * 2ull}, DataType::kF32, {}, {}}, ids = values;
      ids.type = DataType::kU32;
      for (uint64_t row = 0; row < rows; ++row) {
        const double* logits = inputs[0].values.data() + row * vocabulary;
        std::vector<double> key(logits, logits + vocabulary);
        for (double& value : key) {
          value = std::isnan(value) ? -kInfinity
                                    : std::min<double>(value, std::numeric_limits<float>::max());
        }
        const double maximum = *std::ranges::max_element(key);
        double sum = 0, error = 0;
        for (double value : key) {
          if (value == -kInfinity) continue;
          const Bounded term = exp(Bounded(value) - Bounded(maximum));
          sum += term.value;
          error += term.error;
        }
        const Bounded shift =
            log(Bounded(sum, error + sum_error(static_cast<double>(vocabulary), sum)));
        for (uint32_t id : options.banned) {
          if (id < vocabulary) key[id] = -kInfinity;
        }
        const bool forced = options.forced_index == options.position + 1;
        if (forced) {
          std::ranges::fill(key, -kInfinity);
          key[options.forced_id] = 0;
        }
        std::vector<uint32_t> order(vocabulary);
        std::iota(order.begin(), order.end(), 0);
        std::ranges::partial_sort(order, order.begin() + k, [&](uint32_t a, uint32_t b) {
          return key[a] > key[b] || (key[a] == key[b] && a < b);
        });
        for (uint32_t rank = 0; rank < k; ++rank) {
          const uint32_t id = order[rank];
          Bounded value(key[id]);
          if (!forced && key[id] > -kInfinity) value = value - Bounded(maximum) - shift;
          append(values, value);
          append(ids, Bounded(0, kInfinity));
          append(values, Bounded(0, kInfinity));
          append(ids, Bounded(id));
        }
      }
      return std::vector<HostTensor>{values, ids};
    };
    return c;
  }
};

class BeamStepCases : public OpCases {
 public:
  Op op() const override { return Op::kBeamStep; }
  std::string shape_format() const override { return "batch,beams"; }

  std::vector<std::vector<uint64_t>> bench_shapes() const override {
    return {{1, 1}, {1, 4}, {16, 5}, {64, 4}};
  }

  OpCase make(std::span<const uint64_t> shape, KernelTypes types) const override {
    if (shape.size() != 2 || shape[0] == 0 || shape[1] == 0 || shape[1] > 32) {
      throw ShapeError("beam step", "a shape is two positive numbers, beams up to 32",
                       "give batch,beams such as 16,5");
    }
    // Half way through a search that has not ended: the typical step.
    Variant options;
    options.settings.max_length = 128;
    options.settings.eos = kNever;
    options.first_position = 63;
    options.steps = 1;
    return variant(static_cast<uint32_t>(shape[0]), static_cast<uint32_t>(shape[1]), types,
                   options);
  }

  std::vector<OpCase> samples(KernelTypes types) const override {
    std::vector<OpCase> cases;
    auto add = [&](uint32_t batch, uint32_t beams, Variant options) {
      cases.push_back(variant(batch, beams, types, options));
    };
    // Other than with 0 and 1, no two scores of different length are equal: rounding decides
    // nothing.
    for (EarlyStopping early :
         {EarlyStopping::kHeuristic, EarlyStopping::kEarly, EarlyStopping::kNever}) {
      for (float penalty : {1.0f, 0.0f, 1.7f, 0.6f, -0.5f}) {
        for (uint32_t beams : {1, 2, 3, 4, 5, 8}) {
          Variant options;
          options.settings.early_stopping = early;
          options.settings.length_penalty = penalty;
          options.settings.max_length = 9;
          options.steps = 10;  // the last is one too many: nothing may change any more
          add(beams % 3 + 1, beams, options);
        }
      }
    }
    for (uint32_t beams : {1, 4}) {
      Variant never_ends;
      never_ends.settings.eos = kNever;
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
    BeamSettings settings = {.start = 3, .eos = 0, .pad = 1, .max_length = 10};
    uint32_t first_position =
        0;  // steps start here, from a state that looks as if they had come so far
    uint32_t steps = 1;
    uint32_t candidates = 0;  // 0: 2 * beams
    uint32_t spare_capacity = 0;
    double eos_share = 0.3;       // of rows of candidates that hold eos
    double impossible_share = 0;  // of candidates that are -inf
  };
  static constexpr uint32_t kFirstWord = 3, kBannedCapacity = 2;

  // Best first, ids different, values multiples of 1/64: then sums in f32 are exact.
  static std::vector<uint32_t> random_candidates(uint32_t rows, uint32_t k, const Variant& options,
                                                 std::mt19937& random) {
    std::vector<uint32_t> words;
    std::uniform_real_distribution<double> share(0, 1);
    std::uniform_int_distribution<int> drop(0, 90);
    for (uint32_t row = 0; row < rows; ++row) {
      std::vector<uint32_t> ids(100);
      std::iota(ids.begin(), ids.end(), 10);
      std::ranges::shuffle(ids, random);
      ids.resize(k);
      if (share(random) < options.eos_share) {
        ids[random() % std::max(1u, k / 2)] =
            options.settings.eos == kNever ? 5 : options.settings.eos;
      }
      int level = 0;
      for (uint32_t i = 0; i < k; ++i) {
        level += drop(random) < 30 ? 0 : drop(random);
        bool impossible =
            share(random) < options.impossible_share * (i + 1) / k || options.impossible_share == 1;
        words.push_back(bits_of(impossible ? -std::numeric_limits<float>::infinity()
                                           : -static_cast<float>(level) / 64.0f));
        words.push_back(ids[i]);
        if (impossible) {  // and so are all that follow
          for (++i; i < k; ++i) {
            words.push_back(bits_of(-std::numeric_limits<float>::infinity()));
            words.push_back(ids[i]);
          }
        }
      }
      // Of equal values the smaller id first, as top_k gives them.
      for (size_t i = words.size() - 2 * k + 2; i < words.size();) {
        bool swap = words[i - 2] == words[i] && words[i - 1] > words[i + 1];
        if (swap) std::swap(words[i - 1], words[i + 1]);
        i = swap && i > words.size() - 2 * k + 2 ? i - 2 : i + 2;
      }
    }
    return words;
  }

  // A state at `position` with made-up history: every hypothesis has always stood in its own row.
  static std::vector<uint32_t> state_at(const BeamStateLayout& layout, const Variant& options) {
    std::vector<uint32_t> state = initial_beam_state(layout, options.settings);
    auto at = [&](uint32_t word) -> uint32_t& { return state[word - layout.first_word]; };
    at(layout.position) = options.first_position;
    uint32_t rows = layout.batch * layout.beams;
    for (uint32_t row = 0; row < rows && options.first_position > 0; ++row) {
      at(layout.scores + row) = bits_of(-static_cast<float>(row % layout.beams) / 4.0f);
      for (uint32_t position = 1; position <= options.first_position; ++position) {
        at(layout.history_tokens + position * rows + row) = 200 + position;
        at(layout.history_parents + position * rows + row) = row;
      }
      at(layout.tokens + row) = 200 + options.first_position;
    }
    return state;
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
    if (options.settings.eos == kNever) c.name += ".no_eos";
    if (options.eos_share != 0.3) c.name += fmt::format(".eos_{}", name_part(options.eos_share));
    if (options.impossible_share > 0)
      c.name += fmt::format(".impossible_{}", name_part(options.impossible_share));

    BeamStateLayout layout =
        plan_beam_state(kFirstWord, batch, beams,
                        options.settings.max_length + options.spare_capacity, kBannedCapacity);
    std::vector<uint32_t> words(kFirstWord, kNever);
    std::vector<uint32_t> state = state_at(layout, options);
    words.insert(words.end(), state.begin(), state.end());
    const uint64_t state_words = words.size();
    c.inputs = {words_input(words)};
    c.must_pass = options.steps < 10 || beams == 4 || options.settings.length_penalty == 1;
    c.degenerate = true;  // few hypotheses are finished: most scores are those of the beginning
    for (uint32_t step = 0; step < options.steps; ++step) {
      c.inputs.push_back({{batch * beams, k, 2},
                          DataType::kU32,
                          [=](std::vector<double>& values, std::mt19937& random) {
                            std::ranges::copy(random_candidates(batch * beams, k, options, random),
                                              values.begin());
                          }});
    }

    c.build = [=](ProgramBuilder& builder, std::span<const Tensor> inputs) {
      Tensor progress = builder.activation({2}, DataType::kU32);
      for (uint32_t step = 0; step < options.steps; ++step) {
        beam_step(builder, inputs[1 + step], inputs[0], layout, progress);
      }
      // The same words twice: as words, and as floats for the scores.
      return std::vector<Tensor>{progress, words_of(inputs[0], DataType::kU32, 0, state_words),
                                 words_of(inputs[0], DataType::kF32, 0, state_words)};
    };
    c.reference = [=](std::span<const HostTensor> inputs, const Arithmetic&) {
      std::vector<uint32_t> state(inputs[0].values.begin(), inputs[0].values.end());
      for (uint32_t step = 0; step < options.steps; ++step) {
        beam_step_reference(layout, inputs[1 + step].values, k, state);
      }
      HostTensor words = u32_tensor(state);
      words.bounds.assign(state_words, 0);
      HostTensor scores{{state_words},
                        DataType::kF32,
                        std::vector<double>(state_words),
                        std::vector<double>(state_words, kInfinity)};
      for (const BeamScore& score : beam_scores(layout, state)) {
        words.bounds[score.word] = kInfinity;
        scores.values[score.word] = std::bit_cast<float>(state[score.word]);
        scores.bounds[score.word] = score.error;
      }
      return std::vector<HostTensor>{u32_tensor({state[layout.position], state[layout.unfinished]}),
                                     words, scores};
    };
    return c;
  }
};

}  // namespace

const OpCases& top_k_cases() {
  static const TopKCases cases;
  return cases;
}

const OpCases& beam_step_cases() {
  static const BeamStepCases cases;
  return cases;
}

}  // namespace mulciber::conformance
