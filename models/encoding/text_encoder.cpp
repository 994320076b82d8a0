#include "mulciber/text_encoder.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include <fmt/format.h>

#include "base/clock.h"
#include "models/core/cpu_softmax.h"
#include "models/core/vector_cosines.h"
#include "models/encoding/encoder_runner.h"
#include "models/encoding/text_encoder_impl.h"
#include "mulciber/error.h"
#include "runtime/public_devices.h"

namespace mulciber {
namespace {

/// Tokenizes a list of texts, and truncates those that are too long.
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

/// Truncates a vector, and scales what is left to length 1 if it was normalized.
void shorten(std::vector<float>& vector, uint32_t dimensions, bool normalized) {
  if (vector.size() == dimensions) return;
  vector.resize(dimensions);
  double squares = 0;
  for (const float value : vector) squares += double{value} * value;
  if (!normalized || squares == 0) return;
  const double length = std::sqrt(squares);
  for (float& value : vector) value = static_cast<float>(value / length);
}

/// Probabilities of labels: independent (sigmoid) if `several`, else their sum is 1 (softmax).
std::vector<float> probabilities_of(std::span<const float> logits, bool several) {
  if (!several) {
    const std::vector<double> shares = cpu_softmax(logits);
    return {shares.begin(), shares.end()};
  }
  std::vector<float> probabilities;
  for (const float logit : logits)
    probabilities.push_back(static_cast<float>(1 / (1 + std::exp(-double{logit}))));
  return probabilities;
}

}  // namespace

// --- Embeddings ----------------------------------------------------------------------------------

void TextEncoder::Impl::open(std::shared_ptr<Device> on, const OpenModel& opened,
                             const LoadOptions& options, std::shared_ptr<WeightsLoad> weights) {
  device = given(std::move(on), "TextEncoder");
  opened.require(Capability::kEncodeText);
  sentence = read_sentence_config(opened.checkpoint());
  load(opened, options, Capability::kEncodeText, EncoderTask::kNone, std::move(weights));
  uint32_t columns = config().width;
  for (const DenseModule& module : sentence.dense) {
    if (module.in != columns)
      throw ModelError("Dense module", fmt::format("takes {} columns of {}", module.in, columns),
                       "the files disagree: download all from one revision");
    encoder->add_dense(module);
    columns = module.out;
  }
}

uint32_t TextEncoder::Impl::width() const {
  return sentence.dense.empty() ? config().width : sentence.dense.back().out;
}

uint32_t TextEncoder::Impl::most_tokens() const {
  return std::min(sentence.max_tokens.value_or(config().context), config().context);
}

std::string TextEncoder::Impl::prompt(const EmbedOptions& options) const {
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

EncoderOutput TextEncoder::Impl::output(const EmbedOptions& options) const {
  switch (options.pooling.value_or(sentence.pooling)) {
    case Pooling::kMean: return EncoderOutput::kMean;
    case Pooling::kFirst: return EncoderOutput::kFirst;
    case Pooling::kPooler: return EncoderOutput::kPooler;
    case Pooling::kLast: return EncoderOutput::kLast;
    case Pooling::kMax: return EncoderOutput::kMax;
    case Pooling::kMeanSqrtLength: return EncoderOutput::kMeanSqrtLength;
    case Pooling::kWeightedMean: return EncoderOutput::kWeightedMean;
  }
  return EncoderOutput::kMean;
}

std::vector<EncoderInput> TextEncoder::Impl::prompted(std::span<const std::string> texts,
                                                      std::vector<bool>& truncated,
                                                      const EmbedOptions& options) {
  const std::string before = prompt(options);
  std::vector<ClassifierInput> whole;
  for (const std::string& text : texts) whole.push_back({before + text, std::nullopt});
  return tokenized(*this, whole, most_tokens(), options.batch.truncate, truncated);
}

std::vector<TextVector> TextEncoder::Impl::vectors(std::span<const EncoderInput> inputs,
                                                   const std::vector<bool>& truncated,
                                                   const EmbedOptions& options) {
  if (options.dimensions > width())
    throw ModelError("dimensions", fmt::format("are {} of {}", options.dimensions, width()),
                     "give no more than there are, or 0");
  std::vector<TextVector> results(inputs.size());
  run(inputs, output(options), normalizes(options), options.batch,
      [&](size_t index, std::vector<float> values) {
        if (options.dimensions > 0) shorten(values, options.dimensions, normalizes(options));
        results[index] = {std::move(values), static_cast<uint32_t>(inputs[index].ids.size()),
                          truncated[index], true};
      });
  return results;
}

TextEncoder::TextEncoder(std::shared_ptr<Device> device, const std::string& folder,
                         const LoadOptions& options)
    : TextEncoder(std::move(device), open_model(folder), options) {}

TextEncoder::TextEncoder(std::shared_ptr<Device> device, std::shared_ptr<const OpenModel> model,
                         const LoadOptions& options)
    : impl_(std::make_shared<Impl>()) {
  impl_->open(std::move(device), *model, options);
}

TextEncoder::TextEncoder(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

TextEncoder::~TextEncoder() = default;
TextEncoder::TextEncoder(TextEncoder&&) noexcept = default;
TextEncoder& TextEncoder::operator=(TextEncoder&&) noexcept = default;

std::vector<TextVector> TextEncoder::embed(std::span<const std::string> texts,
                                           const EmbedOptions& options) {
  impl_->begin(texts.size());
  const auto start = Clock::now();
  std::vector<bool> truncated;
  const std::vector<EncoderInput> inputs = impl_->prompted(texts, truncated, options);
  std::vector<TextVector> results = impl_->vectors(inputs, truncated, options);
  impl_->statistics.total_seconds = seconds_since(start);
  return results;
}

std::vector<TextStates> TextEncoder::states(std::span<const std::string> texts,
                                            const EmbedOptions& options) {
  if (options.pooling || options.normalize || options.dimensions > 0)
    throw SettingError("EmbedOptions", "has pooling, normalize or dimensions, which states lack",
                       "leave them out, or call embed()");
  impl_->begin(texts.size());
  const auto start = Clock::now();
  std::vector<bool> truncated;
  const std::vector<EncoderInput> inputs = impl_->prompted(texts, truncated, options);
  std::vector<TextStates> results(texts.size());
  impl_->run(inputs, EncoderOutput::kStates, false, options.batch,
             [&](size_t index, std::vector<float> values) {
               results[index] = {std::move(values), static_cast<uint32_t>(inputs[index].ids.size()),
                                 truncated[index], true};
             });
  impl_->statistics.total_seconds = seconds_since(start);
  return results;
}

std::vector<uint32_t> TextEncoder::token_ids(const std::string& text,
                                             const EmbedOptions& options) const {
  return impl_->tokenize(impl_->prompt(options) + text, nullptr).ids.ids;
}

std::vector<TextVector> TextEncoder::embed_ids(std::span<const std::vector<uint32_t>> texts,
                                               const EmbedOptions& options) {
  impl_->begin(texts.size());
  const auto start = Clock::now();
  std::vector<EncoderInput> inputs;
  std::vector<bool> truncated;
  for (const std::vector<uint32_t>& ids : texts) {
    const std::string where = fmt::format("text {} of {}", inputs.size() + 1, texts.size());
    if (ids.empty()) throw ModelError(where, "has no tokens", "give the ids of some");
    for (const uint32_t id : ids)
      if (id >= impl_->config().vocabulary)
        throw ModelError(where,
                         fmt::format("has the token id {}, the model's are below {}", id,
                                     impl_->config().vocabulary),
                         "take ids of this model's tokenizer");
    TokenizedInput input = {.ids = {ids, std::vector<uint32_t>(ids.size())},
                            .first_end = ids.size()};
    input.second_begin = input.second_end = ids.size();
    impl_->fit(input, impl_->most_tokens(), options.batch.truncate, where);
    truncated.push_back(input.truncated);
    impl_->statistics.truncated += input.truncated ? 1 : 0;
    inputs.push_back(std::move(input.ids));
  }
  std::vector<TextVector> results = impl_->vectors(inputs, truncated, options);
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

uint32_t TextEncoder::width() const { return impl_->width(); }
uint32_t TextEncoder::embedding_width() const { return impl_->config().embedding.columns; }
uint32_t TextEncoder::state_width() const { return impl_->config().width; }
uint32_t TextEncoder::max_tokens() const { return impl_->most_tokens(); }
Pooling TextEncoder::pooling() const { return impl_->sentence.pooling; }
bool TextEncoder::normalizes() const { return impl_->sentence.normalize; }
const std::map<std::string, std::string>& TextEncoder::prompts() const {
  return impl_->sentence.prompts;
}
const std::string& TextEncoder::default_prompt() const { return impl_->sentence.default_prompt; }
const EncoderStatistics& TextEncoder::statistics() const { return impl_->statistics; }
const std::shared_ptr<Device>& TextEncoder::device() const { return impl_->device; }
uint64_t TextEncoder::trim() { return impl_->trim(); }

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
                                                 const TextBatchOptions& options) {
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

Classification Classifier::classify(const std::string& text, const TextBatchOptions& options) {
  const ClassifierInput input = {text, std::nullopt};
  return std::move(classify(std::span(&input, 1), options).front());
}

const std::vector<std::string>& Classifier::labels() const { return impl_->config().labels; }
bool Classifier::several_labels() const { return impl_->config().several_labels; }
uint32_t Classifier::max_tokens() const { return impl_->config().context; }
const EncoderStatistics& Classifier::statistics() const { return impl_->statistics; }
const std::shared_ptr<Device>& Classifier::device() const { return impl_->device; }
uint64_t Classifier::trim() { return impl_->trim(); }

}  // namespace mulciber
