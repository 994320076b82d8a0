#include "apps/transcribe/attention_page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "apps/cli/base64.h"
#include "apps/cli/whole_file.h"
#include "base/html_template.h"
#include "checkpoints/json.h"
#include "mulciber/error.h"

namespace mulciber::apps {
namespace {

const char* const kSoundPage =
#include "transcribe/page/page.html.inc"
    ;
const char* const kSoundStyle =
#include "transcribe/page/page.css.inc"
    ;
const char* const kSoundScript =
#include "transcribe/page/page.js.inc"
    ;

/// Values scaled to 0 to 255 between two bounds.
std::vector<std::byte> bytes_between(std::span<const float> values, float least, float most) {
  std::vector<std::byte> bytes;
  const float range = most > least ? most - least : 1;
  for (const float value : values)
    bytes.push_back(static_cast<std::byte>(std::lround(255 * (value - least) / range)));
  return bytes;
}

}  // namespace

void SpokenAttentionPage::add(const SpokenAttention& attention) {
  std::vector<std::byte> weights;
  std::vector<double> largest;
  for (size_t i = 0; i < attention.weights.size(); i += attention.positions) {
    const auto row = std::span(attention.weights).subspan(i, attention.positions);
    const float most = *std::max_element(row.begin(), row.end());
    largest.push_back(std::round(most * 1e5) / 1e5);
    const std::vector<std::byte> bytes = bytes_between(row, 0, most);
    weights.insert(weights.end(), bytes.begin(), bytes.end());
  }
  const auto [least, most] =
      std::minmax_element(attention.features.begin(), attention.features.end());
  windows_.push_back(
      json_line({{"start", attention.start},
                 {"seconds", attention.seconds},
                 {"tokens", attention.tokens},
                 {"maps", attention.maps},
                 {"positions", attention.positions},
                 {"positionSeconds", attention.position_seconds},
                 {"weights", base64(weights)},
                 {"largest", largest},
                 {"mels", attention.mels},
                 {"frames", attention.features.size() / attention.mels},
                 {"sound", base64(bytes_between(attention.features, *least, *most))}}));
}

void SpokenAttentionPage::write(const std::string& path) const {
  const std::string data =
      fmt::format(R"({{"model":{},"sound":{},"windows":[{}]}})", json_line(model_),
                  json_line(sound_), fmt::join(windows_, ",\n"));
  const TemplateText texts[] = {
      {"STYLE", kSoundStyle}, {"SCRIPT", kSoundScript}, {"DATA", json_for_script(data)}};
  write_whole_file(path, fill_template(kSoundPage, texts));
}

}  // namespace mulciber::apps
