#include "mulciber/image_encoder.h"

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "models/core/cpu_softmax.h"
#include "models/core/vocabulary_check.h"
#include "models/vision/image_encoder_impl.h"
#include "mulciber/error.h"
#include "runtime/public_devices.h"

namespace mulciber {
namespace {

/// Probabilities of labels: each by itself where several may hold, else a softmax over all.
std::vector<float> label_probabilities(std::span<const float> logits, bool several) {
  std::vector<float> result;
  if (!several) {
    const std::vector<double> shares = cpu_softmax(logits);
    return {shares.begin(), shares.end()};
  }
  for (const float logit : logits)
    result.push_back(static_cast<float>(1 / (1 + std::exp(-double{logit}))));
  return result;
}

uint32_t largest_of(std::span<const float> values) {
  return static_cast<uint32_t>(std::max_element(values.begin(), values.end()) - values.begin());
}

}  // namespace

// --- Vectors -------------------------------------------------------------------------------------

ImageEncoder::ImageEncoder(std::shared_ptr<Device> device, const std::string& folder,
                           const LoadOptions& options)
    : ImageEncoder(std::move(device), open_model(folder), options) {}

ImageEncoder::ImageEncoder(std::shared_ptr<Device> device, std::shared_ptr<const OpenModel> model,
                           const LoadOptions& options)
    : ImageEncoder(std::move(device), *model, options, nullptr) {}

ImageEncoder::ImageEncoder(std::shared_ptr<Device> device, const OpenModel& model,
                           const LoadOptions& options, std::shared_ptr<WeightsLoad> weights)
    : impl_(std::make_shared<Impl>()) {
  impl_->device = given(std::move(device), "ImageEncoder");
  impl_->load(model, options, Capability::kEncodeImages, std::move(weights));
}

ImageEncoder::~ImageEncoder() = default;
ImageEncoder::ImageEncoder(ImageEncoder&&) noexcept = default;
ImageEncoder& ImageEncoder::operator=(ImageEncoder&&) noexcept = default;

std::vector<ImageVector> ImageEncoder::embed(std::span<const Image> images,
                                             const ImageEmbedOptions& options) {
  impl_->begin(images.size());
  const auto start = Clock::now();
  std::vector<ImageVector> results(images.size());
  impl_->run(images, impl_->output(options.pooling), options.normalize, options.batch,
             [&](size_t index, std::vector<float> values, ImageSize) {
               results[index] = {std::move(values), true};
             });
  impl_->statistics.total_seconds = seconds_since(start);
  return results;
}

std::vector<ImageStates> ImageEncoder::states(std::span<const Image> images,
                                              const ImageBatchOptions& options) {
  impl_->begin(images.size());
  const auto start = Clock::now();
  const VisionTower& tower = impl_->config().tower;
  std::vector<ImageStates> results(images.size());
  impl_->run(images, ImageOutput::kStates, false, options,
             [&](size_t index, std::vector<float> values, ImageSize size) {
               const auto tokens = static_cast<uint32_t>(values.size() / tower.width);
               results[index] = {.values = std::move(values),
                                 .tokens = tokens,
                                 .width = tower.width,
                                 .rows = size.height / tower.patch,
                                 .columns = size.width / tower.patch,
                                 .complete = true};
             });
  impl_->statistics.total_seconds = seconds_since(start);
  return results;
}

ImageStates ImageEncoder::states(const Image& image, const ImageBatchOptions& options) {
  return std::move(states(std::span(&image, 1), options).front());
}

ImageVector ImageEncoder::embed(const Image& image, const ImageEmbedOptions& options) {
  return std::move(embed(std::span(&image, 1), options).front());
}

ImageAttention ImageEncoder::attention(const Image& image) { return impl_->attention(image); }

ImageExtents ImageEncoder::extents() const { return impl_->extents(); }
const ImageStatistics& ImageEncoder::statistics() const { return impl_->statistics; }
const std::shared_ptr<Device>& ImageEncoder::device() const { return impl_->device; }
uint64_t ImageEncoder::trim() { return impl_->trim(); }

// --- Labels --------------------------------------------------------------------------------------

struct ImageClassifier::Impl : ImageRunner {};

ImageClassifier::ImageClassifier(std::shared_ptr<Device> device, const std::string& folder,
                                 const LoadOptions& options)
    : ImageClassifier(std::move(device), open_model(folder), options) {}

ImageClassifier::ImageClassifier(std::shared_ptr<Device> device,
                                 std::shared_ptr<const OpenModel> model, const LoadOptions& options)
    : ImageClassifier(std::move(device), *model, options, nullptr) {}

ImageClassifier::ImageClassifier(std::shared_ptr<Device> device, const OpenModel& model,
                                 const LoadOptions& options, std::shared_ptr<WeightsLoad> weights)
    : impl_(std::make_unique<Impl>()) {
  impl_->device = given(std::move(device), "ImageClassifier");
  impl_->load(model, options, Capability::kClassifyImages, std::move(weights));
}

ImageClassifier::~ImageClassifier() = default;
ImageClassifier::ImageClassifier(ImageClassifier&&) noexcept = default;
ImageClassifier& ImageClassifier::operator=(ImageClassifier&&) noexcept = default;

std::vector<ImageLabels> ImageClassifier::classify(std::span<const Image> images,
                                                   const ImageBatchOptions& options) {
  impl_->begin(images.size());
  const auto start = Clock::now();
  std::vector<ImageLabels> results(images.size());
  impl_->run(images, ImageOutput::kLogits, false, options,
             [&](size_t index, std::vector<float> logits, ImageSize) {
               ImageLabels& result = results[index];
               result.probabilities = label_probabilities(logits, several_labels());
               result.best = largest_of(logits);
               result.logits = std::move(logits);
               result.complete = true;
             });
  impl_->statistics.total_seconds = seconds_since(start);
  return results;
}

ImageLabels ImageClassifier::classify(const Image& image, const ImageBatchOptions& options) {
  return std::move(classify(std::span(&image, 1), options).front());
}

ImageAttention ImageClassifier::attention(const Image& image) { return impl_->attention(image); }

const std::vector<std::string>& ImageClassifier::labels() const { return impl_->config().labels; }
bool ImageClassifier::several_labels() const { return impl_->config().several_labels; }
ImageExtents ImageClassifier::extents() const { return impl_->extents(); }
const ImageStatistics& ImageClassifier::statistics() const { return impl_->statistics; }
const std::shared_ptr<Device>& ImageClassifier::device() const { return impl_->device; }
uint64_t ImageClassifier::trim() { return impl_->trim(); }

// --- Texts that fit ------------------------------------------------------------------------------

struct ImageTextMatcher::Impl : ImageRunner {
  std::shared_ptr<const Tokenizer> tokenizer;
};

ImageTextMatcher::ImageTextMatcher(std::shared_ptr<Device> device, const std::string& folder,
                                   const LoadOptions& options)
    : ImageTextMatcher(std::move(device), open_model(folder), options) {}

ImageTextMatcher::ImageTextMatcher(std::shared_ptr<Device> device,
                                   std::shared_ptr<const OpenModel> model,
                                   const LoadOptions& options)
    : ImageTextMatcher(std::move(device), *model, options, nullptr) {}

ImageTextMatcher::ImageTextMatcher(std::shared_ptr<Device> device, const OpenModel& model,
                                   const LoadOptions& options, std::shared_ptr<WeightsLoad> weights)
    : impl_(std::make_unique<Impl>()) {
  impl_->device = given(std::move(device), "ImageTextMatcher");
  model.require(Capability::kMatch);
  impl_->tokenizer = model.tokenizer();
  check_vocabulary(*impl_->tokenizer, model.architecture().vision()->texts->vocabulary,
                   model.checkpoint().path().string());
  impl_->load(model, options, Capability::kMatch, std::move(weights));
}

ImageTextMatcher::~ImageTextMatcher() = default;
ImageTextMatcher::ImageTextMatcher(ImageTextMatcher&&) noexcept = default;
ImageTextMatcher& ImageTextMatcher::operator=(ImageTextMatcher&&) noexcept = default;

std::vector<std::vector<float>> ImageTextMatcher::embed_texts(std::span<const std::string> texts) {
  std::vector<std::vector<uint32_t>> all;
  for (const std::string& text : texts) {
    const std::vector<int32_t> ids = impl_->tokenizer->encode(text, {.parse_special = false});
    all.emplace_back(ids.begin(), ids.end());
  }
  constexpr size_t kMostTexts = 64;
  std::vector<std::vector<float>> vectors;
  for (size_t first = 0; first < all.size(); first += kMostTexts) {
    const size_t count = std::min(kMostTexts, all.size() - first);
    EncoderResult found = impl_->seeing->read(std::span(all).subspan(first, count));
    impl_->statistics.prepare_seconds += found.prepare_seconds;
    impl_->statistics.run_seconds += found.run_seconds;
    for (std::vector<float>& values : found.values) vectors.push_back(std::move(values));
  }
  return vectors;
}

std::vector<ImageVector> ImageTextMatcher::embed_images(std::span<const Image> images,
                                                        const ImageBatchOptions& options) {
  impl_->begin(images.size());
  const auto start = Clock::now();
  std::vector<ImageVector> results(images.size());
  impl_->run(images, ImageOutput::kProjected, true, options,
             [&](size_t index, std::vector<float> values, ImageSize) {
               results[index] = {std::move(values), true};
             });
  impl_->statistics.total_seconds = seconds_since(start);
  return results;
}

std::vector<ImageMatch> ImageTextMatcher::match(std::span<const Image> images,
                                                std::span<const std::string> texts,
                                                const ImageBatchOptions& options) {
  if (texts.empty()) throw ModelError("texts", "are none", "give one or more");
  impl_->begin(images.size());
  const auto start = Clock::now();
  const std::vector<std::vector<float>> of_texts = embed_texts(texts);
  std::vector<ImageMatch> results(images.size());
  impl_->run(images, ImageOutput::kProjected, true, options,
             [&](size_t index, const std::vector<float>& image, ImageSize) {
               ImageMatch& result = results[index];
               for (const std::vector<float>& text : of_texts) {
                 double cosine = 0;
                 for (size_t i = 0; i < image.size(); ++i) cosine += double{image[i]} * text[i];
                 result.logits.push_back(static_cast<float>(cosine * impl_->seeing->logit_scale() +
                                                            impl_->seeing->logit_bias()));
               }
               result.probabilities = label_probabilities(result.logits, !probabilities_add_up());
               result.best = largest_of(result.logits);
               result.complete = true;
             });
  impl_->statistics.total_seconds = seconds_since(start);
  return results;
}

bool ImageTextMatcher::probabilities_add_up() const { return !impl_->config().logit_bias; }
ImageExtents ImageTextMatcher::extents() const { return impl_->extents(); }
const ImageStatistics& ImageTextMatcher::statistics() const { return impl_->statistics; }
const std::shared_ptr<Device>& ImageTextMatcher::device() const { return impl_->device; }
uint64_t ImageTextMatcher::trim() { return impl_->trim(); }

}  // namespace mulciber
