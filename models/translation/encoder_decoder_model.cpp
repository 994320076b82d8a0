#include "models/translation/encoder_decoder_model.h"

#include <algorithm>

#include <fmt/format.h>

#include "mulciber/error.h"

namespace mulciber {

EncoderDecoderModel::EncoderDecoderModel(Device& device, EncoderDecoderParts parts,
                                         uint64_t memory_limit)
    : family_(std::move(parts.family)),
      generation_(std::move(parts.generation)),
      extents_(parts.extents),
      half_precision_(parts.half_precision),
      weights_(std::move(parts.weights)),
      programs_(device, std::move(parts.network), &weights_, memory_limit) {}

uint32_t EncoderDecoderModel::batch_limit(uint32_t source_length,
                                          const GenerationSettings& settings) {
  return programs_.batch_limit(source_length, settings);
}

void EncoderDecoderModel::check_source(std::span<const uint32_t> ids) const {
  if (ids.empty()) throw ModelError("source text", "has no tokens", "");
  if (ids.size() > network().context)
    throw ModelError(
        "source text",
        fmt::format("has {} tokens, the model takes at most {}", ids.size(), network().context),
        "split the text into sentences");
  for (uint32_t id : ids) {
    if (id >= network().source_vocabulary)
      throw ModelError("source text",
                       fmt::format("holds token id {}, the model's are below {}", id,
                                   network().source_vocabulary),
                       "tokenizer and model do not belong together");
  }
}

void EncoderDecoderModel::check_target(std::span<const uint32_t> ids) const {
  if (ids.empty() || ids.size() > network().context)
    throw ModelError(
        "target text",
        fmt::format("has {} tokens, the model takes 1 to {}", ids.size(), network().context), "");
  for (uint32_t id : ids) {
    if (id >= network().target_vocabulary)
      throw ModelError("target text",
                       fmt::format("holds token id {}, the model's are below {}", id,
                                   network().target_vocabulary),
                       "tokenizer and model do not belong together");
  }
}

NamedArrays EncoderDecoderModel::forward(const NamedArrays& inputs,
                                         std::span<const std::string> wanted) {
  ForwardRequest request;
  request.source =
      read_padded_ids(family_, inputs, "input_ids", network().source_vocabulary, network().context);
  request.target = read_padded_ids(family_, inputs, "decoder_input_ids",
                                   network().target_vocabulary, network().context);
  if (request.target.rows != request.source.rows)
    throw ModelError(
        family_ + " input `decoder_input_ids`",
        fmt::format("has {} rows, input_ids has {}", request.target.rows, request.source.rows), "");
  apply_right_padding(family_, request.source, inputs);
  request.logits = wants(wanted, "logits");
  request.hidden_states = wants(wanted, "hidden_states");
  request.attentions = wants(wanted, "attentions");
  NamedArrays results = programs_.forward(request);
  keep_wanted(results, wanted);
  return results;
}

NamedArrays EncoderDecoderModel::search(const NamedArrays& inputs, const GenerationConfig& config,
                                        uint32_t n_best) {
  PaddedIds source =
      read_padded_ids(family_, inputs, "input_ids", network().source_vocabulary, network().context);
  apply_right_padding(family_, source, inputs);
  if (source.rows != 1)
    throw ModelError(family_ + " input `input_ids`",
                     fmt::format("has {} rows, one is expected", source.rows), "");
  source.ids.resize(source.lengths[0]);
  GenerationRequest request;
  request.sources = {&source.ids, 1};
  request.settings = generation_settings(config, network().context);
  request.settings.n_best = n_best;
  const std::vector<Hypothesis> found = generate(request).items.at(0);

  // Rows are filled up as transformers does after beam search, which takes a pad of 0 for none.
  const GenerationSettings& settings = request.settings;
  const uint32_t fill =
      settings.pad == 0 && !settings.ends.empty() ? settings.ends.front() : settings.pad;
  size_t longest = 0;
  for (const Hypothesis& sequence : found) longest = std::max(longest, sequence.ids.size());
  NamedArray ids = {{found.size(), longest + 1}, {}}, scores = {{found.size()}, {}};
  for (const Hypothesis& sequence : found) {
    ids.values.push_back(settings.start);
    ids.values.insert(ids.values.end(), sequence.ids.begin(), sequence.ids.end());
    ids.values.insert(ids.values.end(), longest - sequence.ids.size(), fill);
    scores.values.push_back(sequence.score);
  }
  return {{"output_ids", std::move(ids)}, {"sequences_scores", std::move(scores)}};
}

void EncoderDecoderModel::check_request(std::span<const uint32_t> source,
                                        const GenerationSettings& settings) const {
  check_settings(settings, network().target_vocabulary, network().context);
  check_source(source);
}

GenerationResult EncoderDecoderModel::generate(const GenerationRequest& request) {
  check_settings(request.settings, network().target_vocabulary, network().context);
  if (request.sources.empty()) return {};
  for (const std::vector<uint32_t>& source : request.sources) check_source(source);
  return programs_.generate(request);
}

std::unique_ptr<SearchTask> EncoderDecoderModel::start(const GenerationRequest& request) {
  check_settings(request.settings, network().target_vocabulary, network().context);
  if (request.sources.size() != 1) throw ModelError("sources", "of a task are not one", "");
  check_source(request.sources.front());
  return programs_.start(request, request.settings.pad);
}

void EncoderDecoderModel::check(const SearchTask& task, const GenerationRequest& request) {
  programs_.check(task, request);
}

std::vector<std::vector<double>> EncoderDecoderModel::score(
    std::span<const std::vector<uint32_t>> sources, std::span<const std::vector<uint32_t>> targets,
    uint32_t start, const HeadMasks& head_masks) {
  if (sources.empty()) return {};
  std::vector<std::vector<uint32_t>> fed;  // the start, and all but the last of the target
  for (size_t i = 0; i < sources.size(); ++i) {
    check_source(sources[i]);
    check_target(targets[i]);
    fed.push_back({start});
    fed.back().insert(fed.back().end(), targets[i].begin(), targets[i].end() - 1);
  }
  return programs_.score({.source = pad_ids(sources, pad()),
                          .target = pad_ids(fed, pad()),
                          .head_masks = head_masks,
                          .next = {targets.begin(), targets.end()}});
}

ForwardRequest EncoderDecoderModel::attention_request(const std::vector<uint32_t>& source,
                                                      const std::vector<uint32_t>& target,
                                                      const HeadMasks& head_masks) const {
  check_source(source);
  check_target(target);
  return {.source = pad_ids({&source, 1}, pad()),
          .target = pad_ids({&target, 1}, pad()),
          .head_masks = head_masks,
          .attentions = true};
}

std::unique_ptr<TranslationAttention> EncoderDecoderModel::start_attention(
    const std::vector<uint32_t>& source, const std::vector<uint32_t>& target,
    const HeadMasks& head_masks, uint32_t source_room, uint32_t target_room) {
  return programs_.start_attention(attention_request(source, target, head_masks), source_room,
                                   target_room);
}

void EncoderDecoderModel::begin_attention(TranslationAttention& pass,
                                          const std::vector<uint32_t>& source,
                                          const std::vector<uint32_t>& target,
                                          const HeadMasks& head_masks) {
  pass.begin(attention_request(source, target, head_masks));
}

SequenceAttention EncoderDecoderModel::attention(const std::vector<uint32_t>& source,
                                                 const std::vector<uint32_t>& target,
                                                 const HeadMasks& head_masks) {
  const ForwardResult result = programs_.forward(attention_request(source, target, head_masks));
  const auto floats = [&](const char* name) {
    const auto found = result.find(name);
    if (found == result.end()) return std::vector<float>();  // the network has no such attention
    const std::vector<double>& values = found->second.values;
    return std::vector<float>(values.begin(), values.end());
  };
  return {floats("encoder_attentions"), floats("decoder_attentions"), floats("cross_attentions")};
}

}  // namespace mulciber
