#include "models/translation/recurrent_translation.h"

#include <cmath>

#include <fmt/format.h>

#include "models/adapters/weights_load.h"
#include "models/networks/recurrent_network.h"

namespace mulciber {
namespace {

// --- The weights ---------------------------------------------------------------------------------

void add(WeightTable& table, const std::string& name, WeightRole role, Shape shape,
         const std::string& source, uint64_t copies = 1) {
  Shape whole = shape;
  if (copies > 1)
    whole = shape.rank() == 1 ? Shape{copies, shape[0]} : Shape{copies * shape[0], shape[1]};
  WeightSpec spec = {name, role, whole, {}};
  for (uint64_t i = 0; i < copies; ++i) spec.sources.push_back({{source}, shape});
  table.push_back(std::move(spec));
}

void add_linear(WeightTable& table, const std::string& name, uint64_t rows, uint64_t columns,
                const std::string& source, bool bias, uint64_t copies = 1) {
  add(table, name + ".weight", WeightRole::kMatrix, {rows, columns}, source + ".weight", copies);
  if (bias) add(table, name + ".bias", WeightRole::kVector, {rows}, source + ".bias", copies);
}

/// A cell as torch.nn names it: weight_ih, weight_hh and their biases, with a suffix.
void add_cell(WeightTable& table, const std::string& name, CellKind kind, uint64_t units,
              uint64_t inputs, const std::string& source, const std::string& suffix) {
  const uint64_t gates = gates_of(kind) * units;
  for (const auto& [part, word, columns] :
       {std::tuple("input", "ih", inputs), std::tuple("hidden", "hh", units)}) {
    add(table, fmt::format("{}.{}.weight", name, part), WeightRole::kMatrix, {gates, columns},
        fmt::format("{}.weight_{}{}", source, word, suffix));
    add(table, fmt::format("{}.{}.bias", name, part), WeightRole::kVector, {gates},
        fmt::format("{}.bias_{}{}", source, word, suffix));
  }
}

void add_bahdanau(WeightTable& table, const RecurrentConfig& config) {
  const uint64_t D = config.embedding_size, H = config.hidden_size, A = config.attention_size;
  add_cell(table, "encoder.forward", CellKind::kGru, H, D, "encoder", "_l0");
  add_cell(table, "encoder.backward", CellKind::kGru, H, D, "encoder", "_l0_reverse");
  add_linear(table, "initial", H, H, "initial", true);
  // There are two heads with the same scores, one for each direction of the annotations.
  add_linear(table, "attention.query", A, H, "query", false, 2);
  add_linear(table, "attention.key", A, 2 * H, "key", true, 2);
  add(table, "attention.vector", WeightRole::kVector, {A}, "score", 2);
  add_cell(table, "decoder", CellKind::kGru, H, D + 2 * H, "decoder", "");
  add_linear(table, "readout", D, D + 3 * H, "readout", true);
}

void add_luong(WeightTable& table, const RecurrentConfig& config) {
  const uint64_t D = config.embedding_size, H = config.hidden_size;
  for (uint32_t i = 0; i < config.layers; ++i) {
    const std::string suffix = fmt::format("_l{}", i);
    add_cell(table, fmt::format("encoder.{}", i), CellKind::kLstm, H, i == 0 ? D : H, "encoder",
             suffix);
    add_cell(table, fmt::format("decoder.{}", i), CellKind::kLstm, H, i == 0 ? 2 * D : H, "decoder",
             suffix);
  }
  add_linear(table, "attention.key", H, H, "general", false);
  add_linear(table, "combine", D, 2 * H, "combine", false);
}

// --- The network ---------------------------------------------------------------------------------

Linear linear(const Weights& weights, const std::string& name) {
  Linear result = {weights[name + ".weight"]};
  if (!weights.has(name + ".bias")) return result;
  const Tensor& bias = weights[name + ".bias"];
  result.bias = bias.reshaped({bias.shape.elements()});
  return result;
}

RecurrentCell cell(const Weights& weights, const std::string& name, CellKind kind) {
  return {kind, linear(weights, name + ".input"), linear(weights, name + ".hidden")};
}

RecurrentStack bahdanau_encoder(const Weights& weights) {
  return {{{cell(weights, "encoder.forward", CellKind::kGru),
            cell(weights, "encoder.backward", CellKind::kGru)}}};
}

BahdanauDecoder bahdanau_decoder(const Weights& weights, const RecurrentConfig& config) {
  return {.initial = linear(weights, "initial"),  // (H, H)
          .attention = {.heads = 2,
                        .key_size = config.attention_size,
                        .value_size = config.hidden_size,
                        .score = AttentionScore::kAdditive,
                        .query = linear(weights, "attention.query"),  // (2 A, H)
                        .key = linear(weights, "attention.key"),      // (2 A, 2 H)
                        .vector = weights["attention.vector"]},       // (2, A)
          .cell = cell(weights, "decoder", CellKind::kGru),           // (3 H, D + 2 H), (3 H, H)
          .readout = linear(weights, "readout")};                     // (D, D + 3 H)
}

RecurrentStack luong_encoder(const Weights& weights, const RecurrentConfig& config) {
  RecurrentStack stack;
  for (uint32_t i = 0; i < config.layers; ++i)
    stack.layers.push_back(
        {cell(weights, fmt::format("encoder.{}", i), CellKind::kLstm), std::nullopt});
  return stack;
}

LuongDecoder luong_decoder(const Weights& weights, const RecurrentConfig& config) {
  LuongDecoder decoder = {.cells = {},
                          .attention = {.heads = 1,
                                        .key_size = config.hidden_size,
                                        .value_size = config.hidden_size,
                                        .query = std::nullopt,
                                        .key = linear(weights, "attention.key"),  // (H, H)
                                        .vector = std::nullopt},
                          .combine = linear(weights, "combine")};  // (D, 2 H)
  for (uint32_t i = 0; i < config.layers; ++i)
    decoder.cells.push_back(cell(weights, fmt::format("decoder.{}", i), CellKind::kLstm));
  return decoder;
}

std::string family_of(const RecurrentConfig& config) {
  return config.additive ? "bahdanau" : "luong";
}

Extents extents_of(const RecurrentConfig& config) {
  return {.vocabulary = config.vocabulary,
          .context = config.context,
          .cross_layers = 1,
          .cross_heads = 1};
}

EncoderDecoderParts load_parts(Device& device, const Checkpoint& checkpoint,
                               const RecurrentConfig& config, const ModelOptions& options) {
  Weights weights =
      weights_of(device, recurrent_weight_table(config), checkpoint, family_of(config), options);

  auto network = std::make_unique<RecurrentNetwork>();
  network->source_vocabulary = network->target_vocabulary = config.vocabulary;
  network->context = config.context;
  network->output = {weights["embedding"], weights["output.bias"], {}};  // (V, D), (V)
  network->embedding.table = weights["embedding"];
  if (config.scale_embedding)
    network->embedding.scale = std::sqrt(static_cast<float>(config.embedding_size));
  if (config.additive) {
    network->encoder = bahdanau_encoder(weights);
    network->decoder = bahdanau_decoder(weights, config);
  } else {
    network->encoder = luong_encoder(weights, config);
    network->decoder = luong_decoder(weights, config);
  }
  return {.family = family_of(config),
          .generation = config.generation,
          .extents = extents_of(config),
          .half_precision = options.matrices == MatrixStorage::kF16,
          .weights = std::move(weights),
          .network = std::move(network)};
}

class RecurrentArchitecture : public Architecture {
 public:
  explicit RecurrentArchitecture(const Checkpoint& checkpoint)
      : Architecture(checkpoint), config_(read_recurrent_config(checkpoint)) {}

