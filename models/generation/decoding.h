// Greedy and beam search over a program that does one step: settings, state, the loop, the results.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "models/core/config.h"
#include "ops/search.h"
#include "runtime/program.h"

namespace mulciber {

/// Most beams: the candidates of a row, two per beam, are at most 64 (ops/search.h).
constexpr uint32_t kMaxBeams = 32;

struct GenerationSettings {
  uint32_t beams = 1;           // 1: greedy search
  uint32_t n_best = 1;          // at most beams
  uint32_t max_new_tokens = 1;  // ids after the start token, end of text included
  float length_penalty = 1;
  EarlyStopping early_stopping = EarlyStopping::kHeuristic;
  uint32_t start = 0, pad = 0;
  std::vector<uint32_t> ends;          // ids that end a text
  std::optional<uint32_t> forced_bos;  // the first id after the start is this one
  std::optional<uint32_t> forced_eos;  // the last allowed id is this one
  uint32_t min_length = 0;             // least tokens before the end of text, with the start token
  uint32_t no_repeat_ngram = 0;        // no n-gram of that length occurs twice; 0: any may
  std::vector<uint32_t> banned;        // never chosen
  /// Sequences of two ids or more that are never chosen.
  std::vector<std::vector<uint32_t>> banned_words;
  bool renormalize = false;  // scores are log probabilities over the ids that are left
  bool operator==(const GenerationSettings&) const = default;
};

/// Settings of a model's files. context: ids that the decoder can be fed, the default and the bound
/// of max_new_tokens. Throws ModelError with the key of a setting that these searches do not
/// support: sampling, a repetition penalty, renormalized scores beside banned sequences.
GenerationSettings generation_settings(const GenerationConfig& config, uint32_t context);
/// Throws ModelError when the numbers contradict each other or the model.
void check_settings(const GenerationSettings& settings, uint32_t vocabulary, uint32_t context);

/// Adds a sequence of ids that is never to occur, of one id or more.
void ban(GenerationSettings& settings, std::span<const uint32_t> ids);

/// Candidates of each row that a step looks at: those that may go on and those that may end.
uint32_t candidates_per_row(uint32_t beams, uint32_t ends, uint32_t vocabulary);

/// The settings as the state of a search holds them.
BeamSettings beam_settings(const GenerationSettings& settings);

/// Writes the state of a search that has not begun. Items from `items` up to layout.batch are
/// padding: done before they start.
void initialize_search(ControlWords& control, const BeamStateLayout& layout,
                       const GenerationSettings& settings, uint32_t items);

struct StepLoop {
  uint32_t most_steps = 0;
  std::function<bool()> finished;  // reads what steps that have ended wrote to host-visible memory
  /// Most steps in flight, by which `finished` is asked late: a search may run one step less than
  /// that too many.
  uint32_t in_flight = 2;
  uint32_t steps_per_submission = 1;
  const std::atomic<bool>* cancel = nullptr;
  std::function<void()> on_first_submitted;     // the first steps are submitted
  std::function<void()> on_first_step;          // the first step's token is known
  std::function<void(uint32_t done)> on_steps;  // `done` steps have ended
};
struct StepLoopResult {
  uint32_t steps = 0;  // submitted
  bool cancelled = false;
};
/// Steps to keep in flight on a device: Tuning::steps_in_flight, and one while nodes are timed.
uint32_t steps_in_flight(Device& device);
/// Decode steps of a sequence in slots that are submitted at once, `together` in one submission:
/// the CPU takes the tokens of a submission while the next ones run.
uint32_t steps_at_once(Device& device, uint32_t together);

/// Replays `step` until the search is finished or cancelled, or most_steps are done. Returns with
/// no step in flight.
StepLoopResult run_steps(Device& device, Program& step, const StepLoop& loop);

}  // namespace mulciber
