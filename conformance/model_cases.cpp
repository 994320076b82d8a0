#include "conformance/model_cases.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>

#include "conformance/bounds.h"
#include "conformance/case_program.h"
#include "conformance/compare.h"
#include "conformance/model_reference.h"
#include "conformance/ops/beam_reference.h"
#include "models/families/marian.h"
#include "mulciber/error.h"
#include "shaders/beam.h"

namespace mulciber::conformance {
namespace {

using Path = std::filesystem::path;

constexpr uint64_t kGuardBytes = 256;

// The bundled model, or an empty path.
Path find_model() {
  std::error_code ignored;
  Path folder = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
  for (int up = 0; up < 5 && !folder.empty(); ++up, folder = folder.parent_path()) {
    for (const char* place : {"share/mulciber/en-de", "assets/en-de"}) {
      if (std::filesystem::exists(folder / place / "config.json", ignored)) return folder / place;
    }
    if (folder == folder.parent_path()) break;
  }
  return {};
}

/// Ids at random, the same ones everywhere, and the end of text.
std::vector<uint32_t> sentence(uint32_t length, uint32_t seed) {
  std::vector<uint32_t> ids;
  for (uint32_t i = 0; i + 1 < length; ++i)
    ids.push_back(3 + (seed * 7919 + i * 104729 + i * i * 31) % 5900);
  ids.push_back(0);
  return ids;
}

HostTensor as_tensor(const NamedArray& array) {
  return {Shape(std::span<const uint64_t>(array.shape)), DataType::kF32, array.values, {}};
}

NamedArray row_of(std::span<const uint32_t> ids) {
  return {{1, ids.size()}, std::vector<double>(ids.begin(), ids.end())};
}

/// A model as its definition, and what it is made of.
struct Opened {
  Checkpoint checkpoint;
  MarianConfig config;
  Arithmetic arithmetic;
  ModelReference reference;

  Opened(Device& device, const Path& path)
      : checkpoint(path),
        config(read_marian_config(checkpoint)),
        arithmetic(arithmetic_of(nullptr, device.capabilities())),
        reference(checkpoint, config, arithmetic) {}
};

/// The model on the device, all its memory between guards: weights, caches, arenas.
struct GuardedModel {
  struct Guards {
    Allocator& memory;
    ~Guards() { memory.set_guard(0); }
  } guards;
  Marian model;

