// The weights of recurrent encoder-decoders, and the network that they make.
#include <cmath>

#include <fmt/format.h>

#include "models/networks/recurrent_network.h"

namespace mulciber {
namespace {

/// Builds the parts of Bahdanau's and Luong's networks. D: size of embeddings, H: of the cells'
/// states, A: of the additive scores' hidden layer.
class RecurrentParts {
 public:
  RecurrentParts(const RecurrentConfig& config, NetworkWeights& weights)
      : config_(config), weights_(weights) {}

  RecurrentStack bahdanau_encoder() {
    const uint64_t D = config_.embedding_size;
    return {{{cell("encoder.forward", CellKind::kGru, D, "encoder", "_l0"),
              cell("encoder.backward", CellKind::kGru, D, "encoder", "_l0_reverse")}}};
  }

  BahdanauDecoder bahdanau_decoder() {
    const uint64_t D = config_.embedding_size, H = config_.hidden_size;
    return {.initial = linear("initial", "initial", H, H, true),  // (H, H)
            .attention = additive_attention(),
            .cell = cell("decoder", CellKind::kGru, D + 2 * H, "decoder", ""),
            .readout = linear("readout", "readout", D, D + 3 * H, true)};  // (D, D + 3 H)
  }

  RecurrentStack luong_encoder() {
    RecurrentStack stack;
    for (uint32_t i = 0; i < config_.layers; ++i)
      stack.layers.push_back({lstm("encoder", i, config_.embedding_size), std::nullopt});
    return stack;
  }

  LuongDecoder luong_decoder() {
    const uint64_t D = config_.embedding_size, H = config_.hidden_size;
    LuongDecoder decoder;
    for (uint32_t i = 0; i < config_.layers; ++i)
      decoder.cells.push_back(lstm("decoder", i, 2 * D));
    decoder.attention = general_attention();
    decoder.combine = linear("combine", "combine", D, 2 * H, false);  // (D, 2 H)
    return decoder;
  }

 private:
  /// source: the layer's name in files.
  Linear linear(const std::string& name, const std::string& source, uint64_t rows, uint64_t columns,
                bool bias) {
    return weights_.linear(name, {{{source}, rows}}, columns, bias);
  }

  /// A cell whose weights torch.nn names weight_ih, weight_hh, bias_ih and bias_hh, with a suffix.
  /// Result: matrices (gates * H, inputs) and (gates * H, H).
  RecurrentCell cell(const std::string& name, CellKind kind, uint64_t inputs,
                     const std::string& source, const std::string& suffix) {
    const uint64_t H = config_.hidden_size, rows = gates_of(kind) * H;
    const auto part = [&](const char* of, const char* word, uint64_t columns) {
      const auto weight = [&](const char* what, WeightRole role, const Shape& shape) {
        return WeightSpec{fmt::format("{}.{}.{}", name, of, what),
                          role,
                          shape,
                          {{{fmt::format("{}.{}_{}{}", source, what, word, suffix)}, shape}}};
      };
      return weights_.linear(weight("weight", WeightRole::kMatrix, {rows, columns}),
                             weight("bias", WeightRole::kVector, {rows}));
    };
    return {kind, part("input", "ih", inputs), part("hidden", "hh", H)};
  }

  /// Layer `index` of a stack of LSTMs. inputs: columns of the first layer's input.
  RecurrentCell lstm(const std::string& stack, uint32_t index, uint64_t inputs) {
    return cell(fmt::format("{}.{}", stack, index), CellKind::kLstm,
                index == 0 ? inputs : config_.hidden_size, stack, fmt::format("_l{}", index));
  }

  /// There are two heads with equal scores, one for each direction of the annotations.
  AttentionMemory additive_attention() {
    const uint64_t H = config_.hidden_size, A = config_.attention_size;
    const auto both_heads = [&](const char* source) {
      return std::vector<LinearPart>(2, {{source}, A});
    };
    AttentionMemory attention = {.heads = 2,
                                 .key_size = config_.attention_size,
                                 .value_size = config_.hidden_size,
                                 .score = AttentionScore::kAdditive};
    attention.query =
        weights_.linear("attention.query", both_heads("query"), H, false);             // (2 A, H)
    attention.key = weights_.linear("attention.key", both_heads("key"), 2 * H, true);  // (2 A, 2 H)
    attention.vector = weights_.tensor(
        {"attention.vector", WeightRole::kVector, {2, A}, {{{"score"}, {A}}, {{"score"}, {A}}}});
    return attention;
  }

  AttentionMemory general_attention() {
    const uint64_t H = config_.hidden_size;
    AttentionMemory attention = {.key_size = config_.hidden_size,
                                 .value_size = config_.hidden_size};
    attention.key = linear("attention.key", "general", H, H, false);  // (H, H)
    return attention;
  }

  const RecurrentConfig& config_;
  NetworkWeights& weights_;
};

}  // namespace

RecurrentNetwork::RecurrentNetwork(const RecurrentConfig& config, NetworkWeights& weights) {
  source_vocabulary = target_vocabulary = config.vocabulary;
  context = config.context;

  const uint64_t V = config.vocabulary, D = config.embedding_size;
  embedding_.table =
      weights.tensor({"embedding", WeightRole::kMatrix, {V, D}, {{{"embedding.weight"}, {V, D}}}});
  if (config.scale_embedding) embedding_.scale = std::sqrt(static_cast<float>(D));
  output.weight = embedding_.table;
  output.bias = weights.tensor({"output.bias", WeightRole::kVector, {V}, {{{"output_bias"}, {V}}}});

  RecurrentParts parts(config, weights);
  if (config.additive) {
    encoder_ = parts.bahdanau_encoder();
    decoder_ = parts.bahdanau_decoder();
  } else {
    encoder_ = parts.luong_encoder();
    decoder_ = parts.luong_decoder();
  }
}

DeclaredWeights declare_recurrent(const RecurrentConfig& config) {
  DeclaredWeights weights;
  const RecurrentNetwork network(config, weights);
  return weights;
}

}  // namespace mulciber
