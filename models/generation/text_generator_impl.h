// Implementation of TextGenerator and of its tasks.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/adapters/adapters.h"
#include "models/generation/draft_check.h"
#include "models/generation/shared_generator.h"
#include "models/generation/token_scorer.h"
#include "mulciber/text_generator.h"

namespace mulciber {

struct TextGenerator::Impl : SharedGenerator {
  std::shared_ptr<SequenceBatch> batch;
  uint32_t context = 0;
  GenerateStatistics statistics;
  std::optional<TokenScorer> scorer;
  std::optional<DraftCheck> checker;
  std::shared_ptr<const Tokenizer> checked_draft;  // found to have this model's tokens

  explicit Impl(std::shared_ptr<Device> on) { device = std::move(on); }
  explicit Impl(const SharedGenerator& other) : SharedGenerator(other) {}
  /// weights: as in ModelOptions.
  void start(std::shared_ptr<const OpenModel> files, const GeneratorOptions& options,
             std::shared_ptr<WeightsLoad> weights = {});
  /// Encodes a prompt, which may be empty.
  std::vector<int32_t> tokens(const std::string& prompt, const GenerateOptions& options) const;
  /// Encodes a prompt. Throws ModelError for one without tokens, or with too many where the context
  /// does not shift.
  std::vector<int32_t> encode(const std::string& prompt, const GenerateOptions& options) const;
  /// Throws ModelError for a prompt of `tokens` tokens, which leaves no room in the context.
  [[noreturn]] void refuse_prompt(size_t tokens) const;
  /// How many tokens stay at the beginning when the context shifts.
  uint32_t kept(std::span<const int32_t> prompt, const GenerateOptions& options) const;
  Sampling default_sampling() const { return SharedGenerator::default_sampling(context); }
  /// The request for every row of the batch, without its prompts.
  SequenceRequest request(const GenerateOptions& options) const;
  /// Sets the options' grammar, if there is one, for the first `texts` rows. `grammars` must
  /// outlive the request.
  void set_grammars(SequenceRequest& request, const GenerateOptions& options, uint32_t texts,
                    std::vector<CompletionGrammar>& grammars) const;
  /// Limits the new ids behind a prompt so that its attention maps can be kept.
  void bound_attention(SequenceRequest& request, size_t prompt,
                       const GenerateOptions& options) const;
  /// The ids of prompt and answer that the model has read.
  std::vector<uint32_t> read_ids(const Generation& generation) const;
  TokenAttention attention(const Generation& generation, std::span<const float> adapters);
  /// The fingerprint of row 0's cache, which depends on the row's adapter scales.
  uint64_t cache_fingerprint() const {
    return fingerprint_with(fingerprint, batch->adapter_scales(0));
  }
  /// For a request with row 0 alone: keeps the cached prefix of `ids`, and asks for the others.
  /// identity: SequenceRequest::identity of all `ids`. Returns how many tokens are kept.
  uint32_t reuse(SequenceRequest& request, const std::vector<uint32_t>& ids,
                 std::span<const uint32_t> identity = {});
  /// Adds the embeddings of a prompt's images to a request for the tokens behind the first
  /// `reused`. `tiles` keeps their memory.
  void give_images(SequenceRequest& request, std::vector<ShownTile>& tiles, uint32_t reused,
                   const std::atomic<bool>* cancel);
  /// Throws SettingError where an option excludes images.
  void check_images(const GenerateOptions& options) const;
  class Drafter;
  /// generate() with GenerateOptions::prompt_lookup or draft.
  Generation speculate(const std::vector<int32_t>& encoded, const GenerateOptions& options);
  /// Throws ModelError where the draft model cannot serve this one, above all where its tokens are
  /// others.
  void check_draft(const Impl& draft);
  /// For a request with row 0 alone: prefills all but the last of `ids`, as far as the batch does
  /// not hold them.
  void take_in(SequenceRequest& request, std::vector<uint32_t> ids);
  /// Reset the statistics for a call, and add a run of the batch to them.
  void begin_count();
  void count(const SequenceResult& found);
};

}  // namespace mulciber
