#include "models/generation/decoding.h"

#include <algorithm>
#include <deque>
#include <utility>

#include <fmt/format.h>

#include "mulciber/error.h"

namespace mulciber {
namespace {

[[noreturn]] void unsupported(const char* key, const std::string& problem) {
  throw ModelError(fmt::format("generation_config.json, `{}`", key), problem,
                   "greedy and beam search cannot do it: change the value");
}

}  // namespace

GenerationSettings generation_settings(const GenerationConfig& config, uint32_t context) {
  GenerationSettings settings;
  if (config.sampling.temperature > 0) unsupported("do_sample", "asks for sampling");
  if (config.sampling.repetition_penalty != 1) unsupported("repetition_penalty", "is not 1");
  settings.ends.assign(config.eos.begin(), config.eos.end());
  for (const std::vector<int32_t>& word : config.bad_words_ids) {
    // Ids that end a text are allowed as in transformers, whatever the list says.
    if (word.size() == 1 && std::ranges::count(config.eos, word.front()) > 0) continue;
    ban(settings, std::vector<uint32_t>(word.begin(), word.end()));
  }
  if (config.renormalize_logits && !settings.banned_words.empty())
    unsupported("renormalize_logits", "is true beside `bad_words_ids` of several ids");
  if (config.forced_bos) settings.forced_bos = static_cast<uint32_t>(*config.forced_bos);
  settings.min_length = static_cast<uint32_t>(config.min_length);
  settings.no_repeat_ngram = static_cast<uint32_t>(config.no_repeat_ngram_size);
  if (config.forced_eos) settings.forced_eos = static_cast<uint32_t>(*config.forced_eos);
  settings.pad = static_cast<uint32_t>(config.pad.value_or(0));
  settings.start = static_cast<uint32_t>(config.decoder_start.value_or(config.pad.value_or(0)));
  settings.beams = static_cast<uint32_t>(config.num_beams);
  settings.length_penalty = static_cast<float>(config.length_penalty);
  settings.early_stopping = config.early_stopping;
  settings.renormalize = config.renormalize_logits;

  // The start token and all ids but the last are fed, so that `context` positions suffice for as
  // many ids.
  settings.max_new_tokens = context;
  if (config.max_new_tokens) {
    settings.max_new_tokens = static_cast<uint32_t>(*config.max_new_tokens);
  } else if (config.max_length) {
    settings.max_new_tokens = static_cast<uint32_t>(std::max(*config.max_length - 1, 1));
  }
  settings.max_new_tokens = std::min(settings.max_new_tokens, context);
  return settings;
}

void check_settings(const GenerationSettings& settings, uint32_t vocabulary, uint32_t context) {
  const auto fail = [](const char* option, const std::string& problem) {
    throw ModelError(option, problem, "");
  };
  if (settings.beams < 1 || settings.beams > kMaxBeams)
    fail("beams", fmt::format("{} is not between 1 and {}", settings.beams, kMaxBeams));
  if (settings.beams > vocabulary)
    fail("beams", fmt::format("{} are more than the {} ids there are", settings.beams, vocabulary));
  if (settings.n_best < 1 || settings.n_best > settings.beams)
    fail("n-best", fmt::format("{} is not between 1 and the number of beams, {}", settings.n_best,
                               settings.beams));
  if (settings.max_new_tokens < 1 || settings.max_new_tokens > context)
    fail("max new tokens", fmt::format("{} is not between 1 and the model's {} positions",
                                       settings.max_new_tokens, context));
  if (!(settings.length_penalty >= -100 && settings.length_penalty <= 100))
    fail("length penalty", fmt::format("{} is not between -100 and 100", settings.length_penalty));
  if (settings.forced_bos && *settings.forced_bos >= vocabulary)
    fail("forced_bos_token_id",
         fmt::format("{} is not below {}", *settings.forced_bos, vocabulary));
  if (settings.ends.size() + settings.beams > 2 * kMaxBeams)
    fail("beams", fmt::format("{} and {} ids that end a text are more than {}", settings.beams,
                              settings.ends.size(), 2 * kMaxBeams));
  const auto check = [&](std::span<const uint32_t> ids) {
    for (uint32_t id : ids) {
      if (id >= vocabulary)
        fail("banned tokens", fmt::format("id {} is not below {}", id, vocabulary));
    }
  };
  check(settings.banned);
  for (const std::vector<uint32_t>& word : settings.banned_words) check(word);
}

void ban(GenerationSettings& settings, std::span<const uint32_t> ids) {
  if (ids.empty()) throw ModelError("banned tokens", "hold a sequence without an id", "");
  if (ids.size() == 1) {
    settings.banned.push_back(ids.front());
  } else {
    settings.banned_words.emplace_back(ids.begin(), ids.end());
  }
}

uint32_t candidates_per_row(uint32_t beams, uint32_t ends, uint32_t vocabulary) {
  return beams == 1 ? 1 : std::min(beams + std::max(beams, ends), vocabulary);
}

void initialize_search(ControlWords& control, const BeamStateLayout& layout,
                       const GenerationSettings& settings, uint32_t items) {
  initialize_beam_state(control, layout, beam_settings(settings));
  for (uint32_t item = items; item < layout.batch; ++item) free_item(control, layout, item);
  count_unfinished(control, layout);
}

BeamSettings beam_settings(const GenerationSettings& settings) {
  BeamSettings beam = {.start = settings.start,
                       .ends = settings.ends,
                       .pad = settings.pad,
                       .max_length = settings.max_new_tokens + 1,
                       .length_penalty = settings.length_penalty,
                       .early_stopping = settings.early_stopping,
                       .banned = settings.banned,
                       .words = settings.banned_words,
                       .least_length = settings.min_length,
                       .ngram = settings.no_repeat_ngram};
  if (settings.forced_bos) beam.forced_first = {1, *settings.forced_bos};
  if (settings.forced_eos) beam.forced_last = {settings.max_new_tokens, *settings.forced_eos};
  return beam;
}

uint32_t steps_in_flight(Device& device) {
  return device.profiler() ? 1 : device.capabilities().tuning.steps_in_flight;
}

uint32_t steps_at_once(Device& device, uint32_t together) {
  return steps_in_flight(device) > 1 ? together * steps_in_flight(device) : together;
}

StepLoopResult run_steps(Device& device, Program& step, const StepLoop& loop) {
  StepLoopResult result;
  struct Submitted {
    Ticket ticket;
    uint32_t steps;  // all that were submitted up to this one
  };
  std::deque<Submitted> in_flight;
  bool finished = false, first_submitted = false, first_done = false;
  const auto once = [](bool& done, const std::function<void()>& call) {
    if (!std::exchange(done, true) && call) call();
  };
  while (!in_flight.empty() || (!finished && result.steps < loop.most_steps)) {
    if (loop.cancel && loop.cancel->load()) result.cancelled = finished = true;
    // The runtime measures a replay when the next one starts after its end. The first two replays
    // give it the time by which it bounds submissions.
    const size_t ahead = result.steps < 3 ? 1 : loop.in_flight;
    while (!finished && result.steps < loop.most_steps && in_flight.size() < ahead) {
      const uint32_t count = result.steps < 3 ? 1 : loop.steps_per_submission;
      const uint32_t these = std::min(std::max(count, 1u), loop.most_steps - result.steps);
      result.steps += these;
      in_flight.push_back({step.submit(these), result.steps});
    }
    if (in_flight.empty()) break;
    once(first_submitted, loop.on_first_submitted);
    device.wait(in_flight.front().ticket);
    const uint32_t done = in_flight.front().steps;
    in_flight.pop_front();
    once(first_done, loop.on_first_step);
    if (loop.on_steps) loop.on_steps(done);
    finished = finished || loop.finished();
  }
  return result;
}

}  // namespace mulciber
