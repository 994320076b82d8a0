// Implementation of TextGenerator and of its tasks.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/adapters/adapters.h"
#include "models/generation/generation_batch.h"
#include "mulciber/text_generator.h"

namespace mulciber {

struct TextGenerator::Impl : GenerationBatch {
  GenerateStatistics counts;
  std::shared_ptr<const Tokenizer> checked_draft;  // found to have this model's tokens
  explicit Impl(std::shared_ptr<Device> on) { device = std::move(on); }
  explicit Impl(const SharedGenerator& other) : GenerationBatch(other) {}
  /// weights: as in ModelOptions.
  void start(std::shared_ptr<const OpenModel> files, const GeneratorOptions& options,
             std::shared_ptr<WeightsLoad> weights = {});
  /// Encodes a prompt, which may be empty.
  std::vector<int32_t> tokens(const std::string& prompt, const GenerateOptions& options) const;
  /// The ids of a prompt, which options.prompt_ids may give. Throws ModelError for a prompt without
  /// tokens, or with too many where the context does not shift.
  std::vector<int32_t> encode(const std::string& prompt, const GenerateOptions& options) const;
  /// Given ids as a prompt, with the same checks. Throws ModelError for ids outside the vocabulary.
  std::vector<int32_t> given_prompt(std::span<const uint32_t> ids, bool shift) const;
  void check_prompt(size_t tokens, bool shift) const;
  /// Throws ModelError for a prompt of `tokens` tokens, which leaves no room in the context.
  [[noreturn]] void refuse_prompt(size_t tokens) const;
  /// How many tokens stay at the beginning when the context shifts.
  uint32_t kept(std::span<const int32_t> prompt, const GenerateOptions& options) const;
  Sampling default_sampling() const { return SharedGenerator::default_sampling(context); }
  /// The request that the options make, without callbacks.
  SequenceRequest request(const GenerateOptions& options, std::span<const int32_t> prompt) const;
  /// A prompt whose completion is computed with others.
  struct Asked {
    std::vector<int32_t> prompt;
    SequenceRequest request;
    std::optional<Generation> found;
  };
  /// Computes the completions, and counts what that takes. Where one fails, all end.
  void run(std::span<Asked> asked, const GenerateOptions& options);
  /// Continues all prompts, each with a random number stream of its own.
  std::vector<Generation> run_all(std::vector<std::vector<int32_t>> prompts,
                                  const GenerateOptions& options);
  /// Throws SettingError for options that are for one prompt alone.
  static void check_all(const GenerateOptions& options);
  /// The ids of prompt and answer that the model has read.
  std::vector<uint32_t> read_ids(const Generation& generation) const;
  TokenAttention attention(const Generation& generation, std::span<const float> adapters);
  /// Copies of the last completion's tokens with their keys and values out of the cache, and back.
  SavedSequence save() const;
  size_t restore(const SavedSequence& saved);
  /// The fingerprint of the cache, which depends on the adapter scales of the last completion.
  uint64_t cache_fingerprint() const;
  /// Throws SettingError where an option excludes images.
  void check_images(const GenerateOptions& options) const;
  /// Throws SettingError or ModelError where tokens cannot be drafted as the options ask.
  void check_drafts(const GenerateOptions& options);
  /// Throws ModelError where the draft model cannot serve this one, above all where its tokens are
  /// others.
  void check_draft(const Impl& draft);
};

}  // namespace mulciber
