// `mulciber embed`: lines to vectors, or the lines that are most like a query.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "apps/interrupt_watch.h"
#include "apps/progress.h"
#include "apps/text_lines.h"
#include "apps/translate/lines.h"

namespace mulciber::apps {
namespace {

struct EmbedArguments : EncoderArguments {
  std::string file, npy, query, prompt, query_prompt;
  std::optional<Pooling> pooling;
  bool normalize = false, whole = false;
  uint32_t top = 5;
};

/// A NumPy file of version 1.0: (rows, columns) float32 in C order.
void write_npy(const std::string& path, std::span<const TextVector> vectors, uint32_t columns) {
  static_assert(std::endian::native == std::endian::little);
  std::string header = fmt::format(
      "{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, {}), }}", vectors.size(), columns);
  // With the ten bytes before it the header ends, by a line feed, at a multiple of 64.
  while ((10 + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  std::string file = "\x93NUMPY";
  file += '\x01';
  file += '\0';
  file += static_cast<char>(header.size() & 0xff);
  file += static_cast<char>(header.size() >> 8);
  file += header;
  std::ofstream out(path, std::ios::binary);
  out.write(file.data(), static_cast<std::streamsize>(file.size()));
  for (const TextVector& vector : vectors)
    out.write(reinterpret_cast<const char*>(vector.values.data()),
              static_cast<std::streamsize>(vector.values.size() * sizeof(float)));
  out.close();
  if (!out) throw ModelError(path, "could not be written", "is there room, and may it be written?");
}

class EmbedRun {
 public:
  explicit EmbedRun(const EmbedArguments& options)
      : options_(options),
        lines_(read_lines(options.file)),
        device_(open_device(options.common)),
        encoder_(device_, options.model, options.load()),
        output_("") {
    settings_.pooling = options.pooling;
    if (options.normalize) settings_.normalize = true;
    settings_.prompt_name = options.prompt;
    settings_.batch.truncate = !options.whole;
    settings_.batch.cancel = &cancel_;
  }

  int run() {
    const InterruptWatch watch(cancel_);
    Progress progress("embed", lines_.size());
    settings_.batch.progress = [&](size_t done, size_t) { progress.update(done); };
    const std::vector<TextVector> vectors = encoder_.embed(lines_, settings_);
    progress.finish();
    const EncoderStatistics statistics = encoder_.statistics();
    if (!cancel_) print(vectors);
    output_.flush();
    report(options_, statistics, encoder_.max_tokens());
    return finish(*device_, options_.common, cancel_ ? kInterrupted : kSuccess);
  }

 private:
  void print(std::span<const TextVector> vectors) {
    if (!options_.npy.empty()) write_npy(options_.npy, vectors, encoder_.width());
    if (!options_.query.empty()) return rank(vectors);
    if (!options_.npy.empty()) return;
    for (size_t i = 0; i < vectors.size(); ++i) {
      // The numbers as short as they say which float is meant.
      std::string object = text_of({{"text", lines_[i]},
                                    {"tokens", vectors[i].tokens},
                                    {"truncated", vectors[i].truncated}});
      object.pop_back();
      output_.line(fmt::format("{},\"vector\":[{}]}}", object, fmt::join(vectors[i].values, ",")));
    }
  }

  void rank(std::span<const TextVector> vectors) {
    EmbedOptions asked = settings_;
    asked.prompt_name = options_.query_prompt.empty() ? options_.prompt : options_.query_prompt;
    asked.batch.progress = {};
    const TextVector query = encoder_.embed(options_.query, asked);
    const std::vector<float> scores = encoder_.cosines({&query, 1}, vectors);
    std::vector<size_t> order(scores.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return scores[a] > scores[b]; });
    order.resize(std::min<size_t>(order.size(), options_.top));
    for (const size_t i : order) {
      if (options_.common.json)
        line({{"score", scores[i]}, {"line", i + 1}, {"text", lines_[i]}});
      else
        output_.line(fmt::format("{:.4f}\t{}\t{}", scores[i], i + 1, lines_[i]));
    }
  }

  static std::string text_of(const nlohmann::json& object) {
    return object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }
  void line(const nlohmann::json& object) { output_.line(text_of(object)); }

  const EmbedArguments& options_;
  std::vector<std::string> lines_;
  std::shared_ptr<Device> device_;
  TextEncoder encoder_;
  Output output_;
  EmbedOptions settings_;
  std::atomic<bool> cancel_{false};
};

}  // namespace

void add_embed(Command& app, int& code) {
  const auto options = std::make_shared<EmbedArguments>();
  Command command =
      app.add_subcommand("embed", "Turn lines of text into vectors, or rank them by a query");
  add_encoder_options(command, *options);
  command.add_option("FILE", options->file, "one text a line (default, and -: standard input)");
  const Option query =
      command
          .add_option("--query", options->query,
                      "print the lines most like this text, each with the cosine and its number")
          .type_name("TEXT");
  command.add_option("--top", options->top, "how many of them").range(1, 1000000).needs(query);
  command.add_option("--npy", options->npy, "write the vectors here, as NumPy does, and print none")
      .type_name("FILE");
  command.add_choice(
      "--pooling",
      {{"mean", static_cast<int>(Pooling::kMean)},
       {"first", static_cast<int>(Pooling::kFirst)},
       {"pooler", static_cast<int>(Pooling::kPooler)}},
      [options](int value) { options->pooling = static_cast<Pooling>(value); },
      "which states become the vector (default: as the model's files say, or mean)");
  command.add_flag("--normalize", options->normalize,
                   "vectors of length 1 (default: as the model's files say)");
  command
      .add_option("--prompt", options->prompt,
                  "name of a prompt of the model that stands before every line")
      .type_name("NAME");
  command.add_option("--query-prompt", options->query_prompt, "of another one for the query")
      .type_name("NAME")
      .needs(query);
  command.add_flag("--no-truncate", options->whole,
                   "refuse texts longer than the model takes, which are cut otherwise");
  add_common_options(command, options->common);
  command.footer(
      "Prints a JSON object a line: text, tokens, truncated, vector. Pooling, normalization, "
      "prompts and the\n"
      "longest text are read from the files that sentence-transformers writes beside a model.\n\n"
      "Example: mulciber embed -m models/all-MiniLM-L6-v2 notes.txt --query \"when is the "
      "meeting\"");
  command.callback([options, &code] { code = EmbedRun(*options).run(); });
}

}  // namespace mulciber::apps
