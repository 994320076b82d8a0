// Adapters whose format is not the model's. llama.cpp's conversions of names and rows are written
// here a second time, independent of the library's readers.
#include <algorithm>
#include <optional>
#include <random>
#include <set>

#include "models/adapters/adapter_stack.h"
#include "models/adapters/adapters.h"
#include "tests/catch.h"
#include "tests/lora_families.h"
#include "tests/model_error.h"

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;
namespace fs = std::filesystem;

namespace {

using Names = std::vector<std::pair<std::string, std::string>>;  // Hugging Face's, GGUF's

/// How a family's modules are named in both formats, and how converters reorder queries and keys.
struct Style {
  std::string architecture;  // in GGUF files
  std::string layers = "model.layers.", output = "lm_head";
  bool permuted = false;  // rows of queries and keys, in the order of the original Llama
  bool grouped = false;   // Hugging Face's matrix has each group's queries, key and value together
  Names parts = {{"self_attn.q_proj", "attn_q"}, {"self_attn.k_proj", "attn_k"},
                 {"self_attn.v_proj", "attn_v"}, {"self_attn.o_proj", "attn_output"},
                 {"mlp.gate_proj", "ffn_gate"},  {"mlp.up_proj", "ffn_up"},
                 {"mlp.down_proj", "ffn_down"}};
};

const Names kPhi = {{"self_attn.q_proj", "attn_q"}, {"self_attn.k_proj", "attn_k"},
                    {"self_attn.v_proj", "attn_v"}, {"self_attn.dense", "attn_output"},
                    {"mlp.fc1", "ffn_up"},          {"mlp.fc2", "ffn_down"}};
const Names kFused = {{"self_attn.qkv_proj", "attn_qkv"},
                      {"self_attn.o_proj", "attn_output"},
                      {"mlp.gate_up_proj", "ffn_up"},
                      {"mlp.down_proj", "ffn_down"}};
const Names kGpt2Parts = {{"attn.c_attn", "attn_qkv"},
                          {"attn.c_proj", "attn_output"},
                          {"mlp.c_fc", "ffn_up"},
                          {"mlp.c_proj", "ffn_down"}};
const Names kGptJParts = {{"attn.q_proj", "attn_q"}, {"attn.k_proj", "attn_k"},
                          {"attn.v_proj", "attn_v"}, {"attn.out_proj", "attn_output"},
                          {"mlp.fc_in", "ffn_up"},   {"mlp.fc_out", "ffn_down"}};
const Names kNeoX = {{"attention.query_key_value", "attn_qkv"},
                     {"attention.dense", "attn_output"},
                     {"mlp.dense_h_to_4h", "ffn_up"},
                     {"mlp.dense_4h_to_h", "ffn_down"}};
const Names kFalconParts = {{"self_attention.query_key_value", "attn_qkv"},
                            {"self_attention.dense", "attn_output"},
                            {"mlp.dense_h_to_4h", "ffn_up"},
                            {"mlp.dense_4h_to_h", "ffn_down"}};
const Names kMambaParts = {{"mixer.in_proj", "ssm_in"},
                           {"mixer.x_proj", "ssm_x"},
                           {"mixer.dt_proj", "ssm_dt"},
                           {"mixer.out_proj", "ssm_out"}};
const Names kDeepSeekParts = {{"self_attn.q_proj", "attn_q"},
                              {"self_attn.q_a_proj", "attn_q_a"},
                              {"self_attn.q_b_proj", "attn_q_b"},
                              {"self_attn.kv_a_proj_with_mqa", "attn_kv_a_mqa"},
                              {"self_attn.kv_b_proj", "attn_kv_b"},
                              {"self_attn.o_proj", "attn_output"},
                              {"mlp.gate_proj", "ffn_gate"},
                              {"mlp.up_proj", "ffn_up"},
                              {"mlp.down_proj", "ffn_down"},
                              {"mlp.gate", "ffn_gate_inp"},
                              {"mlp.shared_experts.gate_proj", "ffn_gate_shexp"},
                              {"mlp.shared_experts.up_proj", "ffn_up_shexp"},
                              {"mlp.shared_experts.down_proj", "ffn_down_shexp"}};
Names attention_and(const Names& more) {
  Names names = {{"self_attn.q_proj", "attn_q"},
                 {"self_attn.k_proj", "attn_k"},
                 {"self_attn.v_proj", "attn_v"},
                 {"self_attn.o_proj", "attn_output"}};
  names.insert(names.end(), more.begin(), more.end());
  return names;
}

const Style kPlainLlama = {.architecture = "llama", .permuted = true};
Style llama_like(const char* architecture) { return {.architecture = architecture}; }
Style permuted_like(const char* architecture) {
  return {.architecture = architecture, .permuted = true};
}
Style style_with(const char* architecture, const Names& parts) {
  return {.architecture = architecture, .parts = parts};
}
const Style kMixtralStyle = {.architecture = "llama",
                             .permuted = true,
                             .parts = attention_and({{"block_sparse_moe.gate", "ffn_gate_inp"}})};
const Style kGptOssStyle = {.architecture = "gpt-oss",
                            .parts = attention_and({{"mlp.router", "ffn_gate_inp"}})};
const Style kQwen3MoeStyle = {.architecture = "qwen3moe",
                              .parts = attention_and({{"mlp.gate", "ffn_gate_inp"}})};
const Style kQwen2MoeStyle = {
    .architecture = "qwen2moe",
    .parts = attention_and({{"mlp.gate_proj", "ffn_gate"},
                            {"mlp.up_proj", "ffn_up"},
                            {"mlp.down_proj", "ffn_down"},
                            {"mlp.gate", "ffn_gate_inp"},
                            {"mlp.shared_expert.gate_proj", "ffn_gate_shexp"},
                            {"mlp.shared_expert.up_proj", "ffn_up_shexp"},
                            {"mlp.shared_expert.down_proj", "ffn_down_shexp"},
                            {"mlp.shared_expert_gate", "ffn_gate_inp_shexp"}})};
const Style kNeoXStyle = {.architecture = "gptneox",
                          .layers = "gpt_neox.layers.",
                          .output = "embed_out",
                          .grouped = true,
                          .parts = kNeoX};
const Style kFalconStyle = {
    .architecture = "falcon", .layers = "transformer.h.", .grouped = true, .parts = kFalconParts};
const Style kGpt2Style = {.architecture = "gpt2", .layers = "transformer.h.", .parts = kGpt2Parts};
const Style kGptJStyle = {.architecture = "gptj", .layers = "transformer.h.", .parts = kGptJParts};
const Style kMambaStyle = {
    .architecture = "mamba", .layers = "backbone.layers.", .parts = kMambaParts};

/// A module's names in both formats, without ".weight".
struct Module {
  std::string hugging_face, gguf;
  bool rotates = false, fused = false;
};

Module module_of(const std::string& own, const Style& style) {
  if (own == style.output || own == "output") return {style.output, "output"};
  const bool gguf = own.starts_with("blk.");
  const std::string rest = own.substr(gguf ? 4 : style.layers.size());
  const std::string number = rest.substr(0, rest.find('.')), part = rest.substr(number.size() + 1);
  for (const auto& [theirs, ours] : style.parts)
    if ((gguf ? ours : theirs) == part)
      return {style.layers + number + "." + theirs, "blk." + number + "." + ours,
              ours == "attn_q" || ours == "attn_k", ours == "attn_qkv"};
  FAIL("a module that no style names: " << own);
  return {};
}

/// Hugging Face's B with its rows in the order that converters give them.
std::vector<float> converted(const std::vector<float>& b, const Module& module, const Style& style,
                             const DecoderAttention& attention) {
  const uint64_t rows = b.size() / kMadeRank, H = attention.head_size;
  std::vector<uint64_t> from;  // by row
  if (module.rotates && style.permuted) {
    for (uint64_t head = 0; head < rows; head += H)
      for (uint64_t i = 0; i < H / 2; ++i)
        for (const uint64_t half : {uint64_t{0}, H / 2}) from.push_back(head + half + i);
  } else if (module.fused && style.grouped) {
    const uint64_t groups = attention.kv_heads, group = rows / groups;
    const auto add = [&](uint64_t first, uint64_t count) {
      for (uint64_t g = 0; g < groups; ++g)
        for (uint64_t i = 0; i < count; ++i) from.push_back(g * group + first + i);
    };
    add(0, group - 2 * H);
    add(group - 2 * H, H);
    add(group - H, H);
  } else {
    return b;
  }
  std::vector<float> ordered;
  for (const uint64_t row : from)
    ordered.insert(ordered.end(), b.begin() + static_cast<std::ptrdiff_t>(row * kMadeRank),
                   b.begin() + static_cast<std::ptrdiff_t>((row + 1) * kMadeRank));
  return ordered;
}

/// One adapter of every product, as a PEFT folder and as a GGUF file.
struct Both {
  fs::path folder, file;
};

Both write_both(const fs::path& model, const Style& style, const fs::path& to, unsigned seed = 5,
                const std::set<std::string>& without = {}) {
  const Checkpoint checkpoint(model);
  const DecoderConfig config = read_decoder_config(checkpoint);
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  const auto draw = [&](uint64_t count, double size) {
    std::vector<float> values(count);
    for (float& value : values) value = static_cast<float>(size) * normal(random);
    return values;
  };
  MadeTensors tensors;
  std::vector<AdapterMatrix> matrices;
  for (const auto& [own, transposed] : targets(checkpoint, config)) {
    const Module module = module_of(own, style);
    if (without.count(module.gguf.substr(module.gguf.rfind('.') + 1)) > 0) continue;
    const CheckpointTensor& matrix = checkpoint.at(own + ".weight");
    const uint64_t rows = matrix.shape[transposed ? 1 : 0],
                   columns = matrix.shape[transposed ? 0 : 1];
    const std::vector<float> a = draw(kMadeRank * columns, 1 / std::sqrt(double(columns))),
                             b = draw(rows * kMadeRank, 0.3);
    const std::string name = "base_model.model." + module.hugging_face;
    tensors[name + ".lora_A.weight"] = {"F32", {kMadeRank, columns}, bytes_of(a)};
    tensors[name + ".lora_B.weight"] = {"F32", {rows, kMadeRank}, bytes_of(b)};
    matrices.push_back({module.gguf + ".weight.lora_a", kMadeRank, columns, a});
    matrices.push_back({module.gguf + ".weight.lora_b", rows, kMadeRank,
                        converted(b, module, style, config.attention)});
  }
  REQUIRE(!matrices.empty());
  const Both both = {to / "peft", to / "adapter.gguf"};
  write_file(both.folder / "adapter_config.json",
             nlohmann::json({{"peft_type", "LORA"}, {"r", kMadeRank}, {"lora_alpha", 2}}).dump());
  write_file(both.folder / "adapter_model.safetensors", tensor_bytes(tensors));
  write_gguf_adapter(style.architecture, 2, matrices, both.file);
  return both;
}

std::vector<OpenAdapter> opened_formats(const std::vector<std::pair<fs::path, float>>& adapters) {
  std::vector<AdapterFile> files;
  for (const auto& [path, scale] : adapters)
    files.push_back({path.string(), std::to_string(files.size()), scale});
  return open_adapters(files);
}

std::vector<double> with_adapter(const fs::path& model, const fs::path& adapter,
                                 bool merged = false) {
  return logits(model, {.adapters = opened_formats({{adapter, 1}}), .merge_adapters = merged});
}

/// Checks that both formats of one adapter give the same logits.
void check_both(const fs::path& model, const Style& style) {
  INFO(model.string());
  const TemporaryFolder folder;
  const Both both = write_both(model, style, folder.path());
  const std::vector<double> folders = with_adapter(model, both.folder),
                            file = with_adapter(model, both.file);
  const double worst = difference(file, folders), moved = difference(logits(model, {}), folders);
  INFO("largest difference " << worst << ", of the adapter " << moved);
  CHECK(worst == 0);
  CHECK(moved > 1e-2);
}

/// Checks a model in both formats, with an adapter in both, beside the weights and merged.
void check_pair(const fs::path& folder, const fs::path& file, const Style& style, double bound) {
  INFO(folder.string());
  const TemporaryFolder made;
  const Both both = write_both(folder, style, made.path());
  const std::vector<double> expected = with_adapter(folder, both.folder);
  CHECK(difference(logits(folder, {}), expected) > 1e-2);
  for (const fs::path& adapter : {both.folder, both.file}) {
    const double beside = difference(with_adapter(file, adapter), expected);
    const double merged = difference(with_adapter(file, adapter, true), expected);
    const double in_folder = difference(with_adapter(folder, adapter, true), expected);
    INFO(adapter.filename().string() << ": beside " << beside << ", merged " << merged
                                     << ", merged into the folder's weights " << in_folder);
    CHECK(beside < bound);
    CHECK(merged < bound);
    CHECK(in_folder < bound);
  }
}

}  // namespace

