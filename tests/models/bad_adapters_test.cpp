// Adapters that are broken, or made for another model: each ends in one error that names file and
// tensor.
#include <cmath>

#include "models/adapters/adapter_stack.h"
#include "models/adapters/adapters.h"
#include "models/adapters/low_rank_adapter.h"
#include "models/adapters/weights_load.h"
#include "models/core/device_weights.h"
#include "models/generation/decoder_architecture.h"
#include "tests/catch.h"
#include "tests/gguf_bytes.h"
#include "tests/lora_files.h"

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

constexpr const char* kQuery = "base_model.model.model.layers.0.self_attn.q_proj";

using Change = std::function<void(json&, MadeTensors&)>;

std::string adapter_refusal(const fs::path& adapter, const fs::path& family = "qwen2",
                            bool merge = false) {
  return model_error([&] {
           const Checkpoint checkpoint(tiny_model("") / family);
           ModelOptions options = {
               .adapters = open_adapters(std::vector<AdapterFile>{{adapter.string(), "a"}}),
               .merge_adapters = merge};
           const DecoderConfig config = read_decoder_config(checkpoint);
           const auto stack =
               merge ? merged_adapters(decoder_weight_table(config), checkpoint, options)
                     : stacked_adapters(checkpoint, config, options);
           for (const auto& [weight, update] : stack->beside().updates) {
             stack->down(weight);
             stack->up(weight);
           }
         })
      .value_or("no error");
}

std::string refusal_of(const Change& change, const std::string& from = "qwen2_all") {
  const TemporaryFolder folder;
  return adapter_refusal(changed_adapter(folder.path(), from, change));
}

std::string of(const char* matrix) { return std::string(kQuery) + ".lora_" + matrix + ".weight"; }

}  // namespace

TEST_CASE("A matrix of the model in its adapter changes nothing, and another is refused") {
  const Checkpoint model(tiny_model("qwen2"));
  const CheckpointTensor* query = model.find("model.layers.0.self_attn.q_proj.weight");
  REQUIRE(query);
  const MadeTensor copy = {
      name_of(query->type),
      query->shape,
      {reinterpret_cast<const char*>(query->bytes.data()), query->bytes.size()}};
  const std::string name = std::string(kQuery) + ".base_layer.weight";
  CHECK(refusal_of([&](json&, MadeTensors& t) { t[name] = copy; }) == "no error");
  const std::string changed = refusal_of([&](json&, MadeTensors& t) {
    t[name] = copy;
    t[name].bytes[t[name].bytes.size() - 1] ^= 0x10;
  });
  CHECK_THAT(changed,
             ContainsSubstring(name) && ContainsSubstring("is not the same as the model's"));
  const std::string larger = refusal_of([&](json&, MadeTensors& t) {
    t[name] = copy;
    std::swap(t[name].shape[0], t[name].shape[1]);
    t[name].shape[0] /= 2;
    t[name].shape[1] *= 2;
  });
  CHECK_THAT(larger, ContainsSubstring("is not the same as the model's"));
}

TEST_CASE("A copied output is compared with a GGUF file's, whatever that calls it") {
  const fs::path file = data_dir() / "gguf_decoders/stablelm.gguf";
  const Checkpoint model(file);
  const CheckpointTensor* output = model.find("output.weight");
  REQUIRE((output && output->type == CheckpointType::kF32));
  const std::string module = "base_model.model.lm_head", copy = module + ".base_layer.weight";
  const auto message = [&](const std::function<void(MadeTensor&)>& change) {
    const TemporaryFolder folder;
    const auto made = [&](json& c, MadeTensors& t) {
      const uint64_t rank = c["r"].get<uint64_t>(), rows = output->shape[0],
                     columns = output->shape[1];
      c["target_modules"] = {"lm_head"};
      t.clear();
      t[module + ".lora_A.weight"] = {
          "F32", {rank, columns}, std::string(4 * rank * columns, '\0')};
      t[module + ".lora_B.weight"] = {"F32", {rows, rank}, std::string(4 * rows * rank, '\0')};
      t[copy] = {"F32",
                 output->shape,
                 {reinterpret_cast<const char*>(output->bytes.data()), output->bytes.size()}};
      change(t[copy]);
    };
    return adapter_refusal(changed_adapter(folder.path(), "qwen2_all", made), file);
  };
  CHECK(message([](MadeTensor&) {}) == "no error");
  CHECK_THAT(message([](MadeTensor& tensor) { tensor.bytes[tensor.bytes.size() - 1] ^= 0x10; }),
             ContainsSubstring(copy) && ContainsSubstring("is not the same as the model's"));
  CHECK_THAT(message([](MadeTensor& tensor) {
               --tensor.shape[0];
               tensor.bytes.resize(4 * tensor.shape[0] * tensor.shape[1]);
             }),
             ContainsSubstring("is not the same as the model's"));
}

