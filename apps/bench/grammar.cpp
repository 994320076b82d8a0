#include "apps/bench/grammar.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <nlohmann/json.hpp>

#include "apps/cli/language_model.h"
#include "base/clock.h"
#include "models/generation/completion_grammar.h"
#include "models/generation/language_model.h"
#include "models/generation/sequence_decoding.h"
#include "text/tokenizer.h"

namespace mulciber::apps {
namespace {

/// Processor time of all the process's threads, those of a software driver included.
double processor_seconds() {
  return static_cast<double>(std::clock()) / static_cast<double>(CLOCKS_PER_SEC);
}

/// Times of each run.
struct StepTimes {
  std::vector<double> wall, processor;  // seconds a step
};

struct GrammarRuns {
  StepTimes with, without;
  std::vector<double> begin;    // seconds until the grammar is compiled and the first mask is found
  std::vector<double> grammar;  // seconds a step
  std::vector<double> share;    // share of a step's wall time
  uint32_t steps = 0;
};

class GrammarBench {
 public:
  GrammarBench(const ModelBench& options, const DecoderNetwork& network, SequenceSlots& slots,
               std::shared_ptr<const Tokenizer> tokenizer)
      : options_(options),
        vocabulary_(network.vocabulary),
        slots_(slots),
        grammars_(std::move(tokenizer), network.vocabulary) {}

  /// Runs once with and once without the grammar, with the same number of steps each.
  void turn(uint64_t seed, GrammarRuns& to) {
    const auto begin = Clock::now();
    const Grammar grammar = *chosen_grammar(options_.answer);
    CompletionGrammar answer(grammars_.masks(grammar), {});
    answer.next();
    to.begin.push_back(seconds_since(begin));
    const DecodedSequence result = run(seed, options_.tokens, &answer, to.with);
    if (result.steps == 0)
      throw ModelError("grammar", "has answers of one token, which leaves no step to measure",
                       "give one of longer texts");
    to.grammar.push_back(result.grammar_seconds / result.steps);
    to.share.push_back(result.grammar_seconds / result.decode_seconds);
    to.steps += result.steps;
    run(seed, result.steps, nullptr, to.without);
  }

 private:
  DecodedSequence run(uint64_t seed, uint32_t tokens, CompletionGrammar* grammar, StepTimes& to) {
    // The time does not depend on the ids, so any will do.
    std::vector<uint32_t> prompt;
    for (uint32_t i = 0; i < options_.prompt; ++i) prompt.push_back((i * 7919 + 13) % vocabulary_);
    double decoding = 0;
    const auto on_token = [&](uint32_t) {
      if (decoding == 0) decoding = processor_seconds();  // the first token belongs to the prompt
    };
    DecodedSequence result = decode_sequence(
        slots_, 0,
        {.prompt = prompt, .reuses = false, .sampling = {.temperature = 1, .seed = seed}},
        {.max_new_tokens = tokens + 1, .stops = {}, .grammar = grammar, .on_token = on_token});
    slots_.end(0, false);
    to.wall.push_back(result.decode_seconds / std::max(result.steps, 1u));
    to.processor.push_back((processor_seconds() - decoding) / std::max(result.steps, 1u));
    return result;
  }

  const ModelBench& options_;
  uint32_t vocabulary_;
  SequenceSlots& slots_;
  GrammarVocabulary grammars_;
};

Json steps_json(const StepTimes& steps) {
  return {{"seconds", median(steps.wall)}, {"processor_seconds", median(steps.processor)}};
}

void print_steps(const char* name, const StepTimes& steps) {
  fmt::print("{:<17} {:.3f} ms a step, {:.3f} ms of processors\n", name, 1e3 * median(steps.wall),
             1e3 * median(steps.processor));
}

}  // namespace

int bench_grammar(const ModelBench& options, const OpenModel& opened) {
  const uint32_t context = options.prompt + options.tokens + 1;
  const std::shared_ptr<Device> device =
      open_tuned_device(options.common,
                        {.context = context,
                         .half_activations = options.half_activations,
                         .key_values = options.key_values},
                        opened, kTestEveryRow);
  const std::unique_ptr<Model> model =
      load_model(*device, opened,
                 {.activations = options.half_activations ? DataType::kF16 : DataType::kF32,
                  .fast_activations = options.fast_activations,
                  .cache = storage_type(options.key_values),
                  .context = context,
                  .sequences = 1});
  const DecoderNetwork& network = model->continues_text()->network();
  SequenceSlots slots(*device, network,
                      conversation_slots(device->capabilities(), network, 1, network.context),
                      std::nullopt);
  GrammarBench bench(options, network, slots, opened.tokenizer());
  GrammarRuns warm, measured;
  bench.turn(0, warm);  // warms up pipelines, programs, the vocabulary's tree
  for (uint32_t i = 0; i < options.repeats; ++i) {
    bench.turn(i + 1, measured);
    if (interrupted()) return kInterrupted;
  }
  const double share = median(measured.share);

  if (options.common.json) {
    fmt::print("{}\n", Json{{"device", device->capabilities().name},
                            {"driver", device->capabilities().driver_info},
                            {"family", model->family()},
                            {"vocabulary", network.vocabulary},
                            {"steps", measured.steps},
                            {"without", steps_json(measured.without)},
                            {"with", steps_json(measured.with)},
                            {"begin_seconds", median(measured.begin)},
                            {"grammar_seconds", median(measured.grammar)},
                            {"grammar_share", share}}
                           .dump(2));
    return kSuccess;
  }
  fmt::print("device            {} {}\n", device->capabilities().name,
             device->capabilities().driver_info);
  fmt::print("vocabulary        {} tokens\n", network.vocabulary);
  print_steps("without", measured.without);
  print_steps("with the grammar", measured.with);
  fmt::print("the grammar       {:.3f} ms a step, {:.2f} % of it ({} steps); {:.1f} ms to begin\n",
             1e3 * median(measured.grammar), 100 * share, measured.steps,
             1e3 * median(measured.begin));
  return finish(*device, options.common, kSuccess);
}

}  // namespace mulciber::apps