TEST_CASE("Adapters of either format do the same to models in folders") {
  const fs::path own = data_dir() / "decoder_families";
  check_both(own / "mistral", kPlainLlama);
  check_both(own / "olmo", permuted_like("olmo"));
  check_both(own / "gemma", llama_like("gemma"));
  check_both(own / "qwen2_moe", kQwen2MoeStyle);
  check_both(own / "gptj", kGptJStyle);
  check_both(own / "falcon_mamba", kMambaStyle);
  check_both(data_dir() / "gemma3", llama_like("gemma3"));
  if (fixtures_dir().empty()) MULCIBER_SKIP("the reference models are not there");
  check_both(fixtures_dir() / "models/llama", kPlainLlama);
  const fs::path more = fixtures_dir() / "models2";
  for (const char* alike : {"cohere2", "olmo2", "gemma2"})
    check_both(more / alike, llama_like(alike));
  for (const char* permuted : {"smollm3", "granite"})
    check_both(more / permuted, permuted_like(permuted));
  check_both(more / "mixtral", kMixtralStyle);
  check_both(more / "cohere", llama_like("command-r"));
  check_both(more / "gpt_oss", kGptOssStyle);
  check_both(more / "qwen3_moe", kQwen3MoeStyle);
  check_both(more / "stablelm", llama_like("stablelm"));
  check_both(more / "phi", style_with("phi2", kPhi));
  check_both(more / "phi3", style_with("phi3", kFused));
  check_both(more / "glm4", style_with("glm4", attention_and({{"mlp.gate_up_proj", "ffn_up"},
                                                              {"mlp.down_proj", "ffn_down"}})));
  check_both(more / "starcoder2",
             style_with("starcoder2",
                        attention_and({{"mlp.c_fc", "ffn_up"}, {"mlp.c_proj", "ffn_down"}})));
  check_both(more / "gpt_neox", kNeoXStyle);
  check_both(more / "falcon", kFalconStyle);
  check_both(more / "falcon_new", kFalconStyle);
  check_both(more / "mamba", kMambaStyle);
  for (const char* latent : {"deepseek_v2", "deepseek_v3"})
    check_both(more / latent, style_with("deepseek2", kDeepSeekParts));
}

