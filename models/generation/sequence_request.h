// What a sequence is asked for, by BatchGenerator, TextGenerator and its tasks alike.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/generation/shared_generator.h"
#include "mulciber/batch_generator.h"

namespace mulciber {

/// Checked settings. Public options have the documentation of each.
struct SequenceRequest {
  Sampling sampling;
  uint32_t stream = 0;
  uint32_t max_new_tokens = 0;  // 0: as many as the context has room for
  std::vector<std::string> stop;
  bool ignore_end = false;
  bool reuse_completions = false;
  LogitBiases biases;
  std::vector<float> adapters;  // see chosen_adapters()
  std::optional<Grammar> grammar;
  uint32_t prompt_lookup = 0;
  bool draft = false;         // tokens are drafted by the draft model
  uint32_t draft_tokens = 0;  // 0: as many as suit
  std::optional<uint32_t> log_probabilities;
  bool shift = false;                 // the context shifts once it is full
  uint32_t keep = 0;                  // tokens that stay at the beginning then
  uint32_t steps_per_submission = 0;  // 0: the generator's

  std::function<void(size_t done, size_t total)> on_prompt;
  std::function<void(const BatchToken&)> on_token;
  std::function<void(Generation, std::string_view last_piece)> on_end;
  std::function<void(std::exception_ptr)> on_error;  // called instead of on_end

  /// Whether tokens may be drafted behind the sequence.
  bool drafts() const { return prompt_lookup > 0 || draft; }
};

}  // namespace mulciber
