#include "models/generation/shared_generator.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "models/adapters/adapters.h"
#include "models/core/vocabulary_check.h"
#include "models/generation/completion_grammar.h"
#include "models/generation/generator_options.h"
#include "models/generation/saved_sequence.h"
#include "models/generation/sequence_slots.h"
#include "mulciber/error.h"
#include "text/token_stream.h"

namespace mulciber {

ShownPrompt SharedGenerator::show(std::vector<int32_t> ids, const PreparedImages& shown) const {
  ShownPrompt prompt = {.ids = std::move(ids), .tiles = {}, .identity = {}};
  if (shown.empty()) return prompt;
  opened->require(Capability::kSeeImages);
  prompt.identity.assign(prompt.ids.begin(), prompt.ids.end());
  for (PlacedTile& placed : opened->image_prompts()->place(prompt.ids, shown)) {
    std::fill_n(prompt.identity.begin() + placed.first, placed.count, images->number(placed.tile));
    prompt.tiles.push_back({std::move(placed), nullptr});
  }
  return prompt;
}

CompletionGrammar SharedGenerator::completion_grammar(const Grammar& grammar,
                                                      bool ignore_end) const {
  return {grammars->masks(grammar), ignore_end ? std::vector<uint32_t>() : ends};
}

void SharedGenerator::check_id(uint32_t id) const {
  const uint32_t count = language->network().vocabulary;
  if (id >= count)
    throw ModelError("a token", fmt::format("has the id {}, the model's are below {}", id, count),
                     "take ids of a text of this model");
}

std::string SharedGenerator::token_text(uint32_t id) const {
  check_id(id);
  return mulciber::token_text(*tokenizer, static_cast<int32_t>(id));
}

std::string SharedGenerator::text(std::span<const uint32_t> ids) const {
  for (const uint32_t id : ids) check_id(id);
  TokenStream stream(*tokenizer, {});
  std::string text;
  for (const uint32_t id : ids) text += stream.push(static_cast<int32_t>(id));
  return text + stream.finish();
}

uint32_t SharedGenerator::most_attention_tokens() const {
  const Extents extents = model->extents();
  if (extents.decoder_heads == 0)
    throw ModelError("attention maps",
                     fmt::format("are asked for of a {} model, which has no attention: its layers "
                                 "keep a state",
                                 model->family()),
                     "leave them out");
  const double heads = static_cast<double>(extents.decoder_layers) * extents.decoder_heads;
  return static_cast<uint32_t>(std::sqrt(static_cast<double>(kMostAttentionWeights) / heads));
}

void SharedGenerator::check_attention(size_t tokens) const {
  const Extents extents = model->extents();
  const uint32_t most = most_attention_tokens();
  if (tokens > most)
    throw ModelError(
        "attention maps",
        fmt::format("of {} tokens in {} layers of {} heads are more than {} weights", tokens,
                    extents.decoder_layers, extents.decoder_heads, kMostAttentionWeights),
        fmt::format("ask for at most {} tokens, prompt and answer together", most));
}

Sampling SharedGenerator::default_sampling(uint32_t context) const {
  Sampling sampling = opened->architecture().generation().sampling;
  sampling.penalty_window = std::min(sampling.penalty_window, context);
  return sampling;
}

ModelOptions SharedGenerator::load(std::shared_ptr<const OpenModel> files,
                                   const GeneratorOptions& options,
                                   std::shared_ptr<WeightsLoad> weights, uint64_t cache_tokens) {
  opened = std::move(files);
  opened->require(Capability::kContinueText);
  const Architecture& architecture = opened->architecture();
  ModelOptions loading = model_options(options, architecture.extents().context);
  loading.weights = std::move(weights);
  loading.cache_tokens = cache_tokens;
  tokenizer = opened->tokenizer();
  check_vocabulary(*tokenizer, architecture.extents().vocabulary,
                   opened->checkpoint().path().string());
  ends = end_ids(architecture, *tokenizer);
  model = load_model(*device, *opened, loading);
  language = model->continues_text();
  if (ImageEmbedder* embedder = language->embeds_images())
    images = std::make_shared<ImageEmbeddingCache>(
        *embedder, opened->image_prompts()->normalization(), language->network().vocabulary,
        SequenceSlots::kIdentities);
  grammars = std::make_shared<GrammarVocabulary>(tokenizer, language->network().vocabulary);
  fingerprint = fingerprint_with(sequence_fingerprint(opened->checkpoint(), language->network()),
                                 loading.adapters, loading.merge_adapters);
  return loading;
}

}  // namespace mulciber