TEST_CASE("Adapters of either format do the same to models in GGUF files") {
  const fs::path files = data_dir() / "gguf_decoders";
  check_both(files / "gpt_neox.gguf", kNeoXStyle);
  check_both(files / "falcon_7b.gguf", kFalconStyle);
  check_both(files / "falcon_40b.gguf", kFalconStyle);
  check_both(files / "starcoder2.gguf",
             style_with("starcoder2",
                        attention_and({{"mlp.c_fc", "ffn_up"}, {"mlp.c_proj", "ffn_down"}})));
  check_both(files / "stablelm.gguf", llama_like("stablelm"));
  check_both(files / "phi.gguf", style_with("phi2", kPhi));
  check_both(files / "cohere.gguf", llama_like("command-r"));
  check_both(files / "cohere2.gguf", llama_like("cohere2"));
  check_both(files / "glm4.gguf",
             style_with("glm4", attention_and({{"mlp.gate_up_proj", "ffn_up"},
                                               {"mlp.down_proj", "ffn_down"}})));
  check_both(files / "smollm3.gguf", permuted_like("smollm3"));
  check_both(files / "olmo.gguf", permuted_like("olmo"));
  check_both(files / "gemma.gguf", llama_like("gemma"));
  check_both(files / "gemma3.gguf", llama_like("gemma3"));
  check_both(files / "gpt_oss.gguf", kGptOssStyle);
  check_both(files / "qwen2_moe.gguf", kQwen2MoeStyle);
  check_both(files / "mamba.gguf", kMambaStyle);
  if (fixtures_dir().empty()) MULCIBER_SKIP("the reference models are not there");
  for (const char* blocks : {"tiny-F16.gguf", "tiny-Q8_0.gguf", "tiny-Q4_K_M.gguf"})
    check_both(fixtures_dir() / "gguf" / blocks, kPlainLlama);
}

