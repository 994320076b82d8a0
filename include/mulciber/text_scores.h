// Scores of given texts by a language model: log probabilities of their tokens, and hidden states.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "mulciber/load_options.h"

namespace mulciber {

struct TokenProbability {
  uint32_t id = 0;
  float log_probability = 0;  // the model's, before sampling and its penalties
};

/// Log probabilities at one position of a text.
struct TokenProbabilities {
  float chosen = 0;                         // of the token that stands there
  std::vector<TokenProbability> likeliest;  // most probable first; equals in the order of their ids
};

/// A text to score, or the continuation of a context.
struct ScoreInput {
  /// Precedes the text and is not scored. Context and text are tokenized together; with n tokens in
  /// the context alone, the tokens after the first n are scored. Trailing spaces of the context
  /// count as the text's. Source: lm-evaluation-harness, which tokenizes multiple-choice questions
  /// so.
  std::string context = {};
  std::string text = {};
  /// Used instead of both unless empty: a text's token ids, its first special tokens included.
  std::vector<uint32_t> ids = {};
};

struct ScoreOptions {
  bool add_special = true;     // add the model's first special tokens
  bool parse_special = false;  // read special tokens that are spelled out in a text
  uint32_t likeliest = 0;      // number of most probable tokens returned for each token
  bool ranks = false;          // compute TokenScore::rank
  /// Adapters, see GenerateOptions::adapters.
  std::optional<std::vector<AdapterScale>> adapters = {};
  /// Read between texts; once true, the call returns with the texts that are complete.
  const std::atomic<bool>* cancel = nullptr;
  /// Called after each text with the numbers of finished and of all texts.
  std::function<void(size_t done, size_t total)> progress;
};

struct TokenScore {
  uint32_t id = 0;
  double log_probability = 0;  // natural logarithm, given all previous tokens
  uint32_t rank = 0;           // number of more probable ids, equally probable smaller ids included
  std::vector<TokenProbability> likeliest;
};

struct TextScore {
  std::vector<uint32_t> ids;       // ids of context and text
  std::vector<TokenScore> tokens;  // scores of the text's ids; a first id has none
  double sum = 0;                  // sum of their log probabilities
  bool complete = false;           // false: cancelled before this text was done
  double mean() const { return tokens.empty() ? 0 : sum / static_cast<double>(tokens.size()); }
};

struct ScoreStatistics {
  uint64_t read_tokens = 0;
  uint64_t reused_tokens = 0;  // reused from the prefix of the previous text
  uint64_t scored_tokens = 0;
  double build_seconds = 0;  // building and recording programs
  double total_seconds = 0;
};

struct TextScores {
  std::vector<TextScore> texts;  // in the order of the inputs
  ScoreStatistics statistics;
};

/// Hidden states of a text, with the layer indices of transformers: 0 is the embedding, i the
/// output of layer i (from 1), and the last is normalized, as the output projection reads it.
struct HiddenStates {
  std::vector<uint32_t> ids;
  uint32_t width = 0;
  std::vector<float> values;  // (layers asked for, ids, width) row-major
};

}  // namespace mulciber
