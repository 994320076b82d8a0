// `classify` and `embed` with a model that reads images; images.h declares them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "apps/cli/lines.h"
#include "apps/cli/npy.h"
#include "apps/images/images.h"
#include "base/clock.h"
#include "checkpoints/json.h"

namespace mulciber::apps {
namespace {

/// Collects the maps of every image for the page of --attention.
class AttentionPage {
 public:
  explicit AttentionPage(const ImageArguments& arguments) : arguments_(arguments) {}

  template <typename Encoder>
  void take(Encoder& encoder, size_t first, std::span<const Image> images) {
    if (arguments_.attention.empty()) return;
    for (size_t i = 0; i < images.size(); ++i)
      maps_.push_back({arguments_.files[first + i], encoder.attention(images[i])});
  }
  void write() const {
    if (!arguments_.attention.empty() && !maps_.empty())
      write_attention_page(arguments_.attention, arguments_.encoder.model, maps_);
  }

 private:
  const ImageArguments& arguments_;
  std::vector<NamedAttention> maps_;
};

}  // namespace

int classify_images(const ImageArguments& arguments, std::shared_ptr<const OpenModel> model) {
  const EncoderArguments& encoder = arguments.encoder;
  const std::shared_ptr<Device> device = open_device(encoder.common);
  ImageClassifier classifier(device, std::move(model), encoder.load());
  const std::vector<std::string>& labels = classifier.labels();
  // The top labels are printed: ImageNet has a thousand.
  constexpr size_t kMostLabels = 5;
  Output output("");
  AttentionPage page(arguments);
  const auto start = Clock::now();
  size_t done = 0;
  for_images("classify", arguments.files, [&](size_t first, std::span<const Image> images) {
    const std::vector<ImageLabels> found = classifier.classify(images);
    for (size_t i = 0; i < found.size(); ++i) {
      const std::string& file = arguments.files[first + i];
      const std::vector<float>& probabilities = found[i].probabilities;
      if (encoder.common.json) {
        nlohmann::json shares = nlohmann::json::object();
        for (size_t k = 0; k < labels.size(); ++k) shares[labels[k]] = probabilities[k];
        output.line(json_line({{"image", file},
                               {"picture", file},  // deprecated name
                               {"label", labels[found[i].best]},
                               {"probabilities", std::move(shares)},
                               {"logits", found[i].logits}}));
        continue;
      }
      std::string line = arguments.files.size() > 1 ? file : "";
      std::vector<size_t> order = best_first(probabilities);
      order.resize(std::min(order.size(), kMostLabels));
      for (const size_t k : order)
        line += fmt::format("{}{} {:.4f}", line.empty() ? "" : "\t", labels[k], probabilities[k]);
      output.line(line);
    }
    page.take(classifier, first, images);
    done += found.size();
  });
  output.flush();
  page.write();
  report(encoder, classifier.statistics(), done, seconds_since(start));
  return finish(*device, encoder.common, interrupted() ? kInterrupted : kSuccess);
}

int embed_images(const ImageEmbedArguments& arguments, std::shared_ptr<const OpenModel> model) {
  const EncoderArguments& encoder = arguments.encoder;
  const std::shared_ptr<Device> device = open_device(encoder.common);
  ImageEncoder embedder(device, std::move(model), encoder.load());
  ImageEmbedOptions options;
  options.normalize = arguments.normalize;
  if (arguments.mean) options.pooling = ImagePoolingChoice::kMean;
  Output output("");
  AttentionPage page(arguments);
  std::vector<std::vector<float>> vectors;  // for --npy
  const auto start = Clock::now();
  size_t done = 0;
  for_images("embed", arguments.files, [&](size_t first, std::span<const Image> images) {
    std::vector<ImageVector> found = embedder.embed(images, options);
    for (size_t i = 0; i < found.size(); ++i) {
      if (!arguments.npy.empty()) {
        vectors.push_back(std::move(found[i].values));
        continue;
      }
      // Numbers have as many digits as identify the float.
      const std::string& file = arguments.files[first + i];
      std::string object = json_line({{"image", file}, {"picture", file}});
      object.pop_back();
      output.line(fmt::format("{},\"vector\":[{}]}}", object, fmt::join(found[i].values, ",")));
    }
    page.take(embedder, first, images);
    done += found.size();
  });
  output.flush();
  if (!arguments.npy.empty() && !interrupted())
    write_npy(arguments.npy, vectors, vectors.front().size());
  page.write();
  report(encoder, embedder.statistics(), done, seconds_since(start));
  return finish(*device, encoder.common, interrupted() ? kInterrupted : kSuccess);
}

}  // namespace mulciber::apps
