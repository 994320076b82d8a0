// Admission of sequences to slots, chunked prefill, preemption, and what follows a choice.
#include <algorithm>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "models/adapters/adapters.h"
#include "models/core/token_probabilities.h"
#include "models/generation/context_shift.h"
#include "models/generation/generation_batch.h"
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

}  // namespace

BatchSequence::BatchSequence(uint64_t name, SequenceRequest asked, const Tokenizer& tokenizer,
                             ShownPrompt shown)
    : number(name),
      request(std::move(asked)),
      prompt(shown.ids.begin(), shown.ids.end()),
      tiles(std::move(shown.tiles)),
      identity(std::move(shown.identity)),
      completion(tokenizer, shown.ids, request.stop,
                 [this](std::string_view text) { piece += text; }) {}

std::vector<uint32_t> BatchSequence::ids() const {
  std::vector<uint32_t> ids = prompt;
  const std::vector<uint32_t>& all = completion.so_far().ids;
  ids.insert(ids.end(), all.begin() + static_cast<std::ptrdiff_t>(shifted), all.end());
  return ids;
}

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
  open_slots(shape, loading.memory_limit);
  if (options.draft_rows > 0) draft_rows = options.draft_rows;
  const uint32_t asked_steps = options.steps_per_submission;
  if (asked_steps > SequenceSlots::kMostSteps)
    throw SettingError("BatchGeneratorOptions::steps_per_submission",
                       fmt::format("is {}", asked_steps),
                       fmt::format("ask for at most {}", SequenceSlots::kMostSteps));
  if (asked_steps > 0) steps_per_submission = asked_steps;
  if (!options.draft) return;
  if (!slots->can_draft())
    throw ModelError("draft model",
                     "is given to a model whose layers keep a state, which cannot be taken back "
                     "when a draft token is rejected",
                     "leave it out");
  draft_model =
      std::make_shared<BatchDraft>(device, options.draft, options.generator, shape, *tokenizer);
  statistics.predicted_device_bytes += draft_model->predicted_bytes();
}

std::vector<int32_t> GenerationBatch::encode(const std::string& input, bool add_special,
                                             bool parse_special) const {
  return tokenizer->encode(input, {.add_special = add_special, .parse_special = parse_special});
}

void GenerationBatch::check(const SequenceRequest& request) const {
  if (request.log_probabilities.value_or(0) > kMostLikeliest)
    throw SettingError("log_probabilities",
                       fmt::format("asks for {} tokens", *request.log_probabilities),
                       fmt::format("ask for at most {}", kMostLikeliest));
  if (request.draft_tokens > kMostDraftTokens)
    throw SettingError("draft_tokens", fmt::format("is {}", request.draft_tokens),
                       fmt::format("ask for at most {}", kMostDraftTokens));
  if (request.steps_per_submission > SequenceSlots::kMostSteps)
    throw SettingError("steps_per_submission", fmt::format("is {}", request.steps_per_submission),
                       fmt::format("ask for at most {}", SequenceSlots::kMostSteps));
}

uint64_t GenerationBatch::submit(SequenceRequest request, std::vector<int32_t> prompt,
                                 const PreparedImages& images) {
  check(request);
  const uint32_t known = language->network().vocabulary;
  for (const int32_t id : prompt)
    if (static_cast<uint32_t>(id) >= known)
      throw ModelError("prompt",
                       fmt::format("holds token id {}, the model's are below {}", id, known),
                       "tokenizer and model do not belong together");
  ShownPrompt shown = show(std::move(prompt), images);
  Sequence sequence = std::make_unique<BatchSequence>(next_number, std::move(request), *tokenizer,
                                                      std::move(shown));
  if (sequence->request.shift)
    sequence->prompt = shifted(sequence->prompt, sequence->request.keep, context);
  sequence->grammar = grammar_of(*sequence, 0);
  if (sequence->grammar) sequence->grammar->next();  // throws where it cannot begin
  waiting.push_back(std::move(sequence));
  ++statistics.requests;
  return next_number++;
}

void GenerationBatch::cancel(uint64_t number) {
  for (const Sequence& sequence : waiting)
    if (sequence->number == number) sequence->cancelled = true;
  for (const Slot& slot : by_slot)
    if (slot.sequence && slot.sequence->number == number) slot.sequence->cancelled = true;
}

std::optional<CompletionGrammar> GenerationBatch::grammar_of(const BatchSequence& sequence,
                                                             size_t count) const {
  if (!sequence.request.grammar) return std::nullopt;
  CompletionGrammar grammar =
      completion_grammar(*sequence.request.grammar, sequence.request.ignore_end);
  for (size_t i = 0; i < count; ++i) grammar.take(sequence.completion.so_far().ids[i]);
  return grammar;
}

