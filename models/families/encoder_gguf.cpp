// Reads configurations of encoders from GGUF files, and completes them.
#include <nlohmann/json.hpp>

#include "models/families/encoder_family.h"
#include "models/families/gguf_config.h"

namespace mulciber {
namespace {

/// Rows of a matrix; 0 if the file does not have it.
uint64_t rows_of(const Checkpoint& checkpoint, const char* name) {
  const CheckpointTensor* tensor = checkpoint.find(name);
  return tensor && !tensor->shape.empty() ? tensor->shape.front() : 0;
}

/// Reads a classification head: `cls` is the layer before the labels, `cls.output` gives a logit
/// for each label.
void read_head(const GgufMetadata& metadata, Json& config) {
  const uint64_t labels = rows_of(metadata.checkpoint(), "cls.output.weight");
  if (labels == 0 || rows_of(metadata.checkpoint(), "cls.weight") == 0) return;
  config["architectures"] = {"ForSequenceClassification"};
  config["num_labels"] = labels;
  const GgufValue* names = metadata.find("classifier.output_labels");
  if (names == nullptr) return;
  if (!names->is_array || names->type != GgufType::kString || names->count != labels)
    metadata.fail(metadata.full("classifier.output_labels"), "does not name every label");
  Json& ids = config["id2label"];
  for (const std::string_view name : names->texts())
    ids[std::to_string(ids.size())] = std::string(name);
}

}  // namespace

EncoderConfig read_encoder_config(const Checkpoint& checkpoint, const EncoderFamily& family) {
  if (!checkpoint.gguf()) return family.read(ConfigReaders(checkpoint).config);
  const GgufMetadata metadata(checkpoint);
  if (const GgufValue* causal = metadata.find("attention.causal");
      causal && causal->type == GgufType::kBool && causal->boolean())
    metadata.fail(metadata.full("attention.causal"),
                  "is true; tokens of an encoder see all others");
  Json config = gguf_config(checkpoint, family.gguf->files);
  config["type_vocab_size"] = rows_of(checkpoint, "token_types.weight");
  // Converters remove the rows before RoBERTa's first position: positions always begin at 0.
  if (const uint64_t positions = rows_of(checkpoint, "position_embd.weight"))
    config["max_position_embeddings"] = positions;
  read_head(metadata, config);

  EncoderConfig encoder = family.read(ConfigReader(config, checkpoint.path().string()));
  encoder.names = family.gguf->names;
  if (!checkpoint.find("blk.0.attn_qkv.weight")) encoder.names.qkv = nullptr;
  EncoderHead& head = encoder.head;
  head.dense = "cls";
  head.dense_in_stack = false;
  head.dense_bias = checkpoint.find("cls.bias") != nullptr;
  if (head.norm) head.norm = "cls.norm";
  head.output = "cls.output";
  head.output_bias = checkpoint.find("cls.output.bias") != nullptr;
  // Files without token types are DistilBERT's.
  if (&family == &kBert && encoder.embedding.types == 0) head.activation = Activation::kRelu;
  if (checkpoint.find("cls.output.weight") && !checkpoint.find("cls.weight"))
    encoder.lost_head =
        "has the labels of a classifier without the pooler before them, which converters leave out";
  return encoder;
}

}  // namespace mulciber