TEST_CASE("Adapters of PEFT that are broken are refused") {
  CHECK(refusal_of([](json&, MadeTensors&) {}) == "no error");
  CHECK(refusal_of([](json& c, MadeTensors&) { c["init_lora_weights"] = "eva"; }) == "no error");
  const std::pair<Change, std::vector<std::string>> cases[] = {
      {[](json&, MadeTensors& t) { t.erase(of("A")); },
       {"adapter_model.safetensors", of("B"), "without its lora_A"}},
      {[](json&, MadeTensors& t) { t.erase(of("B")); }, {of("A"), "without its lora_B"}},
      {[](json&, MadeTensors& t) {
         t[of("B")].shape = {64, 2};
       },
       {of("A"), "rank 4", "[64, 2]"}},
      {[](json&, MadeTensors& t) {
         t[of("A")].shape = {8, 16};
         t[of("B")].shape = {16, 8};
       },
       {of("A"), "rank 8", "says 4"}},
      {[](json& c, MadeTensors& t) {
         c["rank_pattern"] = {{"layers.0.self_attn.q_proj", 8}};
         t[of("A")].shape = {8, 16};
         t[of("B")].shape = {16, 8};
       },
       {of("A"), "[8, 16]", "32 by 32", "another model"}},
      {[](json&, MadeTensors& t) {
         t[of("A")] = {"F32", {0, 32}, {}};
         t[of("B")] = {"F32", {32, 0}, {}};
       },
       {of("A"), "rank 0"}},
      {[](json&, MadeTensors& t) {
         t[of("A")].shape = {4, 4, 8};
       },
       {of("A"), "not that of a matrix"}},
      {[](json&, MadeTensors& t) { t[of("A")].type = "I32"; }, {of("A"), "stored as I32"}},
      {[](json&, MadeTensors& t) {
         const float nan = std::nanf("");
         std::memcpy(t[of("A")].bytes.data() + 8, &nan, sizeof nan);
       },
       {of("A"), "NaN"}},
      {[](json&, MadeTensors& t) { t["base_model.model.lm_head.weight"] = t[of("A")]; },
       {"lm_head.weight", "no matrix A or B"}},
      {[](json&, MadeTensors& t) {
         t["base_model.model.model.embed_tokens.lora_embedding_A"] = t[of("A")];
       },
       {"lora_embedding_A", "embedding"}},
      {[](json&, MadeTensors& t) {
         t[std::string(kQuery) + ".lora_magnitude_vector"] = t[of("A")];
       },
       {"DoRA"}},
      {[](json&, MadeTensors& t) {
         for (const char* matrix : {"A", "B"})
           t[std::string("base_model.model.model.layers.7.self_attn.q_proj.lora_") + matrix +
             ".weight"] = t[of(matrix)];
       },
       {"layers.7", "no such matrix"}},
      {[](json& c, MadeTensors&) { c["target_modules"] = {"k_proj"}; },
       {"target_modules", "does not name"}},
      {[](json& c, MadeTensors&) { c["target_modules"] = ".*_projector"; }, {"does not name"}},
      {[](json& c, MadeTensors&) { c["target_modules"] = "(("; }, {"regular expression"}},
      {[](json& c, MadeTensors&) { c["target_modules"] = {1}; }, {"target_modules", "no text"}},
      {[](json& c, MadeTensors&) { c["peft_type"] = "IA3"; }, {"peft_type", "IA3"}},
      {[](json& c, MadeTensors&) { c["init_lora_weights"] = "pissa_niter_4"; },
       {"init_lora_weights", "pissa_niter_4", "the model's own weights"}},
      {[](json& c, MadeTensors&) { c["init_lora_weights"] = "OLoRA"; }, {"init_lora_weights"}},
      {[](json& c, MadeTensors&) { c.erase("r"); }, {"'r'"}},
      {[](json& c, MadeTensors&) { c["r"] = 0; }, {"'r'"}},
      {[](json& c, MadeTensors&) { c["r"] = 100000; }, {"'r'"}},
      {[](json& c, MadeTensors&) { c["lora_alpha"] = "x"; }, {"lora_alpha"}},
      {[](json& c, MadeTensors&) { c["use_dora"] = true; }, {"use_dora", "DoRA"}},
      {[](json& c, MadeTensors&) { c["bias"] = "all"; }, {"bias"}},
      {[](json& c, MadeTensors&) { c["modules_to_save"] = {"lm_head"}; }, {"modules_to_save"}},
      {[](json& c, MadeTensors&) { c["target_parameters"] = "q_proj"; }, {"target_parameters"}},
      {[](json& c, MadeTensors&) {
         c["rank_pattern"] = {{"q_proj", "x"}};
       },
       {"rank_pattern"}},
      {[](json& c, MadeTensors&) { c = json::array(); }, {"not a JSON object"}},
  };
  int number = 0;
  for (const auto& [change, words] : cases) {
    const std::string message = refusal_of(change);
    INFO("case " << number++ << ": " << message);
    for (const std::string& word : words) CHECK_THAT(message, ContainsSubstring(word));
    CHECK(message.find('\n') == message.npos);
  }
}

