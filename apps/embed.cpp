// `mulciber embed`: turns lines into vectors, or ranks lines by their similarity to a query.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <nlohmann/json.hpp>

#include "apps/cli/interrupt_watch.h"
#include "apps/cli/lines.h"
#include "apps/cli/npy.h"
#include "apps/cli/progress.h"
#include "apps/cli/text_lines.h"
#include "apps/images/images.h"
#include "checkpoints/json.h"

namespace mulciber::apps {
namespace {

struct EmbedArguments : EncoderArguments {
  std::vector<std::string> files;
  std::string npy, query, prompt, query_prompt, attention;
  std::optional<Pooling> pooling;
  bool normalize = false, whole = false;
  uint32_t top = 5;
};

class EmbedRun {
 public:
  EmbedRun(const EmbedArguments& options, std::shared_ptr<const OpenModel> model)
      : options_(options),
        lines_(read_lines(only_text_file(options.files))),
        device_(open_device(options.common)),
        encoder_(device_, std::move(model), options.load()),
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
    if (!options_.npy.empty()) {
      std::vector<std::vector<float>> rows;
      for (const TextVector& vector : vectors) rows.push_back(vector.values);
      write_npy(options_.npy, rows, encoder_.width());
    }
    if (!options_.query.empty()) return rank(vectors);
    if (!options_.npy.empty()) return;
    for (size_t i = 0; i < vectors.size(); ++i) {
      // Numbers have as many digits as identify the float.
      std::string object = json_line({{"text", lines_[i]},
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
    std::vector<size_t> order = best_first(scores);
    order.resize(std::min<size_t>(order.size(), options_.top));
    for (const size_t i : order) {
      if (options_.common.json)
        output_.line(json_line({{"score", scores[i]}, {"line", i + 1}, {"text", lines_[i]}}));
      else
        output_.line(fmt::format("{:.4f}\t{}\t{}", scores[i], i + 1, lines_[i]));
    }
  }

  const EmbedArguments& options_;
  std::vector<std::string> lines_;
  std::shared_ptr<Device> device_;
  TextEncoder encoder_;
  Output output_;
  EmbedOptions settings_;
  std::atomic<bool> cancel_{false};
};

int run_embed(const EmbedArguments& options) {
  const std::shared_ptr<const OpenModel> model = open_model(options.model);
  if (!reads_images(*model)) {
    if (!options.attention.empty())
      throw ModelError("--attention", "lays maps over images, and this model reads texts",
                       "leave it out");
    return EmbedRun(options, model).run();
  }
  const TextOption text_options[] = {{"--query", !options.query.empty()},
                                     {"--prompt", !options.prompt.empty()},
                                     {"--no-truncate", options.whole}};
  refuse_text_options(text_options);
  ImageEmbedArguments images = {{options, options.files, options.attention}};
  images.npy = options.npy;
  images.normalize = options.normalize;
  if (options.pooling && *options.pooling != Pooling::kMean)
    throw ModelError("--pooling", "of images is the mean, or as the model was trained",
                     "leave it out for the latter");
  images.mean = options.pooling.has_value();
  return embed_images(images, model);
}

}  // namespace

void add_embed(Command& app, int& code) {
  const auto options = std::make_shared<EmbedArguments>();
  Command command =
      app.add_subcommand("embed", "Turn texts or images into vectors, or rank texts by a query");
  add_encoder_options(command, *options);
  command.add_option("FILE", options->files,
                     "one text a line (default, and -: standard input), or images");
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
       {"pooler", static_cast<int>(Pooling::kPooler)},
       {"last", static_cast<int>(Pooling::kLast)},
       {"max", static_cast<int>(Pooling::kMax)},
       {"mean-sqrt-length", static_cast<int>(Pooling::kMeanSqrtLength)},
       {"weighted-mean", static_cast<int>(Pooling::kWeightedMean)}},
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
  add_image_attention(command, options->attention);
  add_common_options(command, options->common);
  command.footer(
      "Prints a JSON object a line: text, tokens, truncated, vector; or image, vector. Pooling, "
      "normalization, "
      "prompts and the\n"
      "longest text are read from the files that sentence-transformers writes beside a model.\n\n"
      "Example: mulciber embed -m models/all-MiniLM-L6-v2 notes.txt --query \"when is the "
      "meeting\"");
  command.callback([options, &code] { code = run_embed(*options); });
}

}  // namespace mulciber::apps
