// `mulciber read`: writes the text of an image.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "apps/cli/interrupt_watch.h"
#include "apps/cli/lines.h"
#include "apps/images/images.h"
#include "base/clock.h"
#include "checkpoints/json.h"
#include "mulciber/image_text_reader.h"

namespace mulciber::apps {
namespace {

struct ReadArguments : EncoderArguments {
  std::vector<std::string> files;
  std::string attention;
  uint32_t beams = 1;
};

NamedAttention attention_of(const std::string& file, ImageText text) {
  ImageAttention attention;
  attention.layers = text.layers;
  attention.heads = text.heads;
  attention.rows = text.rows;
  attention.columns = text.columns;
  attention.maps = std::move(text.maps);
  attention.seen = std::move(text.seen);
  return {file, std::move(attention), std::move(text.tokens)};
}

int run_read(const ReadArguments& options) {
  const std::shared_ptr<Device> device = open_device(options.common);
  ImageTextReader reader(device, options.model, options.load());
  std::atomic<bool> cancel{false};
  const InterruptWatch watch(cancel);
  Output output("");
  std::vector<NamedAttention> maps;
  const auto start = Clock::now();
  size_t done = 0;
  for_images("read", options.files, [&](size_t first, std::span<const Image> images) {
    std::vector<ImageText> found = reader.read(
        images,
        {.beams = options.beams, .attention = !options.attention.empty(), .cancel = &cancel});
    for (size_t i = 0; i < found.size() && found[i].complete; ++i, ++done) {
      const std::string& file = options.files[first + i];
      if (options.common.json)
        output.line(json_line({{"image", file},
                               {"picture", file},  // deprecated name

                               {"text", found[i].text},
                               {"ids", found[i].ids},
                               {"log_probability", found[i].log_probability}}));
      else
        output.line((options.files.size() > 1 ? file + "\t" : "") + found[i].text);
      if (!found[i].maps.empty()) maps.push_back(attention_of(file, std::move(found[i])));
    }
  });
  output.flush();
  if (!maps.empty()) write_attention_page(options.attention, options.model, maps);
  report(options, reader.statistics(), done, seconds_since(start));
  return finish(*device, options.common, interrupted() || cancel ? kInterrupted : kSuccess);
}

}  // namespace

void add_read(Command& app, int& code) {
  const auto options = std::make_shared<ReadArguments>();
  Command command = app.add_subcommand("read", "Read the text in an image");
  add_encoder_options(command, *options);
  command.add_option("FILE", options->files, "images (PNG, JPEG, WebP, PPM)").required();
  command.add_option("--beams", options->beams, "1: greedy search").shows_default().range(1, 32);
  command
      .add_option("--attention", options->attention,
                  "write a page here that shows which part of the image each character came from")
      .type_name("FILE");
  add_common_options(command, options->common);
  command.footer(
      "For models of a ViT or DeiT and TrOCR's decoder (vision-encoder-decoder).\n\n"
      "Example: mulciber read -m trocr-small-printed line.png --attention map.html");
  command.callback([options, &code] { code = run_read(*options); });
}

}  // namespace mulciber::apps
