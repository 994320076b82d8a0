// Admission of texts to slots, chunked prefill, preemption, and what follows a choice.
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
/// else so few that a pass is as short as other texts may wait for it.
uint32_t chunk_tokens(const Capabilities& device, uint32_t asked, uint32_t context) {
  const uint32_t most = asked > 0 ? asked : device.has(kCpu) ? 32 : 256;
  uint32_t chunk = 1;
  for (const uint32_t length : kPassLengths)
    if (length <= most && length <= context) chunk = length;
  return chunk;
}

// Tokens of an answer for which there must be room at admission: many answers end before, and
// longer ones may be preempted. At most half of a context.
constexpr uint32_t kExpectedAnswer = 256;

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
    throw SettingError("BatchGeneratorOptions::cache_tokens",
                       fmt::format("is {}, and a text may have {}", options.cache_tokens, context),
                       "give at least a context, or ask for a smaller one");
  slots.emplace(*device, language->network(), shape, loading.memory_limit);
  places.resize(shape.slots);
  draft_rows = options.draft_rows > 0 ? options.draft_rows : shape.slots;
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

std::vector<int32_t> BatchGenerator::Impl::encode(const std::string& text, bool add_special,
                                                  bool parse_special) const {
  return tokenizer->encode(text, {.add_special = add_special, .parse_special = parse_special});
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
  Text text =
      std::make_unique<BatchText>(next_number, std::move(request), *tokenizer, std::move(shown));
  text->sampling = sampling;
  text->biases = biases;
  text->adapters = adapters;
  if (text->request.grammar)
    text->grammar = answer_by(*text->request.grammar, text->request.ignore_end);
  if (text->grammar) text->grammar->next();  // throws where it cannot begin
  waiting.push_back(std::move(text));
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
  // Callbacks may submit and cancel other texts, which are handled in the next step.
  std::vector<Text> ended;
  for (auto text = waiting.begin(); text != waiting.end();) {
    if ((*text)->cancelled) {
      ended.push_back(std::move(*text));
      text = waiting.erase(text);
    } else {
      ++text;
    }
  }
  for (uint32_t slot = 0; slot < places.size(); ++slot) {
    if (places[slot].text && places[slot].text->cancelled) ended.push_back(leave(slot));
  }
  for (const Text& text : ended) finish(*text, GenerateEnd::kCancelled);
  return !ended.empty();
}

void BatchGenerator::Impl::admit() {
  while (!waiting.empty()) {
    const auto place = std::ranges::find_if(places, [](const Place& one) { return !one.text; });
    if (place == places.end() || !has_room(*waiting.front())) return;
    const auto slot = static_cast<uint32_t>(place - places.begin());
    Text text = std::move(waiting.front());
    waiting.pop_front();
    const uint32_t held =
        slots->begin(slot, {.prompt = text->prompt,
                            .identity = text->identity,
                            .exact = !text->request.reuse_answers,
                            .sampling = text->sampling,
                            .stream = text->request.stream,
                            .biases = text->biases,
                            .adapters = text->adapters,
                            .keeps_logits = text->request.log_probabilities.has_value()});
    if (!std::exchange(text->begun, true)) {
      statistics.prompt_tokens += text->prompt.size();
      statistics.reused_tokens += held;
      text->reused = held;
    }
    place->text = std::move(text);
    try {
      if (set_mask(slot)) finish(*leave(slot), GenerateEnd::kEndOfText);
    } catch (const ModelError& error) {
      fail(slot, error, true);
    }
  }
}

uint32_t BatchGenerator::Impl::expected(const BatchText& text) const {
  const auto prompt = static_cast<uint32_t>(text.prompt.size());
  const auto said = static_cast<uint32_t>(text.answer.so_far().ids.size());
  // The length of an answer without a limit is unknown.
  uint32_t most = std::max(std::min(kExpectedAnswer, context / 2), said + 1);
  if (text.request.max_new_tokens > 0) most = std::min(most, text.request.max_new_tokens);
  return std::min(context - prompt, most) + prompt;
}

bool BatchGenerator::Impl::has_room(const BatchText& text) {
  uint64_t needed = slots->pages_needed(text.identity.empty() ? text.prompt : text.identity,
                                        text.adapters, !text.request.reuse_answers, expected(text));
  bool alone = true;
  for (uint32_t slot = 0; slot < places.size(); ++slot) {
    if (!places[slot].text) continue;
    alone = false;
    const uint32_t pages = slots->most_pages(expected(*places[slot].text));
    needed += std::max(pages, slots->pages_held(slot)) - slots->pages_held(slot);
  }
  return alone || needed <= slots->pages_left();
}

bool BatchGenerator::Impl::make_room(uint32_t slot, uint32_t tokens) {
  while (!slots->reserve(slot, tokens)) {
    uint32_t last = slot;
    for (uint32_t other = 0; other < places.size(); ++other)
      if (places[other].text && places[other].text->number > places[last].text->number)
        last = other;
    preempt(last);
    if (last == slot) return false;
  }
  return true;
}

void BatchGenerator::Impl::preempt(uint32_t slot) {
  Text text = leave(slot);
  ++statistics.preemptions;
  text->replayed = 0;
  if (text->grammar) text->grammar = answer_by(*text->request.grammar, text->request.ignore_end);
  const auto before = std::ranges::find_if(
      waiting, [&](const Text& other) { return other->number > text->number; });
  waiting.insert(before, std::move(text));
}