bool GenerationBatch::step() {
  bool worked = end_cancelled();
  admit();
  const auto build_seconds = [&] {
    return slots->build_seconds() + (draft_model ? draft_model->build_seconds() : 0);
  };
  const double built = build_seconds(), encoded = statistics.image_seconds;
  const auto start = Clock::now();
  const bool fed = feed();
  const double built_for_prompts = build_seconds();
  if (fed)
    statistics.prefill_seconds +=
        seconds_since(start) - (built_for_prompts - built) - (statistics.image_seconds - encoded);
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

bool GenerationBatch::end_cancelled() {
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

void GenerationBatch::admit() {
  while (!waiting.empty()) {
    const auto free = std::ranges::find_if(by_slot, [](const Slot& one) { return !one.sequence; });
    if (free == by_slot.end() || !has_room(*waiting.front())) return;
    const auto slot = static_cast<uint32_t>(free - by_slot.begin());
    Sequence sequence = std::move(waiting.front());
    waiting.pop_front();
    begin(slot, std::move(sequence));
  }
}

void GenerationBatch::begin(uint32_t slot, Sequence given) {
  BatchSequence& sequence = *given;
  const SequenceRequest& request = sequence.request;
  by_slot[slot].sequence = std::move(given);
  const uint32_t held = slots->begin(slot, {.prompt = sequence.prompt,
                                            .identity = sequence.identity,
                                            .exact = !request.reuse_completions,
                                            .drafts = request.drafts(),
                                            .sampling = request.sampling,
                                            .stream = request.stream,
                                            .biases = request.biases,
                                            .adapters = request.adapters,
                                            .keeps_logits = request.log_probabilities.has_value()});
  if (!std::exchange(sequence.begun, true)) {
    statistics.prompt_tokens += sequence.prompt.size();
    statistics.reused_tokens += held;
    sequence.reused = held;
  }
  try {
    if (set_mask(slot)) finish(*leave(slot), GenerateEnd::kEndOfText);
  } catch (const ModelError&) {
    fail(slot, true);
  }
}

uint32_t GenerationBatch::expected(const BatchSequence& sequence) const {
  const auto prompt = static_cast<uint32_t>(sequence.prompt.size());
  // The length of a completion without a limit is unknown.
  uint32_t most = std::max(std::min(kExpectedCompletion, context / 2), sequence.said() + 1);
  if (sequence.request.max_new_tokens > 0)
    most =
        std::min(most, sequence.request.max_new_tokens - static_cast<uint32_t>(sequence.shifted));
  return std::min(context - prompt, most) + prompt;
}

bool GenerationBatch::has_room(const BatchSequence& sequence) {
  uint64_t needed = slots->pages_needed(
      sequence.identity.empty() ? sequence.prompt : sequence.identity, sequence.request.adapters,
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

bool GenerationBatch::make_room(uint32_t slot, uint32_t tokens) {
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

void GenerationBatch::preempt(uint32_t slot) {
  Sequence sequence = leave(slot);
  ++statistics.preemptions;
  sequence->replayed = sequence->shifted;
  sequence->grammar = grammar_of(*sequence, sequence->shifted);
  const auto before = std::ranges::find_if(
      waiting, [&](const Sequence& other) { return other->number > sequence->number; });
  waiting.insert(before, std::move(sequence));
}

void GenerationBatch::shift(uint32_t slot) {
  Sequence sequence = leave(slot);
  const Generation& so_far = sequence->completion.so_far();
  std::vector<uint32_t> all = so_far.prompt_ids;
  all.insert(all.end(), so_far.ids.begin(), so_far.ids.end());
  sequence->prompt = shifted(all, sequence->request.keep, context);
  sequence->shifted = so_far.ids.size();
  // Random numbers follow from the number of tokens, which falls at a context shift.
  ++sequence->request.stream;
  begin(slot, std::move(sequence));
}

std::optional<uint32_t> GenerationBatch::next_prompt() {
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

bool GenerationBatch::feed() {
  const std::optional<uint32_t> next = next_prompt();
  if (!next) return false;
  const uint32_t slot = *next;
  Slot& own = by_slot[slot];
  BatchSequence& sequence = *own.sequence;
  // Another sequence may have prefilled a common prefix meanwhile.
  const uint32_t before = slots->length(slot), held = slots->adopt(slot);
  const bool first = sequence.completion.so_far().ids.empty();
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
  if (sequence.request.on_prompt && done > sequence.prompt_told && sequence.shifted == 0)
    sequence.request.on_prompt(done, size);
  sequence.prompt_told = std::max<size_t>(sequence.prompt_told, done);
  if (own.decodes) take(slot, choice);
  return true;
}

void GenerationBatch::take(uint32_t slot, const SequenceSlots::Choice& choice) {
  BatchSequence& sequence = *by_slot[slot].sequence;
  if (!choice) {
    try {
      slots->refuse(slot);
    } catch (const LogitsError&) {
      fail(slot, false);
    }
    return;
  }
  if (sequence.replays()) {
    replay(slot, *choice);
    return;
  }
  bool complete = false;
  try {
    if (sequence.grammar) sequence.grammar->take(*choice);
    complete = set_mask(slot);
  } catch (const ModelError&) {
    fail(slot, true);
    return;
  }
  const bool ends = !sequence.request.ignore_end && std::ranges::binary_search(this->ends, *choice);
  sequence.piece.clear();
  const bool stopped = !sequence.completion.push(*choice, ends);
  ++sequence.replayed;
  ++statistics.new_tokens;
  BatchToken token = {.id = *choice, .piece = sequence.piece};
  if (sequence.request.log_probabilities) {
    sequence.completion.push_probabilities(
        token_probabilities(slots->logits(slot), *choice, *sequence.request.log_probabilities));
    const TokenProbabilities& known = sequence.completion.so_far().log_probabilities.back();
    token.log_probability = known.chosen;
    token.likeliest = known.likeliest;
  }
  if (sequence.request.on_token) sequence.request.on_token(token);
  const size_t tokens = sequence.completion.so_far().ids.size();
  std::optional<GenerateEnd> end;
  if (stopped) {
    end = GenerateEnd::kStopText;
  } else if (ends || complete) {
    end = GenerateEnd::kEndOfText;
  } else if (sequence.request.max_new_tokens > 0 && tokens >= sequence.request.max_new_tokens) {
    end = GenerateEnd::kTokenLimit;
  } else if (slots->length(slot) >= context && !sequence.request.shift) {
    end = GenerateEnd::kContextFull;
  }
  if (end)
    finish(*leave(slot), *end);
  else if (slots->length(slot) >= context)
    shift(slot);
}

void GenerationBatch::replay(uint32_t slot, uint32_t choice) {
  BatchSequence& sequence = *by_slot[slot].sequence;
  const uint32_t said = sequence.completion.so_far().ids[sequence.replayed++];
  // The choice is the same, except where keys and values of the prompt came from another
  // completion.
  if (choice != said) slots->replace_choice(slot, said);
  try {
    if (sequence.grammar) sequence.grammar->take(said);
    set_mask(slot);
  } catch (const ModelError&) {
    fail(slot, true);
  }
}

bool GenerationBatch::set_mask(uint32_t slot) {
  std::optional<CompletionGrammar>& grammar = by_slot[slot].sequence->grammar;
  if (!grammar) return false;
  const std::optional<std::span<const uint32_t>> mask = grammar->next();
  if (mask) slots->set_mask(slot, *mask);
  return !mask;
}

void GenerationBatch::fail(uint32_t slot, bool keep) {
  const Sequence lost = leave(slot, keep);
  ++statistics.ended;
  if (lost->request.on_error) lost->request.on_error(std::current_exception());
}

GenerationBatch::Sequence GenerationBatch::leave(uint32_t slot, bool keep) {
  Slot& own = by_slot[slot];
  const std::span<const uint32_t> ids = slots->tokens(slot);
  left = {.ids = keep ? std::vector<uint32_t>(ids.begin(), ids.end()) : std::vector<uint32_t>(),
          .identity = own.sequence->identity,
          .adapters = own.sequence->request.adapters};
  slots->end(slot, keep);
  if (draft_model) draft_model->end(slot);
  own.decodes = false;
  return std::move(own.sequence);
}

void GenerationBatch::finish(BatchSequence& sequence, GenerateEnd end) {
  const bool cancelled = end == GenerateEnd::kCancelled;
  ++(cancelled ? statistics.cancelled : statistics.ended);
  sequence.piece.clear();
  Generation generation = sequence.completion.finish(end, cancelled);
  generation.reused_tokens = std::min<uint64_t>(sequence.reused, sequence.prompt.size());
  generation.draft_tokens = sequence.draft_tokens;
  generation.accepted_tokens = sequence.accepted;
  generation.left_out = generation.prompt_ids.size() + sequence.shifted - sequence.prompt.size();
  if (sequence.request.on_end) sequence.request.on_end(std::move(generation), sequence.piece);
}

}  // namespace mulciber
