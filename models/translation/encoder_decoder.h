// An encoder-decoder network at work: searches and whole passes, by programs that are built once
// per shape, kept, and replayed.
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

/// A whole pass with given target ids.
struct ForwardRequest {
  PaddedIds source;
  PaddedIds target;  // lengths are not used: no token sees a later one
  HeadMasks head_masks;
  bool logits = false, hidden_states = false, attentions = false;
  /// Not empty: what follows each row's target ids one by one; score() tells how probable it is.
  std::vector<std::vector<uint32_t>> next;
};

/// Outputs with the extents asked for (padding for the program's sake taken away), by name:
/// encoder_last_hidden_state, logits, {encoder,decoder}_hidden_states,
/// {encoder,decoder,cross}_attentions, shaped as Hugging Face transformers stacks them.
using ForwardResult = std::map<std::string, NamedArray>;

/// Not thread-safe. Must not outlive the device or the network's weights.
class EncoderDecoder {
 public:
  /// memory_limit: bytes, 0 for what is available; checked before a batch is allocated.
  /// weights: of the network, to name the one that spoils the logits; may be null.
  EncoderDecoder(Device& device, std::unique_ptr<EncoderDecoderNetwork> network,
                 const Weights* weights, uint64_t memory_limit);
  ~EncoderDecoder();

  const EncoderDecoderNetwork& network() const { return *network_; }
  /// Throws LogitsError when logits are NaN or infinite; so does score().
  GenerationResult generate(const GenerationRequest& request);
  /// The search of one source, to be run in slices. Its programs are its own until it is destroyed.
  std::unique_ptr<SearchTask> start(const GenerationRequest& request, uint32_t pad);
  /// A running search with so many places, for sources of at most so many tokens. Its programs are
  /// its own until it is destroyed.
  std::unique_ptr<SearchSlots> open_search(uint32_t places, uint32_t source_length,
                                           const GenerationSettings& settings,
                                           const HeadMasks& head_masks);
  /// Throws ModelError where the logits of a search were not finite.
  void check(const SearchTask& task, const GenerationRequest& request);
  /// For a source whose logits, behind these target ids, are not finite: throws ModelError.
  [[noreturn]] void refuse(const std::string& whose, const std::vector<uint32_t>& source,
                           const std::vector<uint32_t>& target, const HeadMasks& head_masks);
  ForwardResult forward(const ForwardRequest& request);
  /// The same pass of one source and its target, to be run in slices, and begun again with others
  /// of so many tokens at most; 0: as many as these have. Its programs are its own until it is
  /// destroyed.
  std::unique_ptr<TranslationAttention> start_attention(const ForwardRequest& request,
                                                        uint32_t source_room, uint32_t target_room);
  /// Control words before the pass of a request.
  ControlWords begin(const PassProgram& program, const ForwardRequest& request) const;
  /// Sum of the log probabilities of each row's `next`.
  std::vector<double> score(const ForwardRequest& request);
  /// Of tasks that search for sources of at most so many tokens.
  std::vector<PipelineKey> pipelines(uint32_t source_tokens,
                                     const GenerationSettings& settings) const;
  /// Of start_attention() with these rooms, which are not 0.
  AttentionPasses plan_attention(uint32_t source_room, uint32_t target_room) const;
  /// Lets go of programs that no task uses.
  void trim();
  /// As TranslationModel has it.
  uint32_t batch_limit(uint32_t source_length, const GenerationSettings& settings);

 private:
  SearchShape search_shape(uint32_t items, uint32_t source_length,
                           const GenerationSettings& settings) const;
  uint64_t search_bytes(const SearchShape& shape) const;
  /// Bytes of the searches kept, by prediction.
  uint64_t kept_search_bytes() const;
  uint64_t widest_binding(const SearchShape& shape) const;
  uint64_t control_bytes(const SearchShape& shape) const;
  std::shared_ptr<SearchPrograms> search(const SearchShape& shape);
  /// Control words before a search.
  ControlWords begin(const SearchPrograms& programs, const GenerationRequest& request,
                     uint32_t pad) const;
  std::shared_ptr<PassProgram> pass(const PassShape& shape);
  /// Lengths rounded up, so that few programs serve all texts.
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
