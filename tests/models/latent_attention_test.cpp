// Models with latent attention store for each token a narrow vector and the rotated part of its
// key; nothing grows with the number of heads.
#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "models/generation/sequence_slots.h"
#include "mulciber/text_generator.h"
#include "ops/head_matmul.h"
#include "ops/latent_attention.h"
#include "runtime/op.h"
#include "tests/catch.h"
#include "tests/lora_files.h"
#include "tests/model_error.h"
#include "tests/small_decoder.h"

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

/// One model has the up-projections of keys and values in one matrix, the other in two.
std::filesystem::path latent_model(const char* name) {
  return source_dir() / "tests/data/gguf_decoders" / (std::string(name) + ".gguf");
}

std::vector<uint32_t> latent_ids(const DecoderModel& model, uint32_t length) {
  std::vector<uint32_t> ids = prompt_of(length, 11);
  for (uint32_t& id : ids) id %= model.network().vocabulary;
  return ids;
}

/// Logits of a sequence in pages: of its prompt, fed in chunks of `chunk` tokens, and of the steps
/// after it.
std::vector<std::vector<float>> paged_logits(const DecoderModel& model, uint32_t chunk) {
  SequenceSlots slots(shared_device(), model.network(), {.slots = 2, .context = 64, .chunk = 16});
  const std::vector<uint32_t> prompt = latent_ids(model, 32);
  slots.begin(1, {.prompt = prompt, .keeps_logits = true});
  for (uint32_t held = 0; held < prompt.size(); held += chunk)
    slots.feed(1, chunk, held + chunk == prompt.size());
  std::vector<std::vector<float>> logits;
  const std::vector<uint32_t> all = {1};
  for (int step = 0; step < 3; ++step) {
    for (const SequenceSlots::Choice& choice : slots.step(all)) CHECK(choice);
    logits.push_back(slots.logits(1));
  }
  return logits;
}

/// A model with random weights whose latent keys are whole blocks: 32 rotated numbers and 64
/// others.
void write_model_of_blocks(const std::filesystem::path& folder) {
  const nlohmann::json config = {{"model_type", "deepseek_v2"},    {"hidden_size", 64},
                                 {"intermediate_size", 96},        {"kv_lora_rank", 64},
                                 {"q_lora_rank", nullptr},         {"qk_rope_head_dim", 32},
                                 {"qk_nope_head_dim", 12},         {"v_head_dim", 20},
                                 {"num_attention_heads", 5},       {"num_key_value_heads", 5},
                                 {"num_hidden_layers", 2},         {"first_k_dense_replace", 1},
                                 {"moe_intermediate_size", 32},    {"n_routed_experts", 4},
                                 {"num_experts_per_tok", 2},       {"n_shared_experts", 1},
                                 {"max_position_embeddings", 128}, {"rms_norm_eps", 1e-6},
                                 {"rope_theta", 10000.0},          {"hidden_act", "silu"},
                                 {"tie_word_embeddings", false},   {"vocab_size", 96}};
  write_file(folder / "config.json", config.dump());
  // An empty file is enough to read the configuration; the weights follow from it.
  write_file(folder / "model.safetensors", tensor_bytes({}));
  MadeTensors tensors;
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  for (const WeightSpec& spec : decoder_weight_table(read_decoder_config(Checkpoint(folder)))) {
    for (const WeightSource& source : spec.sources) {
      const uint64_t columns = source.shape.columns(),
                     rows = source.rows_in_file > 0 ? source.rows_in_file : source.shape.rows();
      const bool vector = spec.role == WeightRole::kVector;
      std::vector<float> values(rows * columns);
      for (float& value : values)
        value = vector ? 1 + 0.1f * normal(random)
                       : normal(random) / std::sqrt(static_cast<float>(columns));
      tensors[source.names.front()] = {
          "F32",
          vector ? std::vector<uint64_t>{columns} : std::vector<uint64_t>{rows, columns},
          {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)}};
    }
  }
  write_file(folder / "model.safetensors", tensor_bytes(tensors));
}

std::vector<double> latent_logits(DecoderModel& model, const std::vector<uint32_t>& ids) {
  const std::vector<std::string> wanted = {"logits"};
  return model.forward({{"input_ids", {{1, ids.size()}, {ids.begin(), ids.end()}}}}, wanted)
      .at("logits")
      .values;
}

