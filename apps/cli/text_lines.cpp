#include "apps/cli/text_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <numeric>

#include "apps/cli/lines.h"
#include "apps/cli/standard_error.h"

namespace mulciber::apps {
namespace {

struct Input {
  std::unique_ptr<std::ifstream> file;
  std::string name = "standard input";

  explicit Input(const std::string& path) {
    if (path.empty() || path == "-") return;
    name = path;
    file = std::make_unique<std::ifstream>(path, std::ios::binary);
    if (!*file) throw ModelError(path, "cannot be read", "give a text file");
  }
  std::istream& stream() { return file ? *file : std::cin; }
  /// Image and model files given by mistake would be read as lines of rubbish.
  void check(std::string_view text) const {
    if (text.find('\0') != std::string_view::npos)
      throw ModelError(name, "is no text: it holds bytes of zero", "give a text file");
  }
};

}  // namespace

std::vector<std::string> read_lines(const std::string& file) {
  Input input(file);
  LineReader reader(input.stream(), input.name);
  std::vector<std::string> lines;
  for (std::string line; reader.next(line);) {
    input.check(line);
    lines.push_back(line);
  }
  return lines;
}

std::string only_text_file(std::span<const std::string> files) {
  if (files.size() > 1)
    throw ModelError(files[1], "is a second file, and this model reads texts",
                     "give one file, or pipe several into standard input");
  return files.empty() ? "" : files.front();
}

std::string read_whole(const std::string& file) {
  Input input(file);
  std::istream& stream = input.stream();
  std::string text{std::istreambuf_iterator<char>(stream), {}};
  if (stream.bad()) throw ModelError(input.name, "could not be read", "");
  input.check(text);
  return text;
}

std::vector<size_t> best_first(std::span<const float> scores) {
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return scores[a] > scores[b]; });
  return order;
}

void add_encoder_options(Command& command, EncoderArguments& arguments) {
  command
      .add_option(
          "-m,--model", arguments.model,
          "Hugging Face folder of an encoder-only model of texts or images, or GGUF file of "
          "texts; embed: also of a decoder")
      .required()
      .type_name("DIR|FILE");
  command.add_flag("--half", arguments.half_weights,
                   "keep matrices in 16 bits on the device even where the file has 32");
  command.add_flag("--half-activations", arguments.half_activations, "keep activations in 16 bits");
  command.add_flag("--stats", arguments.stats,
                   "tokens per second, padding, device and memory, on standard error");
}

void report(const EncoderArguments& arguments, const EncoderStatistics& statistics,
            uint32_t max_tokens) {
  if (statistics.truncated > 0)
    tell("mulciber: {} of {} texts are longer than {} tokens, and were cut\n", statistics.truncated,
         statistics.texts, max_tokens);
  if (!arguments.stats) return;
  const double seconds = statistics.run_seconds;
  tell(
      "texts       {} in {} batches, {} tokens, {:.1f} % of the batches is padding\n"
      "speed       {:.0f} tokens/s on the device, {:.0f} texts/s in all\n"
      "seconds     {:.3f} load, {:.3f} tokens, {:.3f} programs, {:.3f} device\n"
      "memory      {:.1f} MiB weights, {:.1f} MiB predicted, {:.1f} MiB at most\n",
      statistics.texts, statistics.batches, statistics.tokens,
      statistics.padded_tokens > 0
          ? 100.0 * static_cast<double>(statistics.padded_tokens - statistics.tokens) /
                static_cast<double>(statistics.padded_tokens)
          : 0.0,
      seconds > 0 ? static_cast<double>(statistics.tokens) / seconds : 0.0,
      statistics.total_seconds > 0
          ? static_cast<double>(statistics.texts) / statistics.total_seconds
          : 0.0,
      statistics.load_seconds, statistics.tokenize_seconds, statistics.prepare_seconds, seconds,
      static_cast<double>(statistics.weight_bytes) / 1048576,
      static_cast<double>(statistics.predicted_device_bytes) / 1048576,
      static_cast<double>(statistics.peak_device_bytes) / 1048576);
}

}  // namespace mulciber::apps