  GuardedModel(Device& device, const Checkpoint& checkpoint, uint64_t guard_bytes)
      : guards{device.memory()},
        model((guards.memory.set_guard(guard_bytes), device), checkpoint, {}) {}
};

uint32_t start_of(const Opened& opened) {
  return static_cast<uint32_t>(opened.config.generation.decoder_start.value_or(0));
}

/// Wrong beyond every bound, as a number and as an id.
void corrupt(HostTensor& tensor) { tensor.values[0] += 64 + std::fabs(tensor.values[0]); }

bool is_clean(Status status) {
  return status == Status::kPass || status == Status::kQualityWarning;
}

/// Runs a case `repeats` times, and once more on a model that is loaded anew, elsewhere: `run`
/// gives numbers that must not change, `judge` the verdict on them. As run_case() does it, but that
/// guards stand around whole allocations, not between the tensors of an arena, and that poison is
/// fresh in the first and last run alone.
template <typename Run, typename Verdict>
CaseResult repeated(Device& device, const RunOptions& options, Run&& run, Verdict&& judge) {
  return guarded([&]() -> CaseResult {
    const Path path = find_model();
    if (path.empty())
      return {Status::kNotSupported, "the bundled model is not beside this program"};
    const Opened opened(device, path);
    CaseResult result;
    HostTensor first;
    std::unique_ptr<GuardedModel> model;
    const uint32_t runs = std::max(1u, options.repeats) + 1;
    for (uint32_t i = 0; i < runs; ++i) {
      const bool fresh = i == 0 || i + 1 == runs;
      if (fresh) {
        model.reset();
        model = std::make_unique<GuardedModel>(device, opened.checkpoint,
                                               kGuardBytes * (1 + (options.seed + i) % 7));
      }
      HostTensor got = run(opened, model->model);
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
      if (!is_clean(result.status)) break;
    }
    return result;
  });
}

CaseResult forward_case(Device& device, const RunOptions& options,
                        const std::vector<uint32_t>& source, const std::vector<uint32_t>& target) {
  return repeated(
      device, options,
      [&](const Opened& opened, Marian& model) {
        std::vector<uint32_t> fed = {start_of(opened)};
        fed.insert(fed.end(), target.begin(), target.end());
        const NamedArray mask = {{1, source.size()}, std::vector<double>(source.size(), 1)};
        const std::string wanted[] = {"logits"};
        return as_tensor(model
                             .forward({{"input_ids", row_of(source)},
                                       {"attention_mask", mask},
                                       {"decoder_input_ids", row_of(fed)}},
                                      wanted)
                             .at("logits"));
      },
      [&](const Opened& opened, const HostTensor& got) {
        std::vector<uint32_t> fed = {start_of(opened)};
        fed.insert(fed.end(), target.begin(), target.end());
        std::vector<HostTensor> outputs = {
            opened.reference.logits(opened.reference.encode(source), fed)};
        cap_bounds(outputs, opened.arithmetic.half_operands ? 3e-2 : 1e-3);
        const HostTensor& expected = outputs[0];
        if (std::string doubt = why_mistrusted({}, {&expected, 1}); !doubt.empty()) {
          return CaseResult{Status::kMistrusted, doubt};
        }
        const Comparison comparison = compare({to_bytes(got)}, {&expected, 1}, {1e-4, 5e-4});
        return CaseResult{comparison.status, comparison.detail, comparison.worst, comparison.nmse};
      });
}

/// Greedy or beam search by the definition of one step, over double-precision log probabilities.
std::vector<uint32_t> search_reference(const Opened& opened, const std::vector<uint32_t>& source,
                                       const GenerationSettings& settings) {
  BeamSettings beam;
  beam.start = settings.start;
  beam.eos = settings.eos.value_or(0xffffffff);
  beam.pad = settings.pad;
  beam.max_length = settings.max_new_tokens + 1;
  beam.length_penalty = settings.length_penalty;
  beam.early_stopping = settings.early_stopping;
  const BeamStateLayout layout = plan_beam_state(0, 1, settings.beams, beam.max_length, 0);
  std::vector<uint32_t> state = initial_beam_state(layout, beam);
  const HostTensor memory = opened.reference.encode(source);
  const uint32_t beams = settings.beams, k = candidates_per_row(beams, opened.config.target_vocab);
  for (uint32_t step = 0; step < settings.max_new_tokens; ++step) {
    std::vector<double> candidates;
    for (uint32_t row = 0; row < beams; ++row) {
      // The ids of this hypothesis, from its last token back to the start.
      std::vector<uint32_t> ids;
      for (uint32_t at = row, position = step;; --position) {
        ids.insert(ids.begin(), position == 0
                                    ? settings.start
                                    : state[layout.history_tokens + position * beams + at]);
        if (position == 0) break;
        at = state[layout.history_parents + position * beams + at];
      }
      const HostTensor logits = opened.reference.logits(memory, ids);
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
        const bool last_one = settings.forced_eos && step + 1 == settings.max_new_tokens;
        if (last_one) return id == *settings.forced_eos ? 0.0 : -INFINITY;
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
    if (state[layout.unfinished] == 0) break;
  }
  return finished_hypotheses(layout, state, 0).at(0).ids;
}

CaseResult search_case(Device& device, const RunOptions& options,
                       const std::vector<uint32_t>& source, uint32_t beams) {
  const auto settings_of = [&](const Opened& opened) {
    GenerationSettings settings =
        generation_settings(opened.config.generation, opened.config.max_positions);
    settings.beams = beams;
    settings.n_best = 1;
    settings.max_new_tokens = 12;
    return settings;
  };
  return repeated(
      device, options,
      [&](const Opened& opened, Marian& model) {
        GenerationRequest request;
        request.sources = {&source, 1};
        request.settings = settings_of(opened);
        return u32_tensor(model.generate(request).items.at(0).at(0).ids);
      },
      [&](const Opened& opened, const HostTensor& got) {
        const HostTensor expected =
            u32_tensor(search_reference(opened, source, settings_of(opened)));
        if (got.values.size() != expected.values.size()) {
          return CaseResult{Status::kFail, fmt::format("{} ids, expected {}", got.values.size(),
                                                       expected.values.size())};
        }
        const Comparison comparison = compare({to_bytes(got)}, {&expected, 1});
        return CaseResult{comparison.status, comparison.detail, comparison.worst, comparison.nmse};
      });
}

}  // namespace

std::vector<SuiteCase> model_cases() {
  std::vector<SuiteCase> cases;
  const auto add = [&](std::string name, auto run) {
    SuiteCase c;
    c.name = "mulciber.model.en_de." + std::move(name);
    c.op = "model";
    c.types = "f32 f16";
    c.must_pass = true;
    c.run = std::move(run);
    cases.push_back(std::move(c));
  };
  for (const auto& [length, targets] : {std::pair{1u, 1u}, {6u, 5u}, {13u, 9u}, {31u, 3u}}) {
    const auto source = sentence(length, length), target = sentence(targets, length + 40);
    add(fmt::format("forward.s{}_t{}", length, targets),
        [=](Device& device, const RunOptions& options) {
          return forward_case(device, options, source, target);
        });
  }
  for (uint32_t length : {4u, 11u}) {
    for (uint32_t beams : {1u, 4u}) {
      const auto source = sentence(length, 100 + length);
      add(fmt::format("{}.s{}", beams == 1 ? "greedy" : fmt::format("beam_{}", beams), length),
          [=](Device& device, const RunOptions& options) {
            return search_case(device, options, source, beams);
          });
    }
  }
  return cases;
}

}  // namespace mulciber::conformance
