// What translating needs of a model: one sequence of ids in, another one out.
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
  /// Sources that search at once; the others wait until some are done. 0: all.
  uint32_t places = 0;
  /// Told of each source that is done, in the order in which that is known.
  std::function<void(size_t source, const std::vector<Hypothesis>& found)> on_item;
  bool stays_whole = false;  // items that are done keep their places: for comparison
};

struct GenerationResult {
  std::vector<std::vector<Hypothesis>> items;  // n_best each, in the order of the sources
  bool cancelled = false;                      // items is empty then
  uint32_t steps = 0;
  uint64_t row_steps = 0;         // rows of the steps, together
  uint64_t needed_row_steps = 0;  // of sources that searched still
  uint32_t refills = 0;           // times that sources joined others under way
  uint64_t predicted_bytes = 0;   // of device memory for this batch, besides the weights
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
  /// Ids the decoder can be fed.
  virtual uint32_t max_target_tokens() const = 0;
  /// Most sequences of that length that fit one batch: by the device's storage range and by its
  /// memory.
  virtual uint32_t batch_limit(uint32_t source_length, const GenerationSettings& settings) = 0;

  /// Whether sources may join a search whose others are under way.
  virtual bool refills() const = 0;

  /// Throws ModelError when a source is empty, longer than max_source_tokens(), or holds unknown
  /// ids.
  virtual GenerationResult generate(const GenerationRequest& request) = 0;
  /// A running search with so many places, for sources of at most so many tokens, that others may
  /// join. Throws ModelError for settings that do not fit the model.
  virtual std::unique_ptr<SearchSlots> open_search(uint32_t places, uint32_t source_length,
                                                   const GenerationSettings& settings,
                                                   const HeadMasks& head_masks) = 0;
  /// Throws as generate() does of a source and of settings.
  virtual void check_request(std::span<const uint32_t> source,
                             const GenerationSettings& settings) const = 0;
  /// For a source whose logits were not finite: throws ModelError.
  [[noreturn]] virtual void refuse(const std::vector<uint32_t>& source, uint32_t start,
                                   const HeadMasks& head_masks) = 0;
  /// The search of one source, to be run in slices. Throws as generate().
  virtual std::unique_ptr<SearchTask> start(const GenerationRequest& request) = 0;
  /// Throws ModelError where the logits of a task, started with this request, were not finite.
  virtual void check(const SearchTask& task, const GenerationRequest& request) = 0;
  /// Inputs: input_ids (1, S), attention_mask (1, S). "output_ids" (n_best, length), start id
  /// first, pad after the end (or eos where pad is 0); "sequences_scores" (n_best).
  virtual NamedArrays search(const NamedArrays& inputs, const GenerationConfig& config,
                             uint32_t n_best) = 0;
  /// Log probability of each target given its source: the sum over the target's ids, each given
  /// those before it. targets: as many as sources, ids with the end of text; start: what decoding
  /// begins with. Throws ModelError as generate() does.
  virtual std::vector<double> score(std::span<const std::vector<uint32_t>> sources,
                                    std::span<const std::vector<uint32_t>> targets, uint32_t start,
                                    const HeadMasks& head_masks) = 0;
  /// The maps of one pair of sequences. target: what the decoder is fed, start token first.
  virtual SequenceAttention attention(const std::vector<uint32_t>& source,
                                      const std::vector<uint32_t>& target,
                                      const HeadMasks& head_masks) = 0;
  /// The same pass, to be run in slices; the maps stay on the device. The rooms are tokens of the
  /// longest pair it is begun with again, 0: as many as these have.
  virtual std::unique_ptr<TranslationAttention> start_attention(const std::vector<uint32_t>& source,
                                                                const std::vector<uint32_t>& target,
                                                                const HeadMasks& head_masks,
                                                                uint32_t source_room,
                                                                uint32_t target_room) = 0;
  /// Begins it again. Throws SettingError for pairs that it has no room for.
  virtual void begin_attention(TranslationAttention& pass, const std::vector<uint32_t>& source,
                               const std::vector<uint32_t>& target,
                               const HeadMasks& head_masks) = 0;
  /// What the programs of start() are dispatched with, for sources of at most so many tokens.
  virtual std::vector<PipelineKey> pipelines(uint32_t source_tokens,
                                             const GenerationSettings& settings) const = 0;
  /// Of start_attention() with these rooms.
  virtual AttentionPasses plan_attention(uint32_t source_room, uint32_t target_room) const = 0;
  /// Whether forward() gives for a source's padding what transformers gives.
  virtual bool padding_has_states() const = 0;
  /// Lets go of programs that nobody uses now.
  virtual void trim() = 0;
};

}  // namespace mulciber
