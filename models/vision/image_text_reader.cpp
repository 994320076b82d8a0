#include "mulciber/image_text_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/clock.h"
#include "images/processor.h"
#include "models/adapters/adapters.h"
#include "models/core/model_options.h"
#include "models/core/trim_memory.h"
#include "models/core/vocabulary_check.h"
#include "models/families/open_model.h"
#include "models/generation/decoding.h"
#include "models/speech/speech_search.h"
#include "models/vision/image_text_reader_model.h"
#include "mulciber/error.h"
#include "runtime/public_devices.h"
#include "text/token_stream.h"

namespace mulciber {

namespace {

/// Masks what generation_config.json forbids behind a text: ends that come too early, sequences of
/// ids, and repeated n-grams. The start token counts as a token, and an id that ends a text is
/// never forbidden alone.
void apply_rules(const ImageTextReaderConfig& config, std::span<float> logits,
                 std::span<const uint32_t> text) {
  const GenerationConfig& rules = config.generation;
  const auto forbid = [&](int64_t id) {
    logits[static_cast<size_t>(id)] = -std::numeric_limits<float>::infinity();
  };
  std::vector<int64_t> ids = {config.start};
  ids.insert(ids.end(), text.begin(), text.end());
  if (std::cmp_less(ids.size(), rules.min_length)) std::ranges::for_each(rules.eos, forbid);
  for (const std::vector<int32_t>& word : rules.bad_words_ids) {
    if (word.size() == 1 && std::ranges::count(rules.eos, word.front()) > 0) continue;
    if (word.size() <= ids.size() + 1 && std::equal(word.rbegin() + 1, word.rend(), ids.rbegin()))
      forbid(word.back());
  }
  const auto ngram = static_cast<size_t>(rules.no_repeat_ngram_size);
  for (size_t at = 0; ngram > 0 && at + ngram <= ids.size(); ++at) {
    const auto first = ids.begin() + static_cast<std::ptrdiff_t>(at);
    const auto last = first + static_cast<std::ptrdiff_t>(ngram - 1);
    if (std::equal(first, last, ids.end() - (last - first))) forbid(*last);
  }
}

}  // namespace

struct ImageTextReader::Impl {
  std::shared_ptr<Device> device;
  std::unique_ptr<Model> model;
  ImageTextReaderModel* reader = nullptr;
  std::shared_ptr<const Tokenizer> tokenizer;
  ImageProcessor processor;
  ImageStatistics statistics;

  void load(const OpenModel& opened, const LoadOptions& options,
            std::shared_ptr<WeightsLoad> weights) {
    const auto start = Clock::now();
    opened.require(Capability::kReadImageText);
    const std::string where = opened.checkpoint().path().string();
    tokenizer = opened.tokenizer();
    check_vocabulary(*tokenizer, opened.architecture().extents().vocabulary, where);
    processor = read_image_processor(opened.checkpoint().files(), opened.checkpoint().folder());
    ModelOptions loading = model_options(options);
    loading.weights = std::move(weights);
    model = load_model(*device, opened, loading);
    reader = model->reads();
    if (const uint32_t channels = reader->config().vision.tower.channels; channels != 3)
      throw ModelError(where, fmt::format("reads images of {} channels", channels),
                       "images have red, green and blue");
    statistics.weight_bytes = model->weight_bytes();
    statistics.load_seconds = seconds_since(start);
  }

  ImageText read(const Image& image, const ImageReadOptions& options) {
    if (image.rgb.size() != uint64_t{image.width} * image.height * 3)
      throw ModelError("image",
                       fmt::format("has {} bytes, {} by {} pixels have three each",
                                   image.rgb.size(), image.width, image.height),
                       "");
    auto clock = Clock::now();
    Image seen = processor(image);
    statistics.resize_seconds += seconds_since(clock);
    clock = Clock::now();
    const ImageTextReaderConfig& config = reader->config();
    reader->see(pixel_words(seen), {processor.scale, processor.shift});
    SpeechSearchSettings settings;
    settings.beams = options.beams;
    settings.max_tokens = options.max_tokens > 0 ? options.max_tokens : config.context;
    settings.ends.assign(config.generation.eos.begin(), config.generation.eos.end());
    settings.rules = [&config](std::span<float> logits, std::span<const uint32_t> text) {
      apply_rules(config, logits, text);
    };
    settings.cancel = options.cancel;
    const uint32_t start = config.start;
    const SpeechText found = search_speech(reader->texts(), {&start, 1}, settings);
    ImageText result;
    if (found.cancelled) return result;
    result.ids = found.ids;
    const std::vector<int32_t> ids(found.ids.begin(), found.ids.end());
    result.text = written_text(*tokenizer, ids);
    for (const int32_t& id : ids) result.tokens.push_back(written_text(*tokenizer, {&id, 1}));
    result.log_probability = found.mean_log_probability();
    if (options.attention) add_maps(result, start);
    if (options.attention) result.seen = std::move(seen);
    result.complete = true;
    statistics.run_seconds += seconds_since(clock);
    return result;
  }

