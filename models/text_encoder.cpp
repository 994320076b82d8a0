#include "mulciber/text_encoder.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include <fmt/format.h>

#include "base/clock.h"
#include "models/encoder_runner.h"
#include "models/sentence_config.h"
#include "models/vector_cosines.h"
#include "mulciber/error.h"
#include "runtime/public_devices.h"

namespace mulciber {
namespace {

EncoderOutput output_of(Pooling pooling) {
  switch (pooling) {
    case Pooling::kMean: return EncoderOutput::kMean;
    case Pooling::kFirst: return EncoderOutput::kFirst;
    case Pooling::kPooler: return EncoderOutput::kPooler;
  }
  return EncoderOutput::kMean;
}

/// Inputs of a list of texts, cut where they are too long.
std::vector<EncoderInput> tokenized(EncoderRunner& runner, std::span<const ClassifierInput> texts,
                                    uint32_t most, bool truncate, std::vector<bool>& truncated) {
  const auto start = Clock::now();
  std::vector<EncoderInput> inputs;
  for (size_t i = 0; i < texts.size(); ++i) {
    TokenizedInput input =
        runner.tokenize(texts[i].text, texts[i].pair ? &*texts[i].pair : nullptr);
    runner.fit(input, most, truncate, fmt::format("text {} of {}", i + 1, texts.size()));
    truncated.push_back(input.truncated);
    runner.statistics.truncated += input.truncated ? 1 : 0;
    inputs.push_back(std::move(input.ids));
  }
  runner.statistics.tokenize_seconds = seconds_since(start);
  return inputs;
}

/// Probabilities of labels: each of its own, or shares of 1.
std::vector<float> probabilities_of(std::span<const float> logits, bool several) {
  std::vector<double> weights;
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) {
    weights.push_back(several ? 1 / (1 + std::exp(-double{logit})) : std::exp(logit - largest));
    sum += weights.back();
  }
  std::vector<float> probabilities;
  for (const double weight : weights)
    probabilities.push_back(static_cast<float>(several ? weight : weight / sum));
  return probabilities;
}

}  // namespace

// --- Vectors -------------------------------------------------------------------------------------

struct TextEncoder::Impl : EncoderRunner {
  SentenceConfig sentence;

  uint32_t most_tokens() const {
    return std::min(sentence.max_tokens.value_or(config().context), config().context);
  }
  std::string prompt(const EmbedOptions& options) const {
    if (options.prompt) return *options.prompt;
    const std::string& name =
        options.prompt_name.empty() ? sentence.default_prompt : options.prompt_name;
    if (name.empty()) return "";
    const auto found = sentence.prompts.find(name);
    if (found != sentence.prompts.end()) return found->second;
    std::string known;
    for (const auto& [one, text] : sentence.prompts) known += (known.empty() ? "" : ", ") + one;
    throw ModelError("prompt name", fmt::format("'{}' is none of the model's", printable(name)),
                     known.empty() ? "it has none" : "it has " + known);
  }
};

TextEncoder::TextEncoder(std::shared_ptr<Device> device, const std::string& folder,
                         const LoadOptions& options)
    : TextEncoder(std::move(device), open_model(folder), options) {}

TextEncoder::TextEncoder(std::shared_ptr<Device> device, std::shared_ptr<const OpenModel> model,
                         const LoadOptions& options)
    : impl_(std::make_unique<Impl>()) {
  impl_->device = given(std::move(device), "TextEncoder");
  model->require(Capability::kEncodeText);
  impl_->sentence = read_sentence_config(model->checkpoint());
  impl_->load(*model, options, Capability::kEncodeText, EncoderTask::kNone);
}

TextEncoder::~TextEncoder() = default;
TextEncoder::TextEncoder(TextEncoder&&) noexcept = default;
TextEncoder& TextEncoder::operator=(TextEncoder&&) noexcept = default;

