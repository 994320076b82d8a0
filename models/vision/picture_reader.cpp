#include "mulciber/picture_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/clock.h"
#include "images/processor.h"
#include "models/adapters/adapters.h"
#include "models/core/model_options.h"
#include "models/core/vocabulary_check.h"
#include "models/families/open_model.h"
#include "models/generation/decoding.h"
#include "models/speech/speech_search.h"
#include "models/vision/picture_reader_model.h"
#include "mulciber/error.h"
#include "runtime/public_devices.h"
#include "text/token_stream.h"

namespace mulciber {

namespace {

/// Masks what generation_config.json forbids behind a text: ends that come too early, sequences of
/// ids, and repeated n-grams. The start token counts as a token, and an id that ends a text is
/// never forbidden alone.
void apply_rules(const PictureReaderConfig& config, std::span<float> logits,
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

struct PictureReader::Impl {
  std::shared_ptr<Device> device;
  std::unique_ptr<Model> model;
  PictureReaderModel* reader = nullptr;
  std::shared_ptr<const Tokenizer> tokenizer;
  PictureProcessor processor;
  PictureStatistics statistics;

  void load(const OpenModel& opened, const LoadOptions& options) {
    const auto start = Clock::now();
    opened.require(Capability::kReadPictures);
    const std::string where = opened.checkpoint().path().string();
    tokenizer = opened.tokenizer();
    check_vocabulary(*tokenizer, opened.architecture().extents().vocabulary, where);
    processor = read_picture_processor(opened.checkpoint().files(), opened.checkpoint().folder());
    model = load_model(*device, opened, model_options(options));
    reader = model->reads();
    if (const uint32_t channels = reader->config().vision.pictures.channels; channels != 3)
      throw ModelError(where, fmt::format("reads pictures of {} channels", channels),
                       "pictures have red, green and blue");
    statistics.weight_bytes = model->weight_bytes();
    statistics.load_seconds = seconds_since(start);
  }

  PictureText read(const Picture& picture, const PictureReadOptions& options) {
    if (picture.rgb.size() != uint64_t{picture.width} * picture.height * 3)
      throw ModelError("picture",
                       fmt::format("has {} bytes, {} by {} pixels have three each",
                                   picture.rgb.size(), picture.width, picture.height),
                       "");
    auto clock = Clock::now();
    Picture seen = processor(picture);
    statistics.resize_seconds += seconds_since(clock);
    clock = Clock::now();
    const PictureReaderConfig& config = reader->config();
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
    PictureText result;
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
  void add_maps(PictureText& result, uint32_t start) {
    const PictureTower& tower = reader->config().vision.pictures;
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

PictureReader::PictureReader(std::shared_ptr<Device> device, const std::string& folder,
                             const LoadOptions& options)
    : PictureReader(std::move(device), open_model(folder), options) {}

PictureReader::PictureReader(std::shared_ptr<Device> device, std::shared_ptr<const OpenModel> model,
                             const LoadOptions& options)
    : impl_(std::make_unique<Impl>()) {
  impl_->device = given(std::move(device), "PictureReader");
  impl_->load(*model, options);
}

PictureReader::~PictureReader() = default;
PictureReader::PictureReader(PictureReader&&) noexcept = default;
PictureReader& PictureReader::operator=(PictureReader&&) noexcept = default;

std::vector<PictureText> PictureReader::read(std::span<const Picture> pictures,
                                             const PictureReadOptions& options) {
  if (options.beams == 0 || options.beams > kMaxBeams)
    throw ModelError("beams", fmt::format("are {}, not 1 to {}", options.beams, kMaxBeams), "");
  const auto start = Clock::now();
  PictureStatistics& statistics = impl_->statistics;
  statistics = {.pictures = pictures.size(),
                .load_seconds = statistics.load_seconds,
                .weight_bytes = statistics.weight_bytes};
  std::vector<PictureText> results(pictures.size());
  for (size_t i = 0; i < pictures.size(); ++i) {
    if (options.cancel && *options.cancel) break;
    results[i] = impl_->read(pictures[i], options);
    if (!results[i].complete) break;
    ++statistics.batches;
    if (options.progress) options.progress(i + 1, pictures.size());
  }
  statistics.total_seconds = seconds_since(start);
  statistics.peak_device_bytes = impl_->device->memory().peak();
  return results;
}

PictureText PictureReader::read(const Picture& picture, const PictureReadOptions& options) {
  return std::move(read(std::span(&picture, 1), options).front());
}

const PictureStatistics& PictureReader::statistics() const { return impl_->statistics; }
const std::shared_ptr<Device>& PictureReader::device() const { return impl_->device; }

}  // namespace mulciber
