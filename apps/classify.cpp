// `mulciber classify`: labels lines of text.
#include <fmt/format.h>

#include <atomic>
#include <nlohmann/json.hpp>

#include "apps/cli/interrupt_watch.h"
#include "apps/cli/lines.h"
#include "apps/cli/progress.h"
#include "apps/cli/text_lines.h"
#include "apps/images/images.h"
#include "checkpoints/json.h"

namespace mulciber::apps {
namespace {

struct ClassifyArguments : EncoderArguments {
  std::vector<std::string> files;
  std::string pair, attention;
  bool whole = false;
};

/// A line is a text, or two with a tab between them; `pair`, if given, is the second text of each
/// line.
ClassifierInput input_of(const std::string& line, const std::string& pair) {
  if (!pair.empty()) return {line, pair};
  const size_t tab = line.find('\t');
  if (tab == std::string::npos) return {line, std::nullopt};
  return {line.substr(0, tab), line.substr(tab + 1)};
}

int classify_lines(const ClassifyArguments& options, std::shared_ptr<const OpenModel> model) {
  const std::vector<std::string> lines = read_lines(only_text_file(options.files));
  const std::shared_ptr<Device> device = open_device(options.common);
  Classifier classifier(device, std::move(model), options.load());
  std::vector<ClassifierInput> inputs;
  for (const std::string& line : lines) inputs.push_back(input_of(line, options.pair));
  std::atomic<bool> cancel{false};
  const InterruptWatch watch(cancel);
  Progress progress("classify", inputs.size());
  const std::vector<Classification> found =
      classifier.classify(inputs, {.truncate = !options.whole,
                                   .progress = [&](size_t done, size_t) { progress.update(done); },
                                   .cancel = &cancel});
  progress.finish();
  const std::vector<std::string>& labels = classifier.labels();
  Output output("");
  for (size_t i = 0; i < found.size() && !cancel; ++i) {
    const std::vector<float>& probabilities = found[i].probabilities;
    if (options.common.json) {
      nlohmann::json shares = nlohmann::json::object();
      for (size_t k = 0; k < labels.size(); ++k) shares[labels[k]] = probabilities[k];
      nlohmann::json object = {{"text", inputs[i].text},
                               {"label", labels[found[i].best]},
                               {"probabilities", std::move(shares)},
                               {"logits", found[i].logits},
                               {"tokens", found[i].tokens},
                               {"truncated", found[i].truncated}};
      if (inputs[i].pair) object["pair"] = *inputs[i].pair;
      output.line(json_line(object));
      continue;
    }
    std::string line;
    for (const size_t k : best_first(probabilities))
      line += fmt::format("{}{} {:.4f}", line.empty() ? "" : "\t", labels[k], probabilities[k]);
    output.line(line);
  }
  output.flush();
  report(options, classifier.statistics(), classifier.max_tokens());
  return finish(*device, options.common, cancel ? kInterrupted : kSuccess);
}

int run_classify(const ClassifyArguments& options) {
  const std::shared_ptr<const OpenModel> model = open_model(options.model);
  if (!reads_images(*model)) {
    if (!options.attention.empty())
      throw ModelError("--attention", "lays maps over images, and this model reads texts",
                       "leave it out");
    return classify_lines(options, model);
  }
  const TextOption text_options[] = {{"--pair", !options.pair.empty()},
                                     {"--no-truncate", options.whole}};
  refuse_text_options(text_options);
  return classify_images({options, options.files, options.attention}, model);
}

}  // namespace

void add_classify(Command& app, int& code) {
  const auto options = std::make_shared<ClassifyArguments>();
  Command command =
      app.add_subcommand("classify", "Label lines of text, pairs of texts, or images");
  add_encoder_options(command, *options);
  command.add_option("FILE", options->files,
                     "a text a line, or two with a tab between them (default, and -: standard "
                     "input), or images");
  command.add_option("--pair", options->pair, "the second text of every pair; lines are the first")
      .type_name("TEXT");
  command.add_flag("--no-truncate", options->whole,
                   "refuse texts longer than the model takes, which are cut otherwise");
  add_image_attention(command, options->attention);
  add_common_options(command, options->common);
  command.footer(
      "Prints the labels of each line (of an image the first five), the most probable first, each "
      "with its probability. Those "
      "of a model\n"
      "with several labels are each of its own, and do not add up to 1.\n\n"
      "Example: mulciber classify -m tests/data/roberta_cls reviews.txt\n"
      "         mulciber classify -m assets/vit-digits digit.png --attention map.html");
  command.callback([options, &code] { code = run_classify(*options); });
}

}  // namespace mulciber::apps