std::optional<uint32_t> BatchGenerator::Impl::next_prompt() {
  constexpr uint64_t kTurnOfOldest = 4;
  const bool oldest = ++parts % kTurnOfOldest == 0;
  std::optional<uint32_t> best;
  const auto rank = [&](uint32_t slot) {
    const BatchText& text = *places[slot].text;
    return std::pair(oldest ? 0 : text.prompt.size() - slots->length(slot), text.number);
  };
  for (uint32_t slot = 0; slot < places.size(); ++slot) {
    if (!places[slot].text || places[slot].grows) continue;
    if (!best || rank(slot) < rank(*best)) best = slot;
  }
  return best;
}

bool BatchGenerator::Impl::feed() {
  const std::optional<uint32_t> next = next_prompt();
  if (!next) return false;
  const uint32_t slot = *next;
  Place& place = places[slot];
  BatchText& text = *place.text;
  // Another text may have prefilled a common prefix meanwhile.
  const uint32_t before = slots->length(slot), held = slots->adopt(slot);
  const bool first = text.replayed == text.answer.so_far().ids.size();
  statistics.reused_tokens += first ? held - before : 0;
  text.reused += first ? held - before : 0;
  const auto size = static_cast<uint32_t>(text.prompt.size()), chunk = slots->shape().chunk;
  const uint32_t left = std::min(size - held, chunk);
  const uint32_t fed = std::min(left, slots->pass_tokens(held, left));
  const uint32_t done = held + fed;
  if (embed_tile(slot, held, done)) return true;
  if (!make_room(slot, fed)) return true;
  place.grows = done == size;
  const SequenceSlots::Choice choice = slots->feed(slot, fed, place.grows, given_rows(text, held));
  if (text.request.on_prompt && done > text.prompt_told) text.request.on_prompt(done, size);
  text.prompt_told = std::max<size_t>(text.prompt_told, done);
  if (place.grows) take(slot, choice);
  return true;
}

void BatchGenerator::Impl::take(uint32_t slot, const SequenceSlots::Choice& choice) {
  BatchText& text = *places[slot].text;
  if (!choice) {
    try {
      slots->refuse(slot);
    } catch (const LogitsError& error) {
      fail(slot, error, false);
    }
    return;
  }
  if (text.replayed < text.answer.so_far().ids.size()) {
    replay(slot, *choice);
    return;
  }
  bool complete = false;
  try {
    if (text.grammar) text.grammar->take(*choice);
    complete = set_mask(slot);
  } catch (const ModelError& error) {
    fail(slot, error, true);
    return;
  }
  const bool ends = !text.request.ignore_end && std::ranges::binary_search(this->ends, *choice);
  text.piece.clear();
  const bool stopped = !text.answer.push(*choice, ends);
  ++text.replayed;
  ++statistics.new_tokens;
  if (text.request.on_token) {
    BatchToken token = {.id = *choice, .piece = text.piece};
    TokenProbabilities probabilities;
    if (text.request.log_probabilities) {
      probabilities =
          token_probabilities(slots->logits(slot), *choice, *text.request.log_probabilities);
      token.log_probability = probabilities.chosen;
      token.likeliest = probabilities.likeliest;
    }
    text.request.on_token(token);
  }
  const size_t tokens = text.answer.so_far().ids.size();
  std::optional<GenerateEnd> end;
  if (stopped) {
    end = GenerateEnd::kStopText;
  } else if (ends || complete) {
    end = GenerateEnd::kEndOfText;
  } else if (text.request.max_new_tokens > 0 && tokens >= text.request.max_new_tokens) {
    end = GenerateEnd::kTokenLimit;
  } else if (slots->length(slot) >= context) {
    end = GenerateEnd::kContextFull;
  }
  if (end) finish(*leave(slot), *end);
}

void BatchGenerator::Impl::replay(uint32_t slot, uint32_t choice) {
  BatchText& text = *places[slot].text;
  const uint32_t said = text.answer.so_far().ids[text.replayed++];
  // The choice is the same, except where keys and values of the prompt came from another answer.
  if (choice != said) slots->replace_choice(slot, said);
  try {
    if (text.grammar) text.grammar->take(said);
    set_mask(slot);
  } catch (const ModelError& error) {
    fail(slot, error, true);
  }
}

bool BatchGenerator::Impl::set_mask(uint32_t slot) {
  std::optional<AnswerGrammar>& grammar = places[slot].text->grammar;
  if (!grammar) return false;
  const std::optional<std::span<const uint32_t>> mask = grammar->next();
  if (mask) slots->set_mask(slot, *mask);
  return !mask;
}

void BatchGenerator::Impl::fail(uint32_t slot, const Error& error, bool keep) {
  const Text lost = leave(slot, keep);
  ++statistics.ended;
  if (lost->request.on_error) lost->request.on_error(error);
}

BatchGenerator::Impl::Text BatchGenerator::Impl::leave(uint32_t slot, bool keep) {
  Place& place = places[slot];
  slots->end(slot, keep);
  if (draft_model) draft_model->end(slot);
  place.grows = false;
  return std::move(place.text);
}

void BatchGenerator::Impl::finish(BatchText& text, GenerateEnd end) {
  const bool cancelled = end == GenerateEnd::kCancelled;
  ++(cancelled ? statistics.cancelled : statistics.ended);
  text.piece.clear();
  Generation generation = text.answer.finish(end, cancelled);
  generation.reused_tokens = std::min<uint64_t>(text.reused, text.prompt.size());
  generation.draft_tokens = text.draft_tokens;
  generation.accepted_tokens = text.accepted;
  if (text.request.on_end) text.request.on_end(generation, text.piece);
}

}  // namespace mulciber
