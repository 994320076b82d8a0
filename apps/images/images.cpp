#include "apps/images/images.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "apps/cli/base64.h"
#include "apps/cli/progress.h"
#include "apps/cli/standard_error.h"
#include "apps/cli/whole_file.h"
#include "base/html_template.h"
#include "checkpoints/json.h"
#include "mulciber/error.h"

namespace mulciber::apps {
namespace {

const char* const kImagePage =
#include "images/page/page.html.inc"
    ;
const char* const kImageStyle =
#include "images/page/page.css.inc"
    ;
const char* const kImageScript =
#include "images/page/page.js.inc"
    ;

}  // namespace

bool reads_images(const OpenModel& model) { return model.family().vision != nullptr; }

void for_images(const std::string& title, std::span<const std::string> files,
                const std::function<void(size_t first, std::span<const Image>)>& run) {
  if (files.empty())
    throw ModelError("FILE", "is missing: this model reads images", "give one or more of them");
  constexpr size_t kTogether = 16;
  Progress progress(title, files.size());
  for (size_t first = 0; first < files.size() && !interrupted(); first += kTogether) {
    std::vector<Image> images;
    for (const std::string& file : files.subspan(first, std::min(kTogether, files.size() - first)))
      images.push_back(read_image(file));
    run(first, images);
    progress.update(first + images.size());
  }
  progress.finish();
}

void refuse_text_options(std::span<const TextOption> options) {
  for (const TextOption& option : options)
    if (option.given)
      throw ModelError(option.name, "is about texts, and this model reads images", "leave it out");
}

void report(const EncoderArguments& arguments, const ImageStatistics& statistics, size_t images,
            double seconds) {
  if (!arguments.stats) return;
  tell(
      "images      {}, {:.1f} a second\n"
      "seconds     {:.3f} load; of the last batch {:.3f} resizing, {:.3f} programs, {:.3f} "
      "device\n"
      "memory      {:.1f} MiB weights, {:.1f} MiB predicted, {:.1f} MiB at most\n",
      images, seconds > 0 ? static_cast<double>(images) / seconds : 0.0, statistics.load_seconds,
      statistics.resize_seconds, statistics.prepare_seconds, statistics.run_seconds,
      static_cast<double>(statistics.weight_bytes) / 1048576,
      static_cast<double>(statistics.predicted_device_bytes) / 1048576,
      static_cast<double>(statistics.peak_device_bytes) / 1048576);
}

void add_image_attention(Command& command, std::string& page) {
  command
      .add_option("--attention", page, "write a page here that lays attention maps over the images")
      .type_name("FILE");
}

void write_attention_page(const std::string& path, const std::string& model,
                          std::span<const NamedAttention> images) {
  nlohmann::json data = {{"model", model}, {"images", nlohmann::json::array()}};
  for (const NamedAttention& image : images) {
    const ImageAttention& attention = image.attention;
    data["images"].push_back({{"name", image.name},
                              {"width", attention.seen.width},
                              {"height", attention.seen.height},
                              {"rgb", base64(std::as_bytes(std::span(attention.seen.rgb)))},
                              {"rows", attention.rows},
                              {"columns", attention.columns},
                              {"layers", attention.layers},
                              {"heads", attention.heads},
                              {"tokens", image.tokens},
                              {"maps", base64(std::as_bytes(std::span(attention.maps)))},
                              {"rollout", base64(std::as_bytes(std::span(attention.rollout)))}});
  }
  const TemplateText texts[] = {
      {"STYLE", kImageStyle}, {"SCRIPT", kImageScript}, {"DATA", json_for_script(json_line(data))}};
  write_whole_file(path, fill_template(kImagePage, texts));
}

}  // namespace mulciber::apps