TEST_CASE("Adapters that are cut off or not there are refused") {
  const TemporaryFolder folder;
  CHECK_THAT(adapter_refusal(folder.path()), ContainsSubstring("has no adapter_config.json"));
  CHECK_THAT(adapter_refusal(folder.path() / "nothing"), ContainsSubstring("nothing"));
  write_file(folder.path() / "adapter_config.json",
             read_file(lora_dir() / "qwen2_all/adapter_config.json"));
  CHECK_THAT(adapter_refusal(folder.path()), ContainsSubstring("has no adapter_model.safetensors"));
  write_file(folder.path() / "adapter_model.bin", "");
  CHECK_THAT(adapter_refusal(folder.path()), ContainsSubstring("safe_serialization"));
  const std::string tensors = read_file(lora_dir() / "qwen2_all/adapter_model.safetensors");
  for (const size_t size :
       {size_t{0}, size_t{5}, size_t{100}, tensors.size() / 2, tensors.size() - 1}) {
    write_file(folder.path() / "adapter_model.safetensors", tensors.substr(0, size));
    CHECK_THAT(adapter_refusal(folder.path()), ContainsSubstring("adapter_model.safetensors"));
  }
  const std::string gguf = read_file(lora_dir() / "qwen2_all.gguf");
  const fs::path file = folder.path() / "cut.gguf";
  for (const size_t size : {size_t{0}, size_t{3}, size_t{60}, gguf.size() / 2, gguf.size() - 1}) {
    write_file(file, gguf.substr(0, size));
    CHECK_THAT(adapter_refusal(file, "qwen2.gguf"), ContainsSubstring("cut.gguf"));
  }
  write_file(folder.path() / "adapter_model.safetensors", tensor_bytes({}));
  CHECK_THAT(adapter_refusal(folder.path()), ContainsSubstring("holds no adapter"));
}

TEST_CASE("Adapters for another model or another format are refused") {
  CHECK_THAT(
      adapter_refusal(lora_dir() / "gpt2_all"),
      ContainsSubstring("transformer.h.0.attn.c_attn") && ContainsSubstring("no such matrix"));
  CHECK_THAT(adapter_refusal(lora_dir() / "qwen2_all.gguf", "gpt2.gguf"),
             ContainsSubstring("architecture qwen2") && ContainsSubstring("gpt2"));
  CHECK_THAT(adapter_refusal(lora_dir() / "qwen2_all.gguf", "gpt2"),
             ContainsSubstring("architecture qwen2") && ContainsSubstring("gpt2"));
  CHECK_THAT(
      adapter_refusal(lora_dir() / "gpt2_all", "qwen2.gguf"),
      ContainsSubstring("transformer.h.0.attn.c_attn") && ContainsSubstring("no such matrix"));
  CHECK_THAT(adapter_refusal(lora_dir() / "qwen2_all", "qwen3-00001-of-00003.gguf"),
             ContainsSubstring("self_attn") && ContainsSubstring("another model"));
  // qwen3 has the same names with other shapes.
  CHECK_THAT(adapter_refusal(lora_dir() / "qwen2_all", "qwen3"),
             ContainsSubstring("self_attn") && ContainsSubstring("another model"));
  CHECK_THAT(adapter_refusal(tiny_model("qwen2.gguf"), "qwen2.gguf"),
             ContainsSubstring("general.type") && ContainsSubstring("not `adapter`"));
}

