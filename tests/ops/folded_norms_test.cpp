// Products that begin with a norm: the bits are those of two dispatches, and a layer has two
// dispatches fewer.
#include <fmt/format.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "checkpoints/config_reader.h"
#include "checkpoints/json.h"
#include "conformance/case_program.h"
#include "models/families/families.h"
#include "models/networks/decoder_network.h"
#include "ops/matmul.h"
#include "ops/norm.h"
#include "runtime/op.h"
#include "tests/catch.h"
#include "tests/small_decoder.h"

using namespace mulciber;
using namespace mulciber::conformance;
using namespace mulciber::tests;

namespace {

/// A row that folds the norm, and the two rows it replaces.
struct Rows {
  const char *folded, *norm, *product;
};

std::vector<std::byte> output_of(const OpCase& c, const Kernel* row) {
  CaseProgram program(shared_device(), c, row);
  program.fill(draw_inputs(c, 0));
  program.program().run();
  return program.read_outputs().at(0);
}

std::map<std::string, int> dispatches_by_layer(const DecoderModel& model) {
  SequenceSlots slots = slots_of(model.network(), 1, 32);
  std::map<std::string, int> dispatches;
  for (const Node& node : slots.step_program().nodes())
    dispatches[node.label.substr(0, std::string("layers.0").size())]++;
  return dispatches;
}

}  // namespace

TEST_CASE("A product normalizes to the bits of a norm before it") {
  const Rows rows = GENERATE(
      Rows{"norm_matvec_subgroup_f32", "rms_norm_workgroup_f32", "matvec_subgroup_f32"},
      Rows{"norm_matvec_subgroup_f32_f16", "rms_norm_workgroup_f32", "matvec_subgroup_f32_f16"},
      Rows{"norm_matvec_subgroup_f32_blocks", "rms_norm_workgroup_f32",
           "matvec_subgroup_f32_blocks"},
      Rows{"norm_matvec_workgroup_f32", "rms_norm_workgroup_f32", "matvec_workgroup_f32"},
      Rows{"norm_matvec_workgroup_f32_f16", "rms_norm_workgroup_f32", "matvec_workgroup_f32_f16"},
      Rows{"norm_matvec_workgroup_f32_blocks", "rms_norm_workgroup_f32",
           "matvec_workgroup_f32_blocks"},
      Rows{"norm_matvec_f32", "rms_norm_f32", "matvec_f32"},
      Rows{"norm_matvec_f32_f16", "rms_norm_f32", "matvec_f32_f16"},
      Rows{"norm_matvec_f32_blocks", "rms_norm_f32", "matvec_f32_blocks"});
  const Kernel &folded = *find_kernel(rows.folded), &norm = *find_kernel(rows.norm),
               &product = *find_kernel(rows.product);
  for (const Kernel* row : {&folded, &norm, &product}) {
    const std::string reason = why_not_runnable(*row, shared_device().capabilities());
    if (!reason.empty()) MULCIBER_SKIP(fmt::format("{} {}", row->id, reason));
  }
  for (uint64_t k : {32, 480, 512, 768, 2080}) {
    INFO(rows.folded << ", " << k << " columns");
    const uint64_t shape[] = {37, k};
    OpCase c = op_cases(Op::kNormMatmul).make(shape, folded.types);
    const std::vector<std::byte> in_one = output_of(c, &folded);
    c.build = [&](ProgramBuilder& builder, std::span<const Tensor> inputs) {
      builder.force(norm);
      builder.force(product);
      const Tensor x = rms_norm(builder, inputs[0], inputs[2], 1e-5f);
      return std::vector<Tensor>{matmul(builder, x, inputs[1])};
    };
    CHECK(output_of(c, nullptr) == in_one);
  }
}

TEST_CASE("A decoder layer with folded norms decodes in six dispatches, to the same logits") {
  const std::string type = GENERATE("F16", "Q4_K_M");
  const std::filesystem::path file = fixtures_dir() / ("gguf/tiny-" + type + ".gguf");
  if (!std::filesystem::exists(file)) MULCIBER_SKIP("the reference models are not here");
  const Capabilities& device = shared_device().capabilities();
  if (!device.has(kSubgroupArithmetic) || device.max_storage_buffers < 5)
    MULCIBER_SKIP("without subgroup arithmetic or with four buffers layers have more dispatches");
  const auto apart = open_decoder(file, {.folded_norms = false}),
             folded = open_decoder(file, {.folded_norms = true});
  const std::map<std::string, int> few = dispatches_by_layer(*folded),
                                   many = dispatches_by_layer(*apart);
  // The last layer also has the norm before the output product.
  CHECK(few.at("layers.0") == 6);
  CHECK(few.at("layers.1") == 7);
  CHECK(many.at("layers.0") == 8);
  CHECK(many.at("layers.1") == 8);
  CHECK(few.count("first_norm") == 0);
  const std::vector<uint32_t> prompt = prompt_of(1, 7);
  CHECK(alone(*folded, prompt, 12) == alone(*apart, prompt, 12));
  const NamedArrays token = {{"input_ids", {{1, 1}, {static_cast<double>(prompt[0])}}}};
  const std::vector<std::string> wanted = {"logits"};
  const std::vector<double> a = folded->forward(token, wanted).at("logits").values,
                            b = apart->forward(token, wanted).at("logits").values;
  REQUIRE(a.size() == b.size());
  double worst = 0;
  for (size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::abs(a[i] - b[i]));
  INFO("largest difference " << worst);
  CHECK(worst < 2e-4);  // the bound that decoder_reference_test.cpp has for models' logits
}

TEST_CASE("Products of many weights in blocks leave the norm to a dispatch of its own") {
  const auto [type, hidden, folds] =
      GENERATE(table<DataType, uint64_t, bool>({{DataType::kQ4_K, 14336, false},
                                                {DataType::kQ4_K, 2048, true},
                                                {DataType::kF16, 14336, true}}));
  // The shapes of Llama 3.1 8B, in two layers.
  const Json config = {
      {"hidden_size", 4096},       {"intermediate_size", hidden}, {"num_hidden_layers", 2},
      {"num_attention_heads", 32}, {"num_key_value_heads", 8},    {"max_position_embeddings", 64},
      {"vocab_size", 512},         {"rms_norm_eps", 1e-5},        {"hidden_act", "silu"}};
  const DecoderConfig decoder = kLlama.read(ConfigReader(config, "config.json", ""));
  PlannedWeights::Segments segments;
  for (const WeightSpec& spec : decoder_weight_table(decoder))
    segments[spec.name] = {{spec.role == WeightRole::kMatrix ? type : DataType::kF32, spec.shape}};
  PlannedWeights weights(segments);
  const DecoderNetwork network = decoder_network(decoder, weights, 64, {.folded_norms = true});
  // The 6,144 x 4,096 weights of queries, keys and values are few enough.
  CHECK(network.decoder.first_norm->folds);
  for (const CausalLayer& layer : network.decoder.layers)
    CHECK(layer.after_attention->folds == folds);
  CHECK(network.decoder.layers[0].after_feed_forward.folds);
}
