// Default decoding settings of a model, from generation_config.json and similar files.
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

/// Reads an activation function by its name in transformers. Throws ModelError listing the known
/// names.
Activation read_activation(const ConfigReader& config, const char* key);

/// A model's default decoding settings.
struct GenerationConfig {
  std::optional<std::int32_t> bos, pad, decoder_start, forced_bos, forced_eos;
  std::vector<std::int32_t> eos;                         // each of these ends a text
  std::vector<std::vector<std::int32_t>> bad_words_ids;  // sequences never to be produced
  std::optional<std::int32_t> max_length;      // total tokens, the decoder's start token included
  std::optional<std::int32_t> max_new_tokens;  // overrides max_length
  std::int32_t min_length = 0;
  std::int32_t num_beams = 1;
  double length_penalty = 1.0;
  /// When a search stops that has as many finished hypotheses as beams: false is kHeuristic (once
  /// no running beam, scored at its present length, beats the worst of them), true kEarly (at
  /// once), "never" kNever (once no running beam could beat it at any length).
  EarlyStopping early_stopping = EarlyStopping::kHeuristic;
  /// Whether scores are normalized again after banned tokens were removed.
  bool renormalize_logits = false;
  /// Sampling settings of a language model; without do_sample, greedy decoding. penalty_window:
  /// 0xffffffff (the whole text) unless a GGUF file sets it.
  Sampling sampling;
  std::int32_t no_repeat_ngram_size = 0;
};

/// Reads each key from generation_config.json (nullptr when there is none), else from config.json,
/// else takes the defaults above. Throws ModelError naming file and key; ids must be below
/// `vocab_size`.
GenerationConfig read_generation_config(const ConfigReader& config, const ConfigReader* generation,
                                        std::int64_t vocab_size);
/// Readers of a checkpoint's two configuration files.
struct ConfigReaders {
  /// Throws ModelError when there is no config.json.
  explicit ConfigReaders(const Checkpoint& checkpoint);
  const ConfigReader* generation_or_null() const { return generation ? &*generation : nullptr; }

  ConfigReader config;
  std::optional<ConfigReader> generation;
};
/// Reads the two files of a checkpoint. Throws as above.
GenerationConfig read_generation_config(const Checkpoint& checkpoint, std::int64_t vocab_size);

}  // namespace mulciber
