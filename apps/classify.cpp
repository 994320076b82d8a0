// `mulciber classify`: lines to labels.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <nlohmann/json.hpp>
#include <numeric>

#include "apps/interrupt_watch.h"
#include "apps/progress.h"
#include "apps/text_lines.h"
#include "apps/translate/lines.h"

namespace mulciber::apps {
namespace {

struct ClassifyArguments : EncoderArguments {
  std::string file, pair;
  bool whole = false;
};

/// A line is a text, or two with a tab between them; with `pair` that is the second of each.
ClassifierInput input_of(const std::string& line, const std::string& pair) {
  if (!pair.empty()) return {line, pair};
  const size_t tab = line.find('\t');
  if (tab == std::string::npos) return {line, std::nullopt};
  return {line.substr(0, tab), line.substr(tab + 1)};
}

int run_classify(const ClassifyArguments& options) {
  const std::vector<std::string> lines = read_lines(options.file);
  const std::shared_ptr<Device> device = open_device(options.common);
  Classifier classifier(device, options.model, options.load());
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
      output.line(object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
      continue;
    }
    std::vector<size_t> order(labels.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return probabilities[a] > probabilities[b]; });
    std::string line;
    for (const size_t k : order)
      line += fmt::format("{}{} {:.4f}", line.empty() ? "" : "\t", labels[k], probabilities[k]);
    output.line(line);
  }
  output.flush();
  report(options, classifier.statistics(), classifier.max_tokens());
  return finish(*device, options.common, cancel ? kInterrupted : kSuccess);
}

}  // namespace

void add_classify(Command& app, int& code) {
  const auto options = std::make_shared<ClassifyArguments>();
  Command command = app.add_subcommand("classify", "Label lines of text, or pairs of texts");
  add_encoder_options(command, *options);
  command.add_option("FILE", options->file,
                     "a text a line, or two with a tab between them (default, and -: standard "
                     "input)");
  command.add_option("--pair", options->pair, "the second text of every pair; lines are the first")
      .type_name("TEXT");
  command.add_flag("--no-truncate", options->whole,
                   "refuse texts longer than the model takes, which are cut otherwise");
  add_common_options(command, options->common);
  command.footer(
      "Prints the labels of each line, the most probable first, each with its probability. Those "
      "of a model\n"
      "with several labels are each of its own, and do not add up to 1.\n\n"
      "Example: mulciber classify -m tests/data/roberta_cls reviews.txt");
  command.callback([options, &code] { code = run_classify(*options); });
}

}  // namespace mulciber::apps
