// What a language model says of given texts: log probabilities of their tokens, and hidden states.
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
  float log_probability = 0;  // of the model, before sampling and its penalties
};

/// A text, or what continues one.
struct ScoreInput {
  /// Stands before the text and is not scored. Context and text are cut into tokens together, and
  /// what the text has beyond the tokens of the context alone is scored. Spaces at its end count as
  /// the text's. Source: lm-evaluation-harness, which cuts multiple-choice questions so.
  std::string context = {};
  std::string text = {};
  /// In place of both: a text's tokens as they are, with what stands in front of it.
  std::vector<uint32_t> ids = {};
};

struct ScoreOptions {
  bool add_special = true;     // begin with what the model expects in front of a text
  bool parse_special = false;  // special tokens spelled out in a text count as such
  uint32_t likeliest = 0;      // alternatives of each token, the likeliest first
  bool ranks = false;          // TokenScore::rank
  /// As GenerateOptions::adapters.
  std::optional<std::vector<AdapterScale>> adapters = {};
  /// Looked at between texts; once true, the call returns with what there is.
  const std::atomic<bool>* cancel = nullptr;
  /// Called after each text.
  std::function<void(size_t done, size_t total)> progress;
};

struct TokenScore {
  uint32_t id = 0;
  double log_probability = 0;  // natural logarithm, given all tokens before it
  uint32_t rank = 0;           // so many ids are likelier, of equals those before it counted
  std::vector<TokenProbability> likeliest;
};

struct TextScore {
  std::vector<uint32_t> ids;       // of context and text
  std::vector<TokenScore> tokens;  // of the last ids: those of the text that have one before them
  double sum = 0;                  // of their log probabilities
  bool complete = false;           // false: cancelled before this text was done
  double mean() const { return tokens.empty() ? 0 : sum / static_cast<double>(tokens.size()); }
};

struct ScoreStatistics {
  uint64_t read_tokens = 0;
  uint64_t reused_tokens = 0;  // computed for the text before, which began alike
  uint64_t scored_tokens = 0;
  double build_seconds = 0;  // making and recording programs
  double total_seconds = 0;
};

struct TextScores {
  std::vector<TextScore> texts;  // in the order of the inputs
  ScoreStatistics statistics;
};

/// Hidden states of a text, as transformers counts them: 0 is the embedding, i what layer i leaves
/// (from 1), and the last what the output product takes, which is normalized.
struct HiddenStates {
  std::vector<uint32_t> ids;
  uint32_t width = 0;
  std::vector<float> values;  // (layers asked for, ids, width) row-major
};

}  // namespace mulciber
