// Admission of sequences to slots, chunked prefill, preemption, and what follows a choice.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "models/adapters/adapters.h"
#include "models/core/token_probabilities.h"
#include "models/generation/batch_generator_impl.h"
#include "models/generation/generator_options.h"
#include "models/generation/not_finite.h"
#include "mulciber/error.h"

namespace mulciber {
namespace {

/// Tokens of a prompt in one pass: the requested number, rounded down to a length of passes, or
/// else so few that a pass is as short as other sequences may wait for it.
uint32_t chunk_tokens(const Capabilities& device, uint32_t asked, uint32_t context) {
  const uint32_t most = asked > 0 ? asked : device.has(kCpu) ? 32 : 256;
  uint32_t chunk = 1;
  for (const uint32_t length : kPassLengths)
    if (length <= most && length <= context) chunk = length;
  return chunk;
}

// Tokens of a completion for which there must be room at admission: many completions end before,
// and longer ones may be preempted. At most half of a context.
constexpr uint32_t kExpectedCompletion = 256;

/// The biases with each id once. Throws SettingError.
LogitBiases checked_biases(const LogitBiases& asked, uint32_t vocabulary) {
  const auto refuse = [](std::string problem, std::string remedy) {
    throw SettingError("BatchRequest::logit_bias", std::move(problem), std::move(remedy));
  };
  if (asked.size() > kMostLogitBiases)
    refuse(fmt::format("has {} ids", asked.size()),
           fmt::format("give at most {}", kMostLogitBiases));
  for (const auto& [id, bias] : asked) {
    if (id >= vocabulary)
      refuse(fmt::format("has the id {}, the model's are below {}", id, vocabulary),
             "take ids of a text of this model");
    if (std::isnan(bias) || bias == std::numeric_limits<float>::infinity())
      refuse(fmt::format("of the id {} is {}", id, bias), "give a number, or -infinity");
  }
  // Where an id occurs twice, the last bias counts.
  std::map<uint32_t, float> by_id;
  for (const auto& [id, bias] : asked) by_id[id] = bias;
  return {by_id.begin(), by_id.end()};
}

}  // namespace

void BatchGenerator::Impl::start(std::shared_ptr<Device> on, std::shared_ptr<const OpenModel> files,
                                 const BatchGeneratorOptions& options) {
  device = std::move(on);
  const ModelOptions loading = load(std::move(files), options.generator, {}, options.cache_tokens);
  context = loading.context;
  const SlotShape shape =
      SequenceSlots::bindable(device->capabilities(), language->network(),
                              {loading.sequences, context,
                               chunk_tokens(device->capabilities(), options.prompt_tokens, context),
                               kMostLogitBiases, options.cache_tokens});
  if (options.cache_tokens > 0 && options.cache_tokens < context)
    throw SettingError(
        "BatchGeneratorOptions::cache_tokens",
        fmt::format("is {}, and a sequence may have {}", options.cache_tokens, context),
        "give at least a context, or ask for a smaller one");
  slots.emplace(*device, language->network(), shape, loading.memory_limit);
  by_slot.resize(shape.slots);
  draft_rows = options.draft_rows > 0 ? options.draft_rows : shape.slots;
  const uint32_t asked_steps = options.steps_per_submission;
  if (asked_steps > SequenceSlots::kMostSteps)
    throw SettingError("BatchGeneratorOptions::steps_per_submission",
                       fmt::format("is {}", asked_steps),
                       fmt::format("ask for at most {}", SequenceSlots::kMostSteps));
  most_steps = asked_steps > 0 ? asked_steps : device->capabilities().tuning.steps_per_submission;
  statistics.pages = slots->pages_left();
  statistics.page_tokens = slots->page_tokens();
  statistics.weight_bytes = model->weight_bytes();
  statistics.predicted_device_bytes =
      statistics.weight_bytes +
      SequenceSlots::predict_bytes(device->capabilities(), language->network(), shape);
  if (!options.draft) return;
  if (!slots->can_draft())
    throw ModelError("draft model",
                     "is given to a model whose layers keep a state, which cannot be taken back "
                     "when a draft token is rejected",
                     "leave it out");
  draft_model.emplace(device, options.draft, options.generator, shape, *tokenizer);
  statistics.predicted_device_bytes += draft_model->predicted_bytes();
}

std::vector<int32_t> BatchGenerator::Impl::encode(const std::string& input, bool add_special,
                                                  bool parse_special) const {
  return tokenizer->encode(input, {.add_special = add_special, .parse_special = parse_special});
}

uint64_t BatchGenerator::Impl::submit(BatchRequest request) {
  const Sampling sampling = checked(request.sampling.value_or(default_sampling(context)));
  const LogitBiases biases = checked_biases(request.logit_bias, language->network().vocabulary);
  const std::vector<float> adapters = chosen_adapters(language->network(), request.adapters);
  if (request.log_probabilities.value_or(0) > kMostLikeliest)
    throw SettingError("BatchRequest::log_probabilities",
                       fmt::format("asks for {} tokens", *request.log_probabilities),
                       fmt::format("ask for at most {}", kMostLikeliest));
  if (request.draft_tokens > kMostDraftTokens)
    throw SettingError("BatchRequest::draft_tokens", fmt::format("is {}", request.draft_tokens),
                       fmt::format("ask for at most {}", kMostDraftTokens));
  std::vector<int32_t> ids(request.prompt_ids.begin(), request.prompt_ids.end());
  if (ids.empty())
    ids = encode(expand_prompt(*opened, request.prompt, request.images), request.add_special,
                 request.parse_special);
  if (ids.empty()) throw ModelError("prompt", "has no tokens", "give some text");
  if (ids.size() >= context)
    throw ModelError(
        "prompt",
        fmt::format("has {} tokens, which leaves no room in a context of {}", ids.size(), context),
        "give a shorter text, or ask for a larger context");
  for (const int32_t id : ids) check_id(static_cast<uint32_t>(id));
  ShownPrompt shown = show(std::move(ids), request.images);
  Sequence sequence = std::make_unique<BatchSequence>(next_number, std::move(request), *tokenizer,
                                                      std::move(shown));
  sequence->sampling = sampling;
  sequence->biases = biases;
  sequence->adapters = adapters;
  if (sequence->request.grammar)
    sequence->grammar =
        completion_grammar(*sequence->request.grammar, sequence->request.ignore_end);
  if (sequence->grammar) sequence->grammar->next();  // throws where it cannot begin
  waiting.push_back(std::move(sequence));
  ++statistics.requests;
  return next_number++;
}

bool BatchGenerator::Impl::step() {
  bool worked = end_cancelled();
  admit();
  const auto build_seconds = [&] {
    return slots->build_seconds() + (draft_model ? draft_model->build_seconds() : 0);
  };
  const double built = build_seconds();
  const auto start = Clock::now();
  const bool fed = feed();
  const double built_for_prompts = build_seconds();
  if (fed) statistics.prefill_seconds += seconds_since(start) - (built_for_prompts - built);
  const auto decoding = Clock::now();
  const bool decoded = decode();
  statistics.build_seconds = build_seconds();
  if (decoded)
    statistics.decode_seconds +=
        seconds_since(decoding) - (statistics.build_seconds - built_for_prompts);
  statistics.peak_device_bytes = device->memory().peak();
  statistics.pages_used = statistics.pages - slots->pages_left();
  return worked || fed || decoded;
}

bool BatchGenerator::Impl::end_cancelled() {
  // Callbacks may submit and cancel other sequences, which are handled in the next step.
  std::vector<Sequence> ended;
  for (auto sequence = waiting.begin(); sequence != waiting.end();) {
    if ((*sequence)->cancelled) {
      ended.push_back(std::move(*sequence));
      sequence = waiting.erase(sequence);
    } else {
      ++sequence;
    }
  }
  for (uint32_t slot = 0; slot < by_slot.size(); ++slot) {
    if (by_slot[slot].sequence && by_slot[slot].sequence->cancelled) ended.push_back(leave(slot));
  }
  for (const Sequence& sequence : ended) finish(*sequence, GenerateEnd::kCancelled);
  return !ended.empty();
}

void BatchGenerator::Impl::admit() {
  while (!waiting.empty()) {
    const auto free = std::ranges::find_if(by_slot, [](const Slot& one) { return !one.sequence; });
    if (free == by_slot.end() || !has_room(*waiting.front())) return;
    const auto slot = static_cast<uint32_t>(free - by_slot.begin());
    Sequence sequence = std::move(waiting.front());
    waiting.pop_front();
    const uint32_t held =
        slots->begin(slot, {.prompt = sequence->prompt,
                            .identity = sequence->identity,
                            .exact = !sequence->request.reuse_completions,
                            .sampling = sequence->sampling,
                            .stream = sequence->request.stream,
                            .biases = sequence->biases,
                            .adapters = sequence->adapters,
                            .keeps_logits = sequence->request.log_probabilities.has_value()});
    if (!std::exchange(sequence->begun, true)) {
      statistics.prompt_tokens += sequence->prompt.size();
      statistics.reused_tokens += held;
      sequence->reused = held;
    }
    free->sequence = std::move(sequence);
    try {
      if (set_mask(slot)) finish(*leave(slot), GenerateEnd::kEndOfText);
    } catch (const ModelError& error) {
      fail(slot, error, true);
    }
  }
}

uint32_t BatchGenerator::Impl::expected(const BatchSequence& sequence) const {
  const auto prompt = static_cast<uint32_t>(sequence.prompt.size());
  const auto said = static_cast<uint32_t>(sequence.completion.so_far().ids.size());
  // The length of a completion without a limit is unknown.
  uint32_t most = std::max(std::min(kExpectedCompletion, context / 2), said + 1);
  if (sequence.request.max_new_tokens > 0) most = std::min(most, sequence.request.max_new_tokens);
  return std::min(context - prompt, most) + prompt;
}

bool BatchGenerator::Impl::has_room(const BatchSequence& sequence) {
  uint64_t needed = slots->pages_needed(
      sequence.identity.empty() ? sequence.prompt : sequence.identity, sequence.adapters,
      !sequence.request.reuse_completions, expected(sequence));
  bool alone = true;
  for (uint32_t slot = 0; slot < by_slot.size(); ++slot) {
    if (!by_slot[slot].sequence) continue;
    alone = false;
    const uint32_t pages = slots->most_pages(expected(*by_slot[slot].sequence));
    needed += std::max(pages, slots->pages_held(slot)) - slots->pages_held(slot);
  }
  return alone || needed <= slots->pages_left();
}

bool BatchGenerator::Impl::make_room(uint32_t slot, uint32_t tokens) {
  while (!slots->reserve(slot, tokens)) {
    uint32_t last = slot;
    for (uint32_t other = 0; other < by_slot.size(); ++other)
      if (by_slot[other].sequence &&
          by_slot[other].sequence->number > by_slot[last].sequence->number)
        last = other;
    preempt(last);
    if (last == slot) return false;
  }
  return true;
}

void BatchGenerator::Impl::preempt(uint32_t slot) {
  Sequence sequence = leave(slot);
  ++statistics.preemptions;
  sequence->replayed = 0;
  if (sequence->grammar)
    sequence->grammar =
        completion_grammar(*sequence->request.grammar, sequence->request.ignore_end);
  const auto before = std::ranges::find_if(
      waiting, [&](const Sequence& other) { return other->number > sequence->number; });
  waiting.insert(before, std::move(sequence));
}

std::optional<uint32_t> BatchGenerator::Impl::next_prompt() {
  constexpr uint64_t kTurnOfOldest = 4;
  const bool oldest = ++parts % kTurnOfOldest == 0;
  std::optional<uint32_t> best;
  const auto rank = [&](uint32_t slot) {
    const BatchSequence& sequence = *by_slot[slot].sequence;
    return std::pair(oldest ? 0 : sequence.prompt.size() - slots->length(slot), sequence.number);
  };
  for (uint32_t slot = 0; slot < by_slot.size(); ++slot) {
    if (!by_slot[slot].sequence || by_slot[slot].decodes) continue;
    if (!best || rank(slot) < rank(*best)) best = slot;
  }
  return best;
}

bool BatchGenerator::Impl::feed() {
  const std::optional<uint32_t> next = next_prompt();
  if (!next) return false;
  const uint32_t slot = *next;
  Slot& own = by_slot[slot];
  BatchSequence& sequence = *own.sequence;
  // Another sequence may have prefilled a common prefix meanwhile.
  const uint32_t before = slots->length(slot), held = slots->adopt(slot);
  const bool first = sequence.replayed == sequence.completion.so_far().ids.size();
  statistics.reused_tokens += first ? held - before : 0;
  sequence.reused += first ? held - before : 0;
  const auto size = static_cast<uint32_t>(sequence.prompt.size()), chunk = slots->shape().chunk;
  const uint32_t left = std::min(size - held, chunk);
  const uint32_t fed = std::min(left, slots->pass_tokens(held, left));
  const uint32_t done = held + fed;
  if (embed_tile(slot, held, done)) return true;
  if (!make_room(slot, fed)) return true;
  own.decodes = done == size;
  const SequenceSlots::Choice choice =
      slots->feed(slot, fed, own.decodes, given_rows(sequence, held));
  if (sequence.request.on_prompt && done > sequence.prompt_told)
    sequence.request.on_prompt(done, size);
  sequence.prompt_told = std::max<size_t>(sequence.prompt_told, done);
  if (own.decodes) take(slot, choice);
  return true;
}

void BatchGenerator::Impl::take(uint32_t slot, const SequenceSlots::Choice& choice) {
  BatchSequence& sequence = *by_slot[slot].sequence;
  if (!choice) {
    try {
      slots->refuse(slot);
    } catch (const LogitsError& error) {
      fail(slot, error, false);
    }
    return;
  }
  if (sequence.replayed < sequence.completion.so_far().ids.size()) {
    replay(slot, *choice);
    return;
  }
  bool complete = false;
  try {
    if (sequence.grammar) sequence.grammar->take(*choice);
    complete = set_mask(slot);
  } catch (const ModelError& error) {
    fail(slot, error, true);
    return;
  }
  const bool ends = !sequence.request.ignore_end && std::ranges::binary_search(this->ends, *choice);
  sequence.piece.clear();
  const bool stopped = !sequence.completion.push(*choice, ends);
  ++sequence.replayed;
  ++statistics.new_tokens;
  if (sequence.request.on_token) {
    BatchToken token = {.id = *choice, .piece = sequence.piece};
    TokenProbabilities probabilities;
    if (sequence.request.log_probabilities) {
      probabilities =
          token_probabilities(slots->logits(slot), *choice, *sequence.request.log_probabilities);
      token.log_probability = probabilities.chosen;
      token.likeliest = probabilities.likeliest;
    }
    sequence.request.on_token(token);
  }
  const size_t tokens = sequence.completion.so_far().ids.size();
  std::optional<GenerateEnd> end;
  if (stopped) {
    end = GenerateEnd::kStopText;
  } else if (ends || complete) {
    end = GenerateEnd::kEndOfText;
  } else if (sequence.request.max_new_tokens > 0 && tokens >= sequence.request.max_new_tokens) {
    end = GenerateEnd::kTokenLimit;
  } else if (slots->length(slot) >= context) {
    end = GenerateEnd::kContextFull;
  }
  if (end) finish(*leave(slot), *end);
}

void BatchGenerator::Impl::replay(uint32_t slot, uint32_t choice) {
  BatchSequence& sequence = *by_slot[slot].sequence;
  const uint32_t said = sequence.completion.so_far().ids[sequence.replayed++];
  // The choice is the same, except where keys and values of the prompt came from another
  // completion.
  if (choice != said) slots->replace_choice(slot, said);
  try {
    if (sequence.grammar) sequence.grammar->take(said);
    set_mask(slot);
  } catch (const ModelError& error) {
    fail(slot, error, true);
  }
}

bool BatchGenerator::Impl::set_mask(uint32_t slot) {
  std::optional<CompletionGrammar>& grammar = by_slot[slot].sequence->grammar;
  if (!grammar) return false;
  const std::optional<std::span<const uint32_t>> mask = grammar->next();
  if (mask) slots->set_mask(slot, *mask);
  return !mask;
}

void BatchGenerator::Impl::fail(uint32_t slot, const Error& error, bool keep) {
  const Sequence lost = leave(slot, keep);
  ++statistics.ended;
  if (lost->request.on_error) lost->request.on_error(error);
}

BatchGenerator::Impl::Sequence BatchGenerator::Impl::leave(uint32_t slot, bool keep) {
  Slot& own = by_slot[slot];
  slots->end(slot, keep);
  if (draft_model) draft_model->end(slot);
  own.decodes = false;
  return std::move(own.sequence);
}

void BatchGenerator::Impl::finish(BatchSequence& sequence, GenerateEnd end) {
  const bool cancelled = end == GenerateEnd::kCancelled;
  ++(cancelled ? statistics.cancelled : statistics.ended);
  sequence.piece.clear();
  Generation generation = sequence.completion.finish(end, cancelled);
  generation.reused_tokens = std::min<uint64_t>(sequence.reused, sequence.prompt.size());
  generation.draft_tokens = sequence.draft_tokens;
  generation.accepted_tokens = sequence.accepted;
  if (sequence.request.on_end) sequence.request.on_end(generation, sequence.piece);
}

}  // namespace mulciber
