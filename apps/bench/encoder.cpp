#include "apps/bench/encoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "apps/cli/language_model.h"
#include "apps/cli/peaks.h"
#include "base/clock.h"
#include "models/core/batching.h"
#include "models/core/encoding_model.h"
#include "models/families/encoder_config.h"
#include "runtime/profiler.h"

namespace mulciber::apps {
namespace {

constexpr uint32_t kShortestText = 8, kLongestText = 256;
constexpr size_t kTexts = 64;
constexpr uint32_t kBatchTokens = 2048;

using Batches = std::vector<std::vector<size_t>>;

/// Texts of lengths all over the range between the bounds; neighbours differ in length.
std::vector<EncoderInput> texts_of(const EncoderConfig& config) {
  const uint32_t longest = std::min(kLongestText, config.context);
  const uint32_t shortest = std::min(kShortestText, longest);
  std::vector<EncoderInput> texts(kTexts);
  for (size_t i = 0; i < kTexts; ++i) {
    const size_t place = i * 37 % kTexts;  // 37 and 64 have no common divisor
    const auto length =
        shortest + static_cast<uint32_t>((longest - shortest) * place / (kTexts - 1));
    // The time does not depend on the ids, so any will do.
    for (uint32_t k = 0; k < length; ++k)
      texts[i].ids.push_back((k * 7919 + 13) % config.vocabulary);
  }
  return texts;
}

/// Batches in the order of the texts: as many texts as stay within the bound when padded to the
/// longest of them.
Batches batches_in_order(std::span<const EncoderInput> texts) {
  Batches batches;
  size_t longest = 0;
  for (size_t i = 0; i < texts.size(); ++i) {
    const size_t length = std::max(longest, texts[i].ids.size());
    const bool fits =
        !batches.empty() && (batches.back().size() + 1) * length <= size_t{kBatchTokens};
    if (!fits) batches.emplace_back();
    longest = fits ? length : texts[i].ids.size();
    batches.back().push_back(i);
  }
  return batches;
}

Batches sorted_batches(std::span<const EncoderInput> texts) {
  std::vector<uint32_t> lengths;
  for (const EncoderInput& text : texts) lengths.push_back(static_cast<uint32_t>(text.ids.size()));
  return plan_batches(lengths, {.tokens = kBatchTokens, .sequences = kTexts, .limit = {}});
}

size_t token_count(std::span<const EncoderInput> texts) {
  size_t tokens = 0;
  for (const EncoderInput& text : texts) tokens += text.ids.size();
  return tokens;
}

struct Encoded {
  double seconds = 0;
  double padding = 0;  // share of padding among the computed tokens
};

Encoded encode(EncodingModel& model, std::span<const EncoderInput> texts, const Batches& batches) {
  const auto start = Clock::now();
  uint64_t computed = 0;
  for (const std::vector<size_t>& batch : batches) {
    std::vector<EncoderInput> together;
    for (const size_t i : batch) together.push_back(texts[i]);
    computed += model.encode({together, EncoderOutput::kMean, false}).computed_tokens;
  }
  return {seconds_since(start),
          1 - static_cast<double>(token_count(texts)) / static_cast<double>(computed)};
}

}  // namespace

int bench_encoder(const ModelBench& options, const OpenModel& opened) {
  const ModelOptions load = {.activations =
                                 options.half_activations ? DataType::kF16 : DataType::kF32};
  std::shared_ptr<Device> device = open_device(options.common, kTestEveryRow);
  const Peaks peaks = measure_peaks(*device);
  std::vector<double> mixed, sorted;  // tokens per second
  double mixed_padding = 0, sorted_padding = 0;
  uint64_t weight_bytes = 0;
  std::string family;
  {
    const std::unique_ptr<Model> model = load_model(*device, opened, load);
    EncodingModel& encoder = *model->encodes_text();
    family = model->family();
    weight_bytes = model->weight_bytes();
    const std::vector<EncoderInput> texts = texts_of(encoder.config());
    const Batches in_order = batches_in_order(texts), by_length = sorted_batches(texts);
    const auto tokens = token_count(texts);
    // These runs warm up pipelines, programs and the driver's compiler.
    mixed_padding = encode(encoder, texts, in_order).padding;
    sorted_padding = encode(encoder, texts, by_length).padding;
    for (uint32_t i = 0; i < options.repeats; ++i) {
      mixed.push_back(per_second(tokens, encode(encoder, texts, in_order).seconds));
      sorted.push_back(per_second(tokens, encode(encoder, texts, by_length).seconds));
      if (interrupted()) return kInterrupted;
    }
  }

  DeviceOptions profiled = options.common.device_options;
  profiled.profile = true;
  std::shared_ptr<Device> timed = Device::open(profiled);
  const std::unique_ptr<Model> model = load_model(*timed, opened, load);
  EncodingModel& encoder = *model->encodes_text();
  const std::vector<EncoderInput> texts = texts_of(encoder.config());
  encode(encoder, texts, sorted_batches(texts));
  timed->profiler()->clear();
  encode(encoder, texts, sorted_batches(texts));

  if (options.common.json) {
    fmt::print("{}\n", nlohmann::json{{"device", device->capabilities().name},
                                      {"driver", device->capabilities().driver_info},
                                      {"family", family},
                                      {"texts", kTexts},
                                      {"tokens", token_count(texts)},
                                      {"mixed_tps", median(mixed)},
                                      {"mixed_padding", mixed_padding},
                                      {"sorted_tps", median(sorted)},
                                      {"sorted_padding", sorted_padding},
                                      {"weight_bytes", weight_bytes},
                                      {"kernels", kernel_rows(*timed->profiler(), peaks)}}
                           .dump(2));
    return kSuccess;
  }
  print_kernels(*timed, peaks);
  fmt::print("texts             {} of {} to {} tokens, {} in all\n", kTexts,
             std::min(kShortestText, encoder.config().context),
             std::min(kLongestText, encoder.config().context), token_count(texts));
  fmt::print("as they come      {:.0f} tokens/s, {:.0f} % of what is computed is padding\n",
             median(mixed), 100 * mixed_padding);
  fmt::print("sorted            {:.0f} tokens/s, {:.0f} %\n", median(sorted), 100 * sorted_padding);
  return finish(*device, options.common, kSuccess);
}

}  // namespace mulciber::apps