TEST_CASE("A model in either format with an adapter in either is the same model") {
  const fs::path tiny = data_dir() / "gguf_families", files = data_dir() / "gguf_decoders";
  // The matrices of these files are in f16, where merging rounds once more.
  check_pair(tiny / "gpt2", tiny / "gpt2.gguf", kGpt2Style, 5e-3);
  check_pair(tiny / "qwen2", tiny / "qwen2.gguf", llama_like("qwen2"), 5e-3);
  check_pair(data_dir() / "decoder_families/gptj", files / "gptj.gguf", kGptJStyle, 1e-5);
  check_pair(data_dir() / "decoder_families/falcon_mamba", files / "falcon_mamba.gguf", kMambaStyle,
             2e-5);
  if (fixtures_dir().empty()) MULCIBER_SKIP("the reference models are not there");
  const fs::path more = fixtures_dir() / "models2";
  const auto check = [&](const char* name, const Style& style) {
    check_pair(more / name, more / name / "model-F32.gguf", style, 1e-5);
  };
  // llama.cpp itself wrote these files.
  check("phi3", style_with("phi3", kFused));
  check("gemma2", llama_like("gemma2"));
  check("olmo2", llama_like("olmo2"));
  check("granite", permuted_like("granite"));
  check("mixtral", kMixtralStyle);
  check("qwen3_moe", kQwen3MoeStyle);
  check_pair(more / "mamba", files / "mamba.gguf", kMambaStyle, 1e-5);
  check_pair(more / "deepseek_v2", files / "deepseek_v2.gguf",
             style_with("deepseek2", kDeepSeekParts), 1e-5);
}

