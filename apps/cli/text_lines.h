// Whole inputs, for commands that read all of their text before they answer.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "apps/cli/command.h"
#include "mulciber/text_encoder.h"

namespace mulciber::apps {

/// Lines of a file; "-" or "" is standard input. Throws ModelError.
std::vector<std::string> read_lines(const std::string& file);
/// The file that a command's arguments name, or "". Throws ModelError where they name several,
/// which only images may be.
std::string only_text_file(std::span<const std::string> files);
/// The text of a whole file; "-" or "" is standard input. Throws ModelError.
std::string read_whole(const std::string& file);

/// Options that `embed`, `classify` and `answer` share.
struct EncoderArguments {
  CommonOptions common;
  std::string model;
  bool half_weights = false, half_activations = false, stats = false;

  LoadOptions load() const {
    return {.half_weights = half_weights, .half_activations = half_activations};
  }
};
void add_encoder_options(Command& command, EncoderArguments& arguments);

/// Indices of scores, the highest first; equal ones keep their order.
std::vector<size_t> best_first(std::span<const float> scores);

/// Prints --stats and a note on cut texts on standard error.
void report(const EncoderArguments& arguments, const EncoderStatistics& statistics,
            uint32_t max_tokens);

}  // namespace mulciber::apps
