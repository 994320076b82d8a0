// What stands behind a TextGenerator and its tasks.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/adapters/adapters.h"
#include "models/generation/proposal_check.h"
#include "models/generation/shared_generator.h"
#include "models/generation/token_scorer.h"
#include "mulciber/text_generator.h"

namespace mulciber {

struct TextGenerator::Impl : SharedGenerator {
  std::optional<SequenceBatch> batch;
  uint32_t context = 0;
  GenerateStatistics statistics;
  std::optional<TokenScorer> scorer;
  std::optional<ProposalCheck> checker;
  std::shared_ptr<const Tokenizer> checked_draft;  // of the same tokens as this model's

  explicit Impl(std::shared_ptr<Device> on) { device = std::move(on); }
  explicit Impl(const SharedGenerator& other) : SharedGenerator(other) {}
  /// weights: ModelOptions::weights.
  void start(std::shared_ptr<const OpenModel> files, const GeneratorOptions& options,
             std::shared_ptr<WeightsLoad> weights = {});
  /// An empty prompt too.
  std::vector<int32_t> tokens(const std::string& prompt, const GenerateOptions& options) const;
  /// Throws ModelError for a prompt that has none, or too many where the context does not shift.
  std::vector<int32_t> encode(const std::string& prompt, const GenerateOptions& options) const;
  /// Of so many tokens, which leave no room.
  [[noreturn]] void refuse_prompt(size_t tokens) const;
  /// How many tokens stay at the beginning when the context shifts.
  uint32_t kept(std::span<const int32_t> prompt, const GenerateOptions& options) const;
  Sampling default_sampling() const { return SharedGenerator::default_sampling(context); }
  /// Of every row of the batch, without its prompts.
  SequenceRequest request(const GenerateOptions& options) const;
  /// Has the first `texts` rows answer by the options' grammar, if there is one. `grammars` must
  /// outlive the request.
  void set_grammars(SequenceRequest& request, const GenerateOptions& options, uint32_t texts,
                    std::vector<AnswerGrammar>& grammars) const;
  /// Bounds the ids that are chosen behind a prompt so that its attention can be kept.
  void bound_attention(SequenceRequest& request, size_t prompt,
                       const GenerateOptions& options) const;
  /// Prompt and answer, as far as they were read.
  std::vector<uint32_t> read_ids(const Generation& generation) const;
  TokenAttention attention(const Generation& generation, std::span<const float> adapters);
  /// Of the sequence in row 0, whose keys and values are those of the adapters it was given.
  uint64_t cache_fingerprint() const {
    return fingerprint_with(fingerprint, batch->adapter_scales(0));
  }
  /// Of a request with row 0 alone: keeps what is held and begins alike, and asks for the rest of
  /// `ids`. identity: as SequenceRequest's, of all of them. Returns the tokens kept.
  uint32_t reuse(SequenceRequest& request, const std::vector<uint32_t>& ids,
                 std::span<const uint32_t> identity = {});
  /// Embeddings of a prompt's pictures, of which `reused` tokens are held, in a request for the
  /// rest. What they are in stays with `tiles`.
  void give_pictures(SequenceRequest& request, std::vector<ShownTile>& tiles, uint32_t reused,
                     const std::atomic<bool>* cancel);
  /// Throws SettingError where the options ask for what does not go with pictures.
  void check_pictures(const GenerateOptions& options) const;
  class Proposer;
  /// generate() with GenerateOptions::lookup or draft.
  Generation speculate(const std::vector<int32_t>& encoded, const GenerateOptions& options);
  /// Throws ModelError where its tokens are others.
  void check_draft(const Impl& draft);
  /// Of a request with row 0 alone: takes in all but the last of `ids`, or what is not held of it.
  void take_in(SequenceRequest& request, std::vector<uint32_t> ids);
  /// Statistics of a call: from nothing, and what one pass over the device adds.
  void begin_count();
  void count(const SequenceResult& found);
};

}  // namespace mulciber
