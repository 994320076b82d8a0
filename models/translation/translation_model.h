// The interface of models that translate: one sequence of ids in, another one out.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "models/core/model.h"
#include "models/generation/decoding.h"
#include "models/translation/search_slots.h"
#include "models/translation/search_task.h"
#include "models/translation/translation_attention.h"
#include "mulciber/translator.h"

namespace mulciber {

/// A search over many sources.
struct GenerationRequest {
  std::span<const std::vector<uint32_t>> sources;  // ids, end of text included
  GenerationSettings settings;
  HeadMasks head_masks;
  const std::atomic<bool>* cancel = nullptr;
  std::function<void()> on_first_token;
  /// Most sources that search at once; the others wait until some are done. 0: all.
  uint32_t slots = 0;
  /// Called for each source that is done, as soon as its result is known.
  std::function<void(size_t source, const std::vector<Hypothesis>& found)> on_item;
  bool stays_whole = false;  // finished items keep their slots, for comparison
};

struct GenerationResult {
  std::vector<std::vector<Hypothesis>> items;  // n_best each, in the order of the sources
  bool cancelled = false;                      // items is empty then
  uint32_t steps = 0;
  uint64_t row_steps = 0;         // rows of all steps together
  uint64_t needed_row_steps = 0;  // rows of sources that still searched
  uint32_t refills = 0;           // how often sources joined others under way
  uint64_t predicted_bytes = 0;   // device memory for this batch, besides the weights
  double prepare_seconds = 0, encode_seconds = 0, decode_seconds = 0;
};

/// Attention probabilities of a batch, each (layers, heads, queries, keys) row-major; empty where
/// the network has none of that kind.
struct SequenceAttention {
  std::vector<float> encoder, decoder, cross;
};

class TranslationModel {
 public:
  virtual ~TranslationModel() = default;

  virtual const GenerationConfig& generation_config() const = 0;
  virtual uint32_t max_source_tokens() const = 0;
  /// One more than the highest id of a source.
  virtual uint32_t source_vocabulary() const = 0;
  /// Most ids that the decoder can be fed.
  virtual uint32_t max_target_tokens() const = 0;
  /// Most sequences of that length that fit one batch, by the device's storage range and by its
  /// memory.
  virtual uint32_t batch_limit(uint32_t source_length, const GenerationSettings& settings) = 0;

  /// Whether sources may join a search while others are under way.
  virtual bool refills() const = 0;

  /// Throws ModelError when a source is empty, longer than max_source_tokens(), or holds unknown
  /// ids.
  virtual GenerationResult generate(const GenerationRequest& request) = 0;
  /// Opens a search with `slots` slots, for sources of at most `source_length` tokens, that others
  /// may join. Throws ModelError for settings that do not fit the model.
  virtual std::unique_ptr<SearchSlots> open_search(uint32_t slots, uint32_t source_length,
                                                   const GenerationSettings& settings,
                                                   const HeadMasks& head_masks) = 0;
  /// Throws as generate() does for such a source and settings.
  virtual void check_request(std::span<const uint32_t> source,
                             const GenerationSettings& settings) const = 0;
  /// Throws ModelError for a source whose logits were not finite.
  [[noreturn]] virtual void refuse(const std::vector<uint32_t>& source, uint32_t start,
                                   const HeadMasks& head_masks) = 0;
  /// Starts the search of one source, to be run in slices. Throws as generate().
  virtual std::unique_ptr<SearchTask> start(const GenerationRequest& request) = 0;
  /// Throws ModelError where the logits of a task, started with this request, were not finite.
  virtual void check(const SearchTask& task, const GenerationRequest& request) = 0;
  /// Searches for inputs input_ids (1, S) and attention_mask (1, S). Outputs: "output_ids" (n_best,
  /// length), start id first, pad after the end (or eos where pad is 0); "sequences_scores"
  /// (n_best).
  virtual NamedArrays search(const NamedArrays& inputs, const GenerationConfig& config,
                             uint32_t n_best) = 0;
  /// Log probabilities of each target's ids, each given the source and the ids before it. targets:
  /// as many as sources, ids with the end of text; start: the id with which decoding begins. Throws
  /// ModelError as generate() does.
  virtual std::vector<std::vector<double>> score(std::span<const std::vector<uint32_t>> sources,
                                                 std::span<const std::vector<uint32_t>> targets,
                                                 uint32_t start, const HeadMasks& head_masks) = 0;
  /// The attention maps of one pair of sequences. target: the ids that the decoder is fed, start
  /// token first.
  virtual SequenceAttention attention(const std::vector<uint32_t>& source,
                                      const std::vector<uint32_t>& target,
                                      const HeadMasks& head_masks) = 0;
  /// Starts such a pass, to be run in slices; the maps stay on the device. The rooms are tokens of
  /// the longest pair with which it is begun again, 0: as many as this pair has.
  virtual std::unique_ptr<TranslationAttention> start_attention(const std::vector<uint32_t>& source,
                                                                const std::vector<uint32_t>& target,
                                                                const HeadMasks& head_masks,
                                                                uint32_t source_room,
                                                                uint32_t target_room) = 0;
  /// Begins a pass again. Throws SettingError for pairs for which it has no room.
  virtual void begin_attention(TranslationAttention& pass, const std::vector<uint32_t>& source,
                               const std::vector<uint32_t>& target,
                               const HeadMasks& head_masks) = 0;
  /// Pipelines of the programs of start(), for sources of at most `source_tokens` tokens.
  virtual std::vector<PipelineKey> pipelines(uint32_t source_tokens,
                                             const GenerationSettings& settings) const = 0;
  /// Plans the passes of start_attention() with these rooms.
  virtual AttentionPasses plan_attention(uint32_t source_room, uint32_t target_room) const = 0;
  /// Whether forward() gives the same states for a source's padding as transformers does.
  virtual bool padding_has_states() const = 0;
  /// Drops programs that are not in use.
  virtual void trim() = 0;
};

}  // namespace mulciber
