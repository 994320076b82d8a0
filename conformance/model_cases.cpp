#include "conformance/model_cases.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "conformance/bounds.h"
#include "conformance/case_program.h"
#include "conformance/compare.h"
#include "conformance/model_reference.h"
#include "conformance/ops/beam_reference.h"
#include "mulciber/error.h"
#include "shaders/beam.h"

namespace mulciber::conformance {
namespace {

constexpr uint64_t kModelGuardBytes = 256;
constexpr uint32_t kMaxNewTokens = 12;  // per search

/// Random ids, equal everywhere, and the end of text.
std::vector<uint32_t> sentence(uint32_t length, uint32_t seed) {
  std::vector<uint32_t> ids;
  for (uint32_t i = 0; i + 1 < length; ++i)
    ids.push_back(3 + (seed * 7919 + i * 104729 + i * i * 31) % 5900);
  ids.push_back(0);
  return ids;
}

/// A model's definition and the data for it.
struct Opened {
  const TranslationFiles& files;
  Arithmetic arithmetic;
  ModelReference reference;

  Opened(Device& device, const TranslationFiles& from)
      : files(from),
        arithmetic(arithmetic_of(nullptr, device.capabilities())),
        reference(from, arithmetic) {}
};

/// The model on the device, with guards around all its memory: weights, caches, arenas.
struct GuardedModel {
  struct Guards {
    Allocator& memory;
    ~Guards() { memory.set_guard(0); }
  } guards;
  std::unique_ptr<LoadedTranslation> model;

