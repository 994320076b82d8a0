#include "models/families/encoder_config.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace mulciber {
namespace {

constexpr std::int64_t kMostLabels = 1 << 16;

}  // namespace

std::vector<std::string> read_labels(const ConfigReader& config) {
  std::vector<std::string> labels;
  if (!config.has("id2label")) {
    const std::int64_t count = config.integer_or("num_labels", 2, 1, kMostLabels);
    for (std::int64_t i = 0; i < count; ++i) labels.push_back(fmt::format("LABEL_{}", i));
    return labels;
  }
  config.object("id2label");  // throws unless it is an object
  const Json& names = config.value("id2label");
  for (size_t i = 0; i < names.size(); ++i) {
    const auto found = names.find(std::to_string(i));
    if (found == names.end() || !found->is_string())
      config.fail("id2label", fmt::format("names no label of id {}, and has {}", i, names.size()));
    labels.push_back(found->get<std::string>());
  }
  if (labels.empty() || labels.size() > static_cast<size_t>(kMostLabels))
    config.fail("id2label", fmt::format("has {} labels", labels.size()));
  return labels;
}

uint32_t DisentangledConfig::row_of(int32_t distance) const {
  int32_t bucket = distance;
  const auto middle = static_cast<int32_t>(buckets / 2);
  if (buckets > 0 && std::abs(distance) > middle) {
    // The models were trained with single precision here.
    const auto mid = static_cast<float>(middle);
    const float place = std::log(static_cast<float>(std::abs(distance)) / mid) /
                        std::log(static_cast<float>(max_distance - 1) / mid) * (mid - 1);
    bucket = static_cast<int32_t>(std::ceil(place)) + middle;
    if (distance < 0) bucket = -bucket;
  }
  const auto most = static_cast<int32_t>(span);
  return static_cast<uint32_t>(std::clamp(bucket, -most, most - 1) + most);
}

uint32_t EncoderConfig::layer_weights() const {
  uint32_t count = 0;
  for (const EncoderLayerConfig& layer : layers) count = std::max(count, layer.weights + 1);
  return count;
}

void read_encoder_task(const ConfigReader& config, EncoderConfig& encoder) {
  if (!config.has("architectures")) return;
  for (const Json& name : config.list("architectures")) {
    if (!name.is_string()) continue;
    const auto text = name.get<std::string>();
    if (text.ends_with("ForSequenceClassification")) encoder.task = EncoderTask::kClassify;
    if (text.ends_with("ForQuestionAnswering")) encoder.task = EncoderTask::kAnswer;
  }
  if (encoder.task != EncoderTask::kClassify) return;
  encoder.labels = read_labels(config);
  const std::string problem = config.text_or("problem_type", "");
  if (problem == "regression")
    config.fail("problem_type", "is 'regression'; classifiers of one or several labels are known");
  // A single logit is a yes-or-no label, as in transformers' pipeline.
  encoder.several_labels = problem == "multi_label_classification" || encoder.labels.size() == 1;
}

EncoderConfig read_bert_like(const ConfigReader& config) {
  const auto positive = [&](const char* key, std::int64_t most) {
    return static_cast<uint32_t>(config.integer(key, 1, most));
  };
  if (config.boolean_or("is_decoder", false))
    config.fail("is_decoder", "is true: it continues texts, which this family is not run for");
  if (const std::string kind = config.text_or("position_embedding_type", "absolute");
      kind != "absolute")
    config.fail("position_embedding_type", "is '" + printable(kind) + "'; absolute is known");
  EncoderConfig encoder;
  encoder.width = positive("hidden_size", kWidest);
  encoder.heads = positive("num_attention_heads", kMostHeads);
  if (encoder.width % encoder.heads != 0)
    config.fail("num_attention_heads", fmt::format("is {}, which does not divide hidden_size, {}",
                                                   encoder.heads, encoder.width));
  encoder.hidden = positive("intermediate_size", kWidest);
  encoder.vocabulary = positive("vocab_size", kLargestVocab);
  encoder.context = positive("max_position_embeddings", kMostContext);
  encoder.pad = static_cast<uint32_t>(
      config.integer_or("pad_token_id", 0, 0, std::int64_t{encoder.vocabulary} - 1));
  encoder.embedding = {
      .columns =
          static_cast<uint32_t>(config.integer_or("embedding_size", encoder.width, 1, kWidest)),
      .position_rows = encoder.context,
      .types = static_cast<uint32_t>(config.integer_or("type_vocab_size", 2, 0, 1024))};
  encoder.norm_epsilon = static_cast<float>(config.number_or("layer_norm_eps", 1e-12, 0, 1));
  if (config.has("hidden_act")) encoder.activation = read_activation(config, "hidden_act");
  encoder.layers.resize(positive("num_hidden_layers", kMostLayers));
  for (uint32_t i = 0; i < encoder.layers.size(); ++i) encoder.layers[i].weights = i;
  read_encoder_task(config, encoder);
  return encoder;
}

}  // namespace mulciber
