// `mulciber match`: finds the text that fits an image.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "apps/cli/lines.h"
#include "apps/images/images.h"
#include "base/clock.h"
#include "checkpoints/json.h"

namespace mulciber::apps {
namespace {

struct MatchArguments : EncoderArguments {
  std::vector<std::string> files, labels;
  std::string form = "This is a photo of {}.";
};

/// The form with a label in place of {}.
std::string text_of_label(const std::string& form, const std::string& label) {
  const size_t place = form.find("{}");
  if (place == std::string::npos)
    throw ModelError("--template", "has no {} where a label stands", "write \"a photo of {}\"");
  return form.substr(0, place) + label + form.substr(place + 2);
}

int run_match(const MatchArguments& options) {
  std::vector<std::string> texts;
  for (const std::string& label : options.labels)
    texts.push_back(text_of_label(options.form, label));
  const std::shared_ptr<Device> device = open_device(options.common);
  ImageTextMatcher matcher(device, options.model, options.load());
  Output output("");
  const auto start = Clock::now();
  size_t done = 0;
  for_images("match", options.files, [&](size_t first, std::span<const Image> images) {
    const std::vector<ImageMatch> found = matcher.match(images, texts);
    for (size_t i = 0; i < found.size(); ++i) {
      const std::string& file = options.files[first + i];
      const std::vector<float>& probabilities = found[i].probabilities;
      if (options.common.json) {
        nlohmann::json shares = nlohmann::json::object();
        for (size_t k = 0; k < texts.size(); ++k) shares[options.labels[k]] = probabilities[k];
        output.line(json_line({{"image", file},
                               {"picture", file},  // deprecated name

                               {"label", options.labels[found[i].best]},
                               {"probabilities", std::move(shares)},
                               {"logits", found[i].logits}}));
        continue;
      }
      std::string line = options.files.size() > 1 ? file : "";
      for (const size_t k : best_first(probabilities))
        line += fmt::format("{}{} {:.4f}", line.empty() ? "" : "\t", options.labels[k],
                            probabilities[k]);
      output.line(line);
    }
    done += found.size();
  });
  output.flush();
  report(options, matcher.statistics(), done, seconds_since(start));
  return finish(*device, options.common, interrupted() ? kInterrupted : kSuccess);
}

}  // namespace

void add_match(Command& app, int& code) {
  const auto options = std::make_shared<MatchArguments>();
  Command command = app.add_subcommand("match", "Say which of some labels fits an image");
  add_encoder_options(command, *options);
  command.add_option("FILE", options->files, "images (PNG, JPEG, WebP, PPM)").required();
  command.add_option("--labels", options->labels, "what may be seen, with commas between")
      .required()
      .delimiter(',')
      .one_value_each()
      .type_name("TEXT,...");
  command
      .add_option("--template", options->form, "the text that a label is put into, in place of {}")
      .shows_default()
      .type_name("TEXT");
  add_common_options(command, options->common);
  command.footer(
      "For models of images and texts in one space (CLIP, SigLIP). Prints the labels of each "
      "image, the most\n"
      "probable first. Those of CLIP add up to 1; those of SigLIP are each of its own.\n\n"
      "Example: mulciber match -m clip-vit-base-patch32 --labels \"a dog,a cat\" image.jpg");
  command.callback([options, &code] { code = run_match(*options); });
}

}  // namespace mulciber::apps