TEST_CASE("What the files of a model do not hold as a matrix takes no adapter") {
  const TemporaryFolder folder;
  changed_adapter(folder.path(), "qwen2_all", [](json& config, MadeTensors& tensors) {
    config["target_modules"] = {"kv_b_proj"};
    MadeTensors of_keys_and_values;
    for (const char* matrix : {"A", "B"})
      of_keys_and_values[std::string("base_model.model.model.layers.0.self_attn.kv_b_proj.lora_") +
                         matrix + ".weight"] = tensors[of(matrix)];
    tensors = of_keys_and_values;
  });
  // Such files have the matrix of keys transposed, and the matrix of values separate: they take
  // this adapter only as adapters for files of the other layout.
  const fs::path split = "../gguf_decoders/deepseek_v3.gguf";
  CHECK_THAT(adapter_refusal(folder.path(), split, true),
             ContainsSubstring("layers.0.self_attn.kv_b_proj.lora_A") &&
                 ContainsSubstring("not hold as a matrix of its own; leave adapters beside"));
  CHECK_THAT(adapter_refusal(folder.path(), split), ContainsSubstring("the model is a matrix of"));
  const Checkpoint marian(data_dir() / "marian");
  CHECK_THAT(model_error([&] {
               AdapterStack({},
                            open_adapters(std::vector<AdapterFile>{
                                {(lora_dir() / "qwen2_all.gguf").string(), "a"}}),
                            marian, {});
             }).value_or("no error"),
             ContainsSubstring("qwen2_all.gguf") && ContainsSubstring("matrices are called"));
}

TEST_CASE("Keys of GGUF adapters that are missing or wrong are refused") {
  const auto message = [](const std::string& kind, float alpha, const std::string& tensor) {
    GgufBytes bytes;
    bytes.counts(1, 4).key("general.type", GgufType::kString).text("adapter");
    bytes.key("adapter.type", GgufType::kString).text(kind);
    bytes.key("general.architecture", GgufType::kString).text("qwen2");
    bytes.key("adapter.lora.alpha", GgufType::kF32).number(alpha);
    bytes.tensor(tensor, {32, 4}, 0, 0).data(512);
    return adapter_refusal(bytes.write(), "qwen2.gguf");
  };
  CHECK_THAT(message("ia3", 1, "blk.0.attn_q.weight.lora_a"), ContainsSubstring("adapter.type"));
  CHECK_THAT(message("lora", std::nanf(""), "blk.0.attn_q.weight.lora_a"),
             ContainsSubstring("adapter.lora.alpha"));
  CHECK_THAT(message("lora", 1, "blk.0.attn_q.weight"), ContainsSubstring("blk.0.attn_q.weight"));
  CHECK_THAT(message("lora", 1, "blk.0.attn_q.weight.lora_b"),
             ContainsSubstring("without its lora_a"));
}

