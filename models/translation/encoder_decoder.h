// Runs an encoder-decoder network: searches and full passes, by programs that are built once per
// shape, kept, and replayed.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/core/padded_ids.h"
#include "models/translation/encoder_decoder_programs.h"
#include "models/translation/search_slots.h"
#include "models/translation/search_task.h"
#include "models/translation/translation_attention.h"
#include "models/translation/translation_model.h"

namespace mulciber {

class Weights;

/// A full pass with given target ids.
struct ForwardRequest {
  PaddedIds source;
  PaddedIds target;  // lengths are not used: no token sees a later one
  HeadMasks head_masks;
  bool logits = false, hidden_states = false, attentions = false;
  /// Not empty: the ids that follow each row's target ids one by one; score() gives their
  /// probability.
  std::vector<std::vector<uint32_t>> next;
};

/// Outputs by name, with the requested extents, without a program's padding:
/// encoder_last_hidden_state, logits, {encoder,decoder}_hidden_states,
/// {encoder,decoder,cross}_attentions, shaped as Hugging Face transformers stacks them.
using ForwardResult = std::map<std::string, NamedArray>;

/// Not thread-safe. Must not outlive the device or the network's weights.
class EncoderDecoder {
 public:
  /// memory_limit: bytes, 0 for what is available; checked before a batch is allocated. weights:
  /// the network's, to name a weight that spoils the logits; may be null.
  EncoderDecoder(Device& device, std::unique_ptr<EncoderDecoderNetwork> network,
                 const Weights* weights, uint64_t memory_limit);
  ~EncoderDecoder();

  const EncoderDecoderNetwork& network() const { return *network_; }
  /// Throws LogitsError when logits are NaN or infinite; so does score().
  GenerationResult generate(const GenerationRequest& request);
  /// Starts the search of one source, to be run in slices. The task has its programs to itself
  /// until it is destroyed.
  std::unique_ptr<SearchTask> start(const GenerationRequest& request, uint32_t pad);
  /// Opens a search with `slots` slots, for sources of at most `source_length` tokens. The search
  /// has its programs to itself until it is destroyed.
  std::unique_ptr<SearchSlots> open_search(uint32_t slots, uint32_t source_length,
                                           const GenerationSettings& settings,
                                           const HeadMasks& head_masks);
  /// Throws ModelError where the logits of a search were not finite.
  void check(const SearchTask& task, const GenerationRequest& request);
  /// Throws ModelError for a source whose logits, behind these target ids, are not finite.
  [[noreturn]] void refuse(const std::string& whose, const std::vector<uint32_t>& source,
                           const std::vector<uint32_t>& target, const HeadMasks& head_masks);
  /// Runs a full pass.
  ForwardResult forward(const ForwardRequest& request);
  /// Starts a full pass of one source and its target, to be run in slices. The pass can be begun
  /// again with pairs of at most these rooms, in tokens; 0: as many as the first pair has. The pass
  /// has its programs to itself until it is destroyed.
  std::unique_ptr<TranslationAttention> start_attention(const ForwardRequest& request,
                                                        uint32_t source_room, uint32_t target_room);
  /// Control words before the pass of a request.
  ControlWords begin(const PassProgram& program, const ForwardRequest& request) const;
  /// Log probabilities of the ids of each row's `next`.
  std::vector<std::vector<double>> score(const ForwardRequest& request);
  /// Pipelines of tasks that search for sources of at most `source_tokens` tokens.
  std::vector<PipelineKey> pipelines(uint32_t source_tokens,
                                     const GenerationSettings& settings) const;
  /// Plans the passes of start_attention() with these rooms, which are not 0.
  AttentionPasses plan_attention(uint32_t source_room, uint32_t target_room) const;
  /// Drops programs that no task uses.
  void trim();
  /// Implements TranslationModel::batch_limit().
  uint32_t batch_limit(uint32_t source_length, const GenerationSettings& settings);

 private:
  /// Bytes of the kept searches, as predicted.
  uint64_t kept_search_bytes() const;
  std::shared_ptr<SearchPrograms> search(const SearchShape& shape);
  /// Control words before a search.
  ControlWords begin(const SearchPrograms& programs, const GenerationRequest& request,
                     uint32_t pad) const;
  std::shared_ptr<PassProgram> pass(const PassShape& shape);
  /// Rounds lengths up, so that few programs serve all texts.
  uint32_t padded_length(uint32_t length) const;
  PassShape padded_shape(const ForwardRequest& request) const;
  /// Runs the pass of a request.
  void run(PassProgram& program, const ForwardRequest& request);
  Device& device_;
  std::unique_ptr<EncoderDecoderNetwork> network_;
  SourceEncoder encoder_;
  const Weights* weights_;
  uint64_t memory_limit_;
  // Most recently used first.
  std::list<std::shared_ptr<SearchPrograms>> searches_;
  std::list<std::shared_ptr<PassProgram>> passes_;
};

}  // namespace mulciber