std::vector<TextVector> TextEncoder::embed(std::span<const std::string> texts,
                                           const EmbedOptions& options) {
  impl_->begin(texts.size());
  const auto start = Clock::now();
  const std::string prompt = impl_->prompt(options);
  std::vector<ClassifierInput> prompted;
  for (const std::string& text : texts) prompted.push_back({prompt + text, std::nullopt});
  std::vector<bool> truncated;
  const std::vector<EncoderInput> inputs =
      tokenized(*impl_, prompted, impl_->most_tokens(), options.batch.truncate, truncated);
  std::vector<TextVector> results(texts.size());
  impl_->run(inputs, output_of(options.pooling.value_or(impl_->sentence.pooling)),
             options.normalize.value_or(impl_->sentence.normalize), options.batch,
             [&](size_t index, std::vector<float> values) {
               results[index] = {std::move(values), static_cast<uint32_t>(inputs[index].ids.size()),
                                 truncated[index], true};
             });
  impl_->statistics.total_seconds = seconds_since(start);
  return results;
}

TextVector TextEncoder::embed(const std::string& text, const EmbedOptions& options) {
  return std::move(embed(std::span(&text, 1), options).front());
}

std::vector<float> TextEncoder::cosines(std::span<const TextVector> queries,
                                        std::span<const TextVector> vectors) {
  const auto spans_of = [](std::span<const TextVector> all) {
    std::vector<std::span<const float>> spans;
    for (const TextVector& vector : all) spans.emplace_back(vector.values);
    return spans;
  };
  return vector_cosines(*impl_->device, spans_of(queries), spans_of(vectors));
}

uint32_t TextEncoder::width() const { return impl_->config().width; }
uint32_t TextEncoder::max_tokens() const { return impl_->most_tokens(); }
const std::map<std::string, std::string>& TextEncoder::prompts() const {
  return impl_->sentence.prompts;
}
const EncoderStatistics& TextEncoder::statistics() const { return impl_->statistics; }
const std::shared_ptr<Device>& TextEncoder::device() const { return impl_->device; }

// --- Labels --------------------------------------------------------------------------------------

struct Classifier::Impl : EncoderRunner {};

Classifier::Classifier(std::shared_ptr<Device> device, const std::string& folder,
                       const LoadOptions& options)
    : Classifier(std::move(device), open_model(folder), options) {}

Classifier::Classifier(std::shared_ptr<Device> device, std::shared_ptr<const OpenModel> model,
                       const LoadOptions& options)
    : impl_(std::make_unique<Impl>()) {
  impl_->device = given(std::move(device), "Classifier");
  impl_->load(*model, options, Capability::kClassify, EncoderTask::kClassify);
}

Classifier::~Classifier() = default;
Classifier::Classifier(Classifier&&) noexcept = default;
Classifier& Classifier::operator=(Classifier&&) noexcept = default;

std::vector<Classification> Classifier::classify(std::span<const ClassifierInput> texts,
                                                 const BatchOptions& options) {
  impl_->begin(texts.size());
  const auto start = Clock::now();
  std::vector<bool> truncated;
  const std::vector<EncoderInput> inputs =
      tokenized(*impl_, texts, impl_->config().context, options.truncate, truncated);
  std::vector<Classification> results(texts.size());
  impl_->run(
      inputs, EncoderOutput::kLogits, false, options, [&](size_t index, std::vector<float> logits) {
        Classification& result = results[index];
        result.probabilities = probabilities_of(logits, several_labels());
        result.best =
            static_cast<uint32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
        result.logits = std::move(logits);
        result.tokens = static_cast<uint32_t>(inputs[index].ids.size());
        result.truncated = truncated[index];
        result.complete = true;
      });
  impl_->statistics.total_seconds = seconds_since(start);
  return results;
}

Classification Classifier::classify(const std::string& text, const BatchOptions& options) {
  const ClassifierInput input = {text, std::nullopt};
  return std::move(classify(std::span(&input, 1), options).front());
}

const std::vector<std::string>& Classifier::labels() const { return impl_->config().labels; }
bool Classifier::several_labels() const { return impl_->config().several_labels; }
uint32_t Classifier::max_tokens() const { return impl_->config().context; }
const EncoderStatistics& Classifier::statistics() const { return impl_->statistics; }
const std::shared_ptr<Device>& Classifier::device() const { return impl_->device; }

}  // namespace mulciber