/// The message of the ShapeError that `action` throws.
template <typename Action>
std::string shape_error(Action&& action) {
  try {
    action();
  } catch (const ShapeError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("Latent attention keeps rank and rotated elements of a token and layer") {
  // rotated + rank; heads times whole keys and values would be 3 * (28 + 12) and 4 * (20 + 14).
  const std::pair<const char*, uint64_t> models[] = {{"deepseek_v2", 12 + 24},
                                                     {"deepseek_v3", 8 + 20}};
  for (const auto& [name, numbers] : models) {
    INFO(name);
    for (const DataType type : {DataType::kF16, DataType::kF32}) {
      const auto model = open_decoder(latent_model(name), {.cache = type});
      for (const CausalLayer& layer : model->network().decoder.layers) {
        CHECK(layer.attention.cache_columns() == numbers);
        CHECK(layer.cache(type).bytes(50) == 50 * numbers * size_of(type));
      }
    }
    GeneratorOptions options;
    options.key_values = KeyValueStorage::kF16;
    options.sequences = 2;
    options.context = 64;
    const auto opened = open_model(latent_model(name).string());
    const MemoryPrediction predicted = TextGenerator::predict(shared_device(), *opened, options);
    CHECK(predicted.key_value_bytes == 2 * 64 * 2 * numbers * sizeof(uint16_t));
    Device& device = shared_device();
    const auto model = open_decoder(latent_model(name));
    const SlotShape shape = conversation_slots(device.capabilities(), model->network(), 2, 64);
    const uint64_t bytes =
        SequenceSlots::predict_bytes(device.capabilities(), model->network(), shape);
    const uint64_t before = device.memory().used();
    SequenceSlots slots(device, model->network(), shape);
    for (const uint32_t length : {40u, 3u}) {
      const std::vector<uint32_t> prompt = latent_ids(*model, length);
      decode_sequence(slots, 1, {.prompt = prompt, .reuses = false}, {.max_new_tokens = 2});
      slots.end(1, false);
    }
    const auto taken = static_cast<double>(device.memory().used() - before);
    CHECK(taken <= 1.1 * static_cast<double>(bytes));
    CHECK(static_cast<double>(bytes) <= 1.1 * taken);
  }
}

TEST_CASE("Chunks of a prompt see the narrow vectors of those before") {
  for (const char* name : {"deepseek_v2", "deepseek_v3"}) {
    INFO(name);
    const auto model = open_decoder(latent_model(name), {.cache = DataType::kF32});
    const std::vector<std::vector<float>> whole = paged_logits(*model, 16);
    for (const uint32_t chunk : {1u, 4u}) {
      const std::vector<std::vector<float>> parts = paged_logits(*model, chunk);
      double worst = 0;
      for (size_t step = 0; step < whole.size(); ++step)
        for (size_t i = 0; i < whole[step].size(); ++i)
          worst = std::max(worst, std::abs(double{whole[step][i]} - parts[step][i]));
      INFO("chunks of " << chunk << " are off by " << worst);
      CHECK(worst < 1e-4);
    }
  }
}

TEST_CASE("A decode step has two products for the matrices of all heads, and one attention") {
  for (const char* name : {"deepseek_v2", "deepseek_v3"}) {
    INFO(name);
    const auto model = open_decoder(latent_model(name));
    SequenceSlots slots = slots_of(model->network(), 1, 32);
    std::map<Op, size_t> ops;
    for (const Node& node : slots.step_program().nodes()) ++ops[node.kernel->op];
    const size_t layers = model->network().decoder.layers.size();
    CHECK(ops[Op::kLatentAttention] == layers);
    CHECK(ops[Op::kHeadMatmul] == 2 * layers);
    CHECK(ops[Op::kRopeAppend] == layers);
    CHECK(ops[Op::kAttention] == 0);
  }
}

TEST_CASE("Narrow vectors in q8_0 move logits by no more than they may") {
  const TemporaryFolder folder;
  write_model_of_blocks(folder.path());
  const auto exact = open_decoder(folder.path(), {.cache = DataType::kF32}),
             blocks = open_decoder(folder.path(), {.cache = DataType::kQ8_0});
  const CausalLayer& layer = blocks->network().decoder.layers[0];
  CHECK(layer.cache(DataType::kQ8_0).bytes(10) == 10 * row_bytes(DataType::kQ8_0, 96));
  const std::vector<uint32_t> ids = latent_ids(*exact, 60);
  const double off = difference(latent_logits(*blocks, ids), latent_logits(*exact, ids));
  INFO("off by " << off << " of the largest");
  CHECK(off < 0.05);
  CHECK(off > 0);  // blocks were used
}

TEST_CASE("Blocks for keys and values are refused where what rotates is no whole block") {
  CHECK_THAT(model_error([&] {
               open_decoder(latent_model("deepseek_v3"), {.cache = DataType::kQ8_0});
             }).value_or("no error"),
             ContainsSubstring("are blocks of 32, the model's heads have 8"));
}

TEST_CASE("Latent attention and products of heads refuse what does not fit") {
  ProgramBuilder builder(shared_device(), "test");
  const auto layer = builder.layer("latent");
  const Tensor q = builder.activation({1, 2, 3 * 12}, DataType::kF32),
               cache = builder.activation({1, 5, 12}, DataType::kF32),
               weight = builder.activation({3 * 8, 4}, DataType::kF32);
  const auto attended = [&](AttentionOptions options) {
    return shape_error([&] { latent_attention(builder, {q, 0}, cache, options); });
  };
  const AttentionOptions good = {.heads = 3, .kv_heads = 1, .head_size = 12, .value_size = 8};
  CHECK(latent_attention(builder, {q, 0}, cache, good).shape == Shape{1, 2, 3 * 8});
  AttentionOptions bad = good;
  bad.kv_heads = 3;
  CHECK_THAT(attended(bad), ContainsSubstring("one key for all heads"));
  bad = good;
  bad.head_size = 8;
  CHECK_THAT(attended(bad), ContainsSubstring("the cache is (1, 5, 12)"));
  bad = good;
  bad.soft_cap = 3;
  CHECK_THAT(attended(bad), ContainsSubstring("no row of latent attention has"));

  const Tensor y = builder.activation({1, 2, 3 * 8}, DataType::kF32);
  const auto multiplied = [&](HeadMatmulOptions options) {
    return shape_error([&] { head_matmul(builder, q, weight, y, options); });
  };
  const HeadMatmulOptions fits = {
      .heads = 3, .depth = 4, .columns = 8, .x_step = 12, .y_step = 8, .weight_step = 8};
  CHECK(multiplied(fits) == "no error");
  HeadMatmulOptions off = fits;
  off.weight_first = 1;
  CHECK_THAT(multiplied(off), ContainsSubstring("3 heads end at row of the weight 25"));
  off = fits;
  off.y_step = 7;
  CHECK_THAT(multiplied(off), ContainsSubstring("are 7 apart in y"));
  off = fits;
  off.transposed = true;
  CHECK_THAT(multiplied(off), ContainsSubstring("its rows must have 8 columns"));
}