  const GenerationConfig& generation() const override { return config_.generation; }
  Extents extents() const override { return extents_of(config_); }

 private:
  WeightTable weight_table() const override { return recurrent_weight_table(config_); }
  std::unique_ptr<Model> make(Device& device, const ModelOptions& options) const override {
    return std::make_unique<RecurrentTranslation>(device, checkpoint(), config_, options);
  }

  RecurrentConfig config_;
};

}  // namespace

RecurrentConfig read_recurrent_config(const Checkpoint& checkpoint) {
  const ConfigReader config(checkpoint.config(), (checkpoint.folder() / "config.json").string());
  // Above 256 an attention head is wider than the kernels take (ops/attention.h).
  constexpr std::int64_t kMostUnits = 256;
  const auto positive = [&](const char* key, std::int64_t most) {
    return static_cast<uint32_t>(config.integer(key, 1, most));
  };
  RecurrentConfig result;
  const std::string type = config.text("model_type");
  result.additive = type == "bahdanau";
  if (!result.additive && type != "luong")
    config.fail("model_type", "is '" + printable(type) + "', not 'bahdanau' or 'luong'");
  result.embedding_size = positive("embedding_size", kWidest);
  result.hidden_size = positive("hidden_size", kMostUnits);
  if (result.additive)
    result.attention_size = positive("attention_size", kMostUnits);
  else
    result.layers = positive("num_layers", kMostLayers);
  result.vocabulary = positive("vocab_size", kLargestVocab);
  result.context = positive("max_position_embeddings", kMostContext);
  result.scale_embedding = config.boolean_or("scale_embedding", false);
  result.generation = read_generation_config(checkpoint, result.vocabulary);
  if (result.generation.eos.empty()) config.fail("eos_token_id", "is missing");
  if (!result.generation.pad) config.fail("pad_token_id", "is missing");
  if (!result.generation.decoder_start) result.generation.decoder_start = result.generation.pad;
  return result;
}

WeightTable recurrent_weight_table(const RecurrentConfig& config) {
  WeightTable table;
  add(table, "embedding", WeightRole::kMatrix, {config.vocabulary, config.embedding_size},
      "embedding.weight");
  add(table, "output.bias", WeightRole::kVector, {config.vocabulary}, "output_bias");
  if (config.additive)
    add_bahdanau(table, config);
  else
    add_luong(table, config);
  return table;
}

RecurrentTranslation::RecurrentTranslation(Device& device, const Checkpoint& checkpoint,
                                           const RecurrentConfig& config,
                                           const ModelOptions& options)
    : EncoderDecoderModel(device, load_parts(device, checkpoint, config, options),
                          options.memory_limit) {}

std::unique_ptr<const Architecture> read_recurrent_translation(const Checkpoint& checkpoint) {
  return std::make_unique<const RecurrentArchitecture>(checkpoint);
}

}  // namespace mulciber