  /// Row i belongs to the step that chose token i, which was fed the token before it.
  void add_maps(ImageText& result, uint32_t start) {
    const VisionTower& tower = reader->config().vision.tower;
    result.layers = reader->config().layers;
    result.heads = reader->config().heads;
    result.rows = tower.patches_down();
    result.columns = tower.patches_across();
    if (result.ids.empty()) return;
    std::vector<uint32_t> fed = {start};
    fed.insert(fed.end(), result.ids.begin(), result.ids.end() - 1);
    const std::vector<float> maps = reader->texts().cross_attention(fed);
    const size_t tokens = tower.tokens(), first = tower.first_tokens.size();
    for (size_t i = 0; i < maps.size(); i += tokens)
      result.maps.insert(result.maps.end(), maps.begin() + static_cast<std::ptrdiff_t>(i + first),
                         maps.begin() + static_cast<std::ptrdiff_t>(i + tokens));
  }
};

ImageTextReader::ImageTextReader(std::shared_ptr<Device> device, const std::string& folder,
                                 const LoadOptions& options)
    : ImageTextReader(std::move(device), open_model(folder), options) {}

ImageTextReader::ImageTextReader(std::shared_ptr<Device> device,
                                 std::shared_ptr<const OpenModel> model, const LoadOptions& options)
    : ImageTextReader(std::move(device), *model, options, nullptr) {}

ImageTextReader::ImageTextReader(std::shared_ptr<Device> device, const OpenModel& model,
                                 const LoadOptions& options, std::shared_ptr<WeightsLoad> weights)
    : impl_(std::make_unique<Impl>()) {
  impl_->device = given(std::move(device), "ImageTextReader");
  impl_->load(model, options, std::move(weights));
}

ImageTextReader::~ImageTextReader() = default;
ImageTextReader::ImageTextReader(ImageTextReader&&) noexcept = default;
ImageTextReader& ImageTextReader::operator=(ImageTextReader&&) noexcept = default;

std::vector<ImageText> ImageTextReader::read(std::span<const Image> images,
                                             const ImageReadOptions& options) {
  if (options.beams == 0 || options.beams > kMaxBeams)
    throw ModelError("beams", fmt::format("are {}, not 1 to {}", options.beams, kMaxBeams), "");
  const auto start = Clock::now();
  ImageStatistics& statistics = impl_->statistics;
  statistics = {.load_seconds = statistics.load_seconds, .weight_bytes = statistics.weight_bytes};
  statistics.images = images.size();
  std::vector<ImageText> results(images.size());
  for (size_t i = 0; i < images.size(); ++i) {
    if (options.cancel && *options.cancel) break;
    results[i] = impl_->read(images[i], options);
    if (!results[i].complete) break;
    ++statistics.batches;
    if (options.progress) options.progress(i + 1, images.size());
  }
  statistics.total_seconds = seconds_since(start);
  statistics.peak_device_bytes = impl_->device->memory().peak();
  return results;
}

ImageText ImageTextReader::read(const Image& image, const ImageReadOptions& options) {
  return std::move(read(std::span(&image, 1), options).front());
}

const ImageStatistics& ImageTextReader::statistics() const { return impl_->statistics; }
const std::shared_ptr<Device>& ImageTextReader::device() const { return impl_->device; }

uint64_t ImageTextReader::trim() {
  return trim_memory(*impl_->device, [&] { impl_->reader->trim(); });
}

}  // namespace mulciber
