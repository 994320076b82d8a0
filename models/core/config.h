// How a model is decoded unless the caller says otherwise: generation_config.json and its like.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "checkpoints/checkpoint.h"
#include "checkpoints/config_reader.h"
#include "mulciber/sampling.h"
#include "ops/matmul.h"
#include "ops/search.h"

namespace mulciber {

/// An activation function by the name that transformers gives it. Throws ModelError naming those
/// that are known.
Activation read_activation(const ConfigReader& config, const char* key);

/// How a model is decoded unless the caller says otherwise.
struct GenerationConfig {
  std::optional<std::int32_t> bos, pad, decoder_start, forced_bos, forced_eos;
  std::vector<std::int32_t> eos;                         // any of these ends a text
  std::vector<std::vector<std::int32_t>> bad_words_ids;  // sequences never to be produced
  std::optional<std::int32_t> max_length;      // tokens in all, the decoder's start included
  std::optional<std::int32_t> max_new_tokens;  // wins over max_length
  std::int32_t min_length = 0;
  std::int32_t num_beams = 1;
  double length_penalty = 1.0;
  /// When a search with as many finished hypotheses as beams stops: false is kHeuristic (no running
  /// beam, scored at its present length, beats the worst of them), true kEarly (at once), "never"
  /// kNever (no running beam could beat it at any length).
  EarlyStopping early_stopping = EarlyStopping::kHeuristic;
  /// Scores are normalized again after forbidden tokens were taken out.
  bool renormalize_logits = false;
  /// How a language model chooses: by do_sample and its numbers, or else the likeliest token.
  /// penalty_window: 0xffffffff, the whole text, but for GGUF files that say otherwise.
  Sampling sampling;
  std::int32_t no_repeat_ngram_size = 0;
};

/// generation_config.json (nullptr when there is none) key by key, then config.json, then the
/// defaults above. Throws ModelError naming file and key; ids must be below `vocab_size`.
GenerationConfig read_generation_config(const ConfigReader& config, const ConfigReader* generation,
                                        std::int64_t vocab_size);
/// Readers of a checkpoint's two configuration files.
struct ConfigReaders {
  /// Throws ModelError where there is no config.json.
  explicit ConfigReaders(const Checkpoint& checkpoint);
  const ConfigReader* generation_or_null() const { return generation ? &*generation : nullptr; }

  ConfigReader config;
  std::optional<ConfigReader> generation;
};
/// The same for a checkpoint's two files.
GenerationConfig read_generation_config(const Checkpoint& checkpoint, std::int64_t vocab_size);

}  // namespace mulciber