  GuardedModel(Device& device, const TranslationFiles& files, uint64_t guard_bytes)
      : guards{device.memory()},
        model((guards.memory.set_guard(guard_bytes), files.load(device))) {}
};

/// The decoder's input for logits of each id of `target` and one more.
std::vector<uint32_t> fed_with(const Opened& opened, const std::vector<uint32_t>& target) {
  std::vector<uint32_t> fed = {opened.files.search_settings(1).start};
  fed.insert(fed.end(), target.begin(), target.end());
  return fed;
}

/// Makes a tensor wrong beyond every bound, as a number and as an id.
void corrupt(CpuTensor& tensor) { tensor.values[0] += 64 + std::fabs(tensor.values[0]); }

bool is_clean(Status status) {
  return status == Status::kPass || status == Status::kQualityWarning;
}

/// Runs a case `repeats` times, and once more with the model loaded again elsewhere: `run` gives
/// numbers that must not change, `judge` the verdict on them. Unlike run_case(), guards are around
/// whole allocations, not between the tensors of an arena, and only the first and last run have
/// fresh poison.
template <typename Run, typename Verdict>
CaseResult run_repeatedly(Device& device, const ModelsUnderTest& models, const RunOptions& options,
                          Run&& run, Verdict&& judge) {
  return guarded([&]() -> CaseResult {
    const std::unique_ptr<TranslationFiles> files = models.bundled_translation();
    if (!files) return {Status::kNotSupported, "the bundled model is not beside this program"};
    const Opened opened(device, *files);
    CaseResult result;
    CpuTensor first;
    std::unique_ptr<GuardedModel> model;
    const uint32_t runs = std::max(1u, options.repeats) + 1;
    for (uint32_t i = 0; i < runs; ++i) {
      const bool fresh = i == 0 || i + 1 == runs;
      if (fresh) {
        model.reset();
        model = std::make_unique<GuardedModel>(device, *files,
                                               kModelGuardBytes * (1 + (options.seed + i) % 7));
      }
      CpuTensor got = run(opened, *model->model);
      if (options.fault != Fault::kNone) {
        const auto write_outside = [&] {
          upload(device, device.memory().guard_word(), std::vector<std::byte>(4));
        };
        inject(options.fault, device, {[&] { corrupt(got); }, write_outside}, i + 1 == runs);
      }
      const uint32_t repeats = result.repeats + 1;
      if (i == 0) {
        result = judge(opened, got);
        first = std::move(got);
      } else if (got.values != first.values) {
        result.status = Status::kFlaky;
        result.detail = fmt::format("run {} of {} has other results than the first{}", i + 1, runs,
                                    fresh ? " (of the model loaded anew)" : "");
      }
      result.repeats = repeats;
      if (std::string damage = fresh ? device.memory().damage() : ""; !damage.empty()) {
        result.status = Status::kFail;
        result.detail = damage;
      }
      if (!is_clean(result.status)) return result;
    }
    for (const Order& order : options.orders) {
      const OrderScope scope(device, order);
      model.reset();
      model = std::make_unique<GuardedModel>(device, *files, kModelGuardBytes);
      CpuTensor got = run(opened, *model->model);
      if (options.fault == Fault::kOrder) corrupt(got);
      result.orders.push_back(name_of(order));
      if (got.values == first.values) continue;
      const auto [own, other] = std::mismatch(first.values.begin(), first.values.end(),
                                              got.values.begin(), got.values.end());
      const auto shown = [](const CpuTensor& tensor, auto at) {
        return at == tensor.values.end() ? std::string("missing") : fmt::format("{:.9g}", *at);
      };
      result.status = Status::kFlaky;
      result.detail = fmt::format(
          "in {} order of workgroups and subgroups element {} of the results is {}, in the "
          "device's own {}",
          name_of(order), own - first.values.begin(), shown(got, other), shown(first, own));
      break;
    }
    return result;
  });
}

CaseResult forward_case(Device& device, const ModelsUnderTest& models, const RunOptions& options,
                        const std::vector<uint32_t>& source, const std::vector<uint32_t>& target) {
  return run_repeatedly(
      device, models, options,
      [&](const Opened& opened, LoadedTranslation& model) {
        return model.logits(source, fed_with(opened, target));
      },
      [&](const Opened& opened, const CpuTensor& got) {
        std::vector<CpuTensor> outputs = {
            opened.reference.logits(opened.reference.encode(source), fed_with(opened, target))};
        cap_bounds(outputs, opened.arithmetic.half_operands ? 3e-2 : 1e-3);
        const CpuTensor& expected = outputs[0];
        if (std::string doubt = why_mistrusted({}, {&expected, 1}); !doubt.empty()) {
          return CaseResult{Status::kMistrusted, doubt};
        }
        const Comparison comparison = compare({to_bytes(got)}, {&expected, 1}, {1e-4, 5e-4});
        return CaseResult{comparison.status, comparison.detail, comparison.worst, comparison.nmse};
      });
}

/// Greedy or beam search by the definition of one step, over double-precision log probabilities.
std::vector<uint32_t> search_reference(const Opened& opened, const std::vector<uint32_t>& source,
                                       uint32_t beams, const BeamSettings& settings) {
  ControlLayout all;
  const BeamStateLayout layout = plan_beam_state(all, 1, beams, settings.max_length, BeamRoom{});
  BeamSettings free = settings;  // bans are applied to the candidates below
  free.banned.clear();
  ControlWords state(all.words());
  initialize_beam_state(state, layout, free);
  const CpuTensor memory = opened.reference.encode(source);
  const uint32_t k = beams == 1 ? 1 : std::min(2 * beams, opened.files.shape().vocabulary);
  for (uint32_t step = 0; step + 1 < settings.max_length; ++step) {
    std::vector<double> candidates;
    for (uint32_t row = 0; row < beams; ++row) {
      // The ids of this hypothesis, from its last token back to the start.
      std::vector<uint32_t> ids;
      for (uint32_t at = row, position = step;; --position) {
        ids.insert(ids.begin(), position == 0
                                    ? settings.start
                                    : state.get(layout.history_tokens, position * beams + at));
        if (position == 0) break;
        at = state.get(layout.history_parents, position * beams + at);
      }
      const CpuTensor logits = opened.reference.logits(memory, ids);
      const size_t vocabulary = logits.shape.columns();
      const double* last = &logits.values[(ids.size() - 1) * vocabulary];
      const double most = *std::max_element(last, last + vocabulary);
      double sum = 0;
      for (size_t id = 0; id < vocabulary; ++id) sum += std::exp(last[id] - most);
      std::vector<uint32_t> order(vocabulary);
      for (size_t id = 0; id < vocabulary; ++id) order[id] = static_cast<uint32_t>(id);
      const auto value = [&](uint32_t id) {
        const bool banned =
            std::find(settings.banned.begin(), settings.banned.end(), id) != settings.banned.end();
        if (step + 1 == settings.forced_last.index)
          return id == settings.forced_last.id ? 0.0 : -INFINITY;
        return banned ? -INFINITY : last[id] - most - std::log(sum);
      };
      std::partial_sort(order.begin(), order.begin() + k, order.end(), [&](uint32_t a, uint32_t b) {
        return value(a) > value(b) || (value(a) == value(b) && a < b);
      });
      for (uint32_t i = 0; i < k; ++i) {
        candidates.push_back(bits_of(static_cast<float>(value(order[i]))));
        candidates.push_back(order[i]);
      }
    }
    beam_step_reference(layout, candidates, k, state);
    if (state.get(layout.search).unfinished == 0) break;
  }
  return finished_hypotheses(layout, state, 0).at(0).ids;
}

CaseResult search_case(Device& device, const ModelsUnderTest& models, const RunOptions& options,
                       const std::vector<uint32_t>& source, uint32_t beams) {
  return run_repeatedly(
      device, models, options,
      [&](const Opened&, LoadedTranslation& model) {
        return u32_tensor(model.search(source, beams, kMaxNewTokens));
      },
      [&](const Opened& opened, const CpuTensor& got) {
        const CpuTensor expected = u32_tensor(
            search_reference(opened, source, beams, opened.files.search_settings(kMaxNewTokens)));
        if (got.values.size() != expected.values.size()) {
          return CaseResult{Status::kFail, fmt::format("{} ids, expected {}", got.values.size(),
                                                       expected.values.size())};
        }
        const Comparison comparison = compare({to_bytes(got)}, {&expected, 1});
        return CaseResult{comparison.status, comparison.detail, comparison.worst, comparison.nmse};
      });
}

}  // namespace

std::vector<SuiteCase> model_cases(const ModelsUnderTest& models) {
  std::vector<SuiteCase> cases;
  const auto add = [&](std::string name, auto run) {
    SuiteCase c;
    c.name = "mulciber.model.en_de." + std::move(name);
    c.op = "model";
    c.types = "f32 f16";
    c.must_pass = true;
    c.place = cases.size();
    c.run = std::move(run);
    cases.push_back(std::move(c));
  };
  for (const auto& [length, targets] : {std::pair{1u, 1u}, {6u, 5u}, {13u, 9u}, {31u, 3u}}) {
    const auto source = sentence(length, length), target = sentence(targets, length + 40);
    add(fmt::format("forward.s{}_t{}", length, targets),
        [=, &models](Device& device, const RunOptions& options) {
          return forward_case(device, models, options, source, target);
        });
  }
  for (uint32_t length : {4u, 11u}) {
    for (uint32_t beams : {1u, 4u}) {
      const auto source = sentence(length, 100 + length);
      add(fmt::format("{}.s{}", beams == 1 ? "greedy" : fmt::format("beam_{}", beams), length),
          [=, &models](Device& device, const RunOptions& options) {
            return search_case(device, models, options, source, beams);
          });
    }
  }
  return cases;
}

}  // namespace mulciber::conformance
