// Whole inputs of commands that read all of their text before they answer.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "apps/cli/command.h"
#include "mulciber/text_encoder.h"

namespace mulciber::apps {

/// Lines of a file; "-" or "" is standard input. Throws ModelError.
std::vector<std::string> read_lines(const std::string& file);
/// The file that a command's arguments name, or "". Throws ModelError where they are several, which
/// only pictures can be.
std::string only_text_file(std::span<const std::string> files);
/// All of it, likewise.
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

/// Places of scores, the highest first; equal ones as they come.
std::vector<size_t> best_first(std::span<const float> scores);

/// What --stats and cut texts say, on standard error.
void report(const EncoderArguments& arguments, const EncoderStatistics& statistics,
            uint32_t max_tokens);

}  // namespace mulciber::apps