TEST_CASE("An adapter of keys and values in one matrix stands beside matrices of their own") {
  if (fixtures_dir().empty()) MULCIBER_SKIP("the reference models are not there");
  const TemporaryFolder made;
  const fs::path folder = fixtures_dir() / "models2/deepseek_v3",
                 file = data_dir() / "gguf_decoders/deepseek_v3.gguf";
  const Both both = write_both(folder, style_with("deepseek2", kDeepSeekParts), made.path());
  const double worst =
      difference(with_adapter(file, both.folder), with_adapter(folder, both.folder));
  INFO("largest difference " << worst);
  CHECK(worst < 1e-5);
}

TEST_CASE("Experts that a GGUF file has in one tensor take adapters of each") {
  if (fixtures_dir().empty()) MULCIBER_SKIP("the reference models are not there");
  for (const char* name : {"mixtral", "qwen3_moe"}) {
    INFO(name);
    const TemporaryFolder made;
    const fs::path folder = fixtures_dir() / "models2" / name, file = folder / "model-F32.gguf";
    const Checkpoint checkpoint(folder);
    write_adapted(checkpoint, targets(checkpoint, read_decoder_config(checkpoint), true),
                  made.path() / "adapter", made.path() / "changed");
    const std::vector<double> expected = logits(made.path() / "changed", {});
    for (const bool merged : {false, true}) {
      const double worst =
          difference(with_adapter(file, made.path() / "adapter", merged), expected);
      INFO((merged ? "merged " : "beside ") << worst);
      CHECK(worst < 2e-5);
    }
  }
}

TEST_CASE("Adapters of both formats stand beside one another") {
  const fs::path tiny = data_dir() / "gguf_families";
  for (const char* model : {"qwen2", "qwen2.gguf"}) {
    const TemporaryFolder first, second;
    const Both a = write_both(tiny / model, llama_like("qwen2"), first.path(), 1),
               b = write_both(tiny / model, llama_like("qwen2"), second.path(), 2, {"attn_k"});
    const auto mixed = [&](const fs::path& one, const fs::path& other, bool merged) {
      return logits(tiny / model, {.adapters = opened_formats({{one, 0.5f}, {other, -1.25f}}),
                                   .merge_adapters = merged});
    };
    for (const bool merged : {false, true}) {
      const std::vector<double> expected = mixed(a.folder, b.folder, merged);
      CHECK(difference(mixed(a.file, b.folder, merged), expected) == 0);
      CHECK(difference(mixed(a.folder, b.file, merged), expected) == 0);
      CHECK(difference(mixed(a.file, b.file, merged), expected) == 0);
    }
    // Both formats of an adapter take the same memory.
    const Checkpoint checkpoint(tiny / model);
    const auto bytes = [&](const fs::path& one, const fs::path& other) {
      const ModelOptions options = {.adapters = opened_formats({{one, 1}, {other, 1}})};
      return stacked_adapters(checkpoint, read_decoder_config(checkpoint), options)->bytes();
    };
    CHECK(bytes(a.file, b.folder) == bytes(a.folder, b.folder));
  }
}