TEST_CASE("Adapters of experts that are broken are refused") {
  const fs::path model = data_dir() / "decoder_families/qwen2_moe";
  const std::string experts = "base_model.model.model.layers.0.mlp.experts.";
  const auto message = [&](const Change& change) {
    const TemporaryFolder folder;
    return adapter_refusal(changed_adapter(folder.path(), "qwen2_moe_experts", change), model);
  };
  CHECK(message([](json&, MadeTensors&) {}) == "no error");
  // Names without their module, as PEFT makes them of "all-linear", belong to experts alone.
  const auto beside = [&](json& c, MadeTensors& t) {
    const std::string query = "model.layers.0.self_attn.q_proj.";
    const std::vector<uint64_t> shape = Checkpoint(model).find(query + "weight")->shape;
    const uint64_t rank = c["r"].get<uint64_t>();
    c["target_parameters"] = {"down_proj", "gate.weight", "gate_up_proj",
                              "shared_expert_gate.weight"};
    c["target_modules"] = {"q_proj"};
    const std::string name = "base_model.model." + query;
    t[name + "lora_A.weight"] = {"F32", {rank, shape[1]}, std::string(4 * rank * shape[1], '\0')};
    t[name + "lora_B.weight"] = {"F32", {shape[0], rank}, std::string(4 * rank * shape[0], '\0')};
  };
  CHECK(message(beside) == "no error");
  const std::pair<Change, std::vector<std::string>> cases[] = {
      {[](json& c, MadeTensors&) { c["target_parameters"] = {1}; },
       {"target_parameters", "no text"}},
      {[](json& c, MadeTensors&) { c["target_parameters"] = {"mlp.experts.down_proj"}; },
       {experts + "base_layer.lora_A", "does not name"}},
      {[](json& c, MadeTensors&) { c["target_parameters"] = {"gate_up_proj"}; },
       {"base_layer", "does not name"}},
      // Ten rows are not a multiple of the number of experts.
      {[&](json&, MadeTensors& t) {
         t[experts + "lora_A.weight"] = {"F32", {10, 20}, std::string(800, '\0')};
         t[experts + "lora_B.weight"] = {"F32", {24, 10}, std::string(960, '\0')};
       },
       {experts + "lora_A", "[10, 20]", "6 matrices of 24 by 20"}},
      {[](json& c, MadeTensors&) { c["r"] = 5; }, {"lora_A", "has rank 12", "says 5"}},
      // The matrices have the other parameter's shape.
      {[&](json&, MadeTensors& t) {
         for (const char* matrix : {"A", "B"})
           std::swap(t[experts + "lora_" + matrix + ".weight"],
                     t[experts + "base_layer.lora_" + matrix + ".weight"]);
       },
       {experts, "6 matrices of", "another model"}},
      {[&](json&, MadeTensors& t) {
         t[experts + "lora_A.weight"].shape = {6, 2, 20};
       },
       {experts + "lora_A", "not that of a matrix"}},
  };
  int number = 0;
  for (const auto& [change, words] : cases) {
    const std::string found = message(change);
    INFO("case " << number++ << ": " << found);
    for (const std::string& word : words) CHECK_THAT(found, ContainsSubstring(word));
  }
  const auto stacked = [&](std::vector<uint64_t> a, std::vector<uint64_t> b, const char* weight) {
    GgufBytes bytes;
    bytes.counts(2, 4).key("general.type", GgufType::kString).text("adapter");
    bytes.key("adapter.type", GgufType::kString).text("lora");
    bytes.key("general.architecture", GgufType::kString).text("qwen2moe");
    bytes.key("adapter.lora.alpha", GgufType::kF32).number(1.0f);
    const auto size = [](const std::vector<uint64_t>& shape) {
      uint64_t elements = 1;
      for (const uint64_t extent : shape) elements *= extent;
      return elements * sizeof(float);
    };
    const std::string name = std::string("blk.0.") + weight + ".weight.lora_";
    bytes.tensor(name + "a", a, 0, 0).tensor(name + "b", b, 0, (size(a) + 31) / 32 * 32);
    bytes.data(size(a)).data(size(b));
    return adapter_refusal(bytes.write(), model);
  };
  CHECK(stacked({20, 2, 6}, {2, 24, 6}, "ffn_down_exps") == "no error");
  CHECK_THAT(stacked({20, 2, 6}, {2, 24, 5}, "ffn_down_exps"),
             ContainsSubstring("[6, 2, 20]") && ContainsSubstring("[5, 24, 2]"));
  CHECK_THAT(stacked({20, 2, 5}, {2, 24, 5}, "ffn_down_exps"),
             ContainsSubstring("[5, 2, 20]") && ContainsSubstring("6 matrices of 24 by 20"));
  CHECK_THAT(stacked({20, 2}, {2, 24}, "ffn_down_exps"),
             ContainsSubstring("[2, 20]") && ContainsSubstring("6 matrices of 24 by 20"));
  CHECK_THAT(stacked({24, 2, 6}, {2, 24, 6}, "attn_q"),
             ContainsSubstring("[6, 2, 24]") && ContainsSubstring("a matrix of 24 by 24"));
  CHECK_THAT(stacked({20, 2, 6}, {2, 24}, "ffn_down_exps"), ContainsSubstring("not that of"));
}

TEST_CASE("Factors of modules follow rank, alpha, their patterns and rsLoRA") {
  const LowRankAdapter all(lora_dir() / "qwen2_all"), some(lora_dir() / "qwen2_some"),
      gguf(lora_dir() / "qwen2_all.gguf");
  for (const LowRankUpdate& update : all.updates()) CHECK(update.factor == 1.5);
  for (const LowRankUpdate& update : gguf.updates()) CHECK(update.factor == 1.5);
  CHECK(all.updates().size() == 14);
  CHECK(some.rank() == 9);
  for (const LowRankUpdate& update : some.updates()) {
    const bool gate = update.weight.ends_with("gate_proj.weight"),
               high = update.weight == "model.layers.1.self_attn.v_proj.weight";
    CHECK(update.rank == (high ? 9 : 3));
    CHECK(update.factor == (gate ? 1.5 : 2) / std::sqrt(high ? 9 : 3));
  }
}
