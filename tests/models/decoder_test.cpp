// Decoder-only models: reference values, scores of tokens, the work of a decode step, memory.
#include "models/generation/decoder_model.h"

#include <cmath>

#include "models/generation/perplexity.h"
#include "tests/catch.h"
#include "tests/device.h"
#include "tests/model_error.h"
#include "tests/small_decoder.h"
#include "tests/support.h"
#include "tests/verify_report.h"

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("The small Gemma model meets every reference value") {
  const auto model = open_decoder(small_decoder());
  check_report(verify(*model, small_decoder() / "expected.safetensors"));
}

TEST_CASE("Small models of families without a fixture meet every reference value") {
  const std::string family = GENERATE("gemma", "gptj", "olmo", "olmo_clip", "qwen2_moe",
                                      "gpt_oss_mxfp4", "falcon_mamba", "mistral");
  INFO(family);
  const std::filesystem::path folder = source_dir() / "tests/data/decoder_families" / family;
  const auto model = open_decoder(folder);
  const VerifyReport report = verify(*model, folder / "expected.safetensors");
  check_report(report, family == "falcon_mamba" ? 5 : 6);  // it has no attention
}

TEST_CASE("Experts larger than what a descriptor covers take several, and meet their values") {
  // The model's expert matrices take 23,040 bytes where they have a gate, and its control words
  // 21,504.
  DeviceOptions options = options_from_environment({.ignore_verdicts = true});
  options.limits = "storage=22K";
  const std::unique_ptr<Device> narrow = Device::open(options);
  const std::filesystem::path folder = source_dir() / "tests/data/decoder_families/qwen2_moe";
  const Checkpoint checkpoint(folder);
  DecoderModel model(*narrow, checkpoint, read_decoder_config(checkpoint), {});
  check_report(verify(model, folder / "expected.safetensors"));
}

TEST_CASE("Small models of families in GGUF files meet every reference value") {
  const std::string name = GENERATE("gpt_neox", "gpt_neox_sequential", "falcon_7b", "falcon_40b",
                                    "starcoder2", "stablelm", "phi", "cohere", "cohere2", "glm4",
                                    "smollm3", "olmo", "gemma", "gpt_oss", "qwen2_moe", "mamba",
                                    "falcon_mamba", "gptj", "deepseek_v2", "deepseek_v3", "gemma3");
  INFO(name);
  const std::filesystem::path folder = source_dir() / "tests/data/gguf_decoders";
  const auto model = open_decoder(folder / (name + ".gguf"));
  check_report(verify(*model, folder / (name + ".safetensors")), 2);
}

TEST_CASE("A decode step has at most eight dispatches a layer") {
  const auto model = open_decoder(small_decoder());
  SequenceSlots slots = slots_of(model->network(), 1, 32);
  std::map<std::string, int> dispatches;
  for (const Node& node : slots.step_program().nodes())
    dispatches[node.label.substr(0, std::string("layers.0").size())]++;
  REQUIRE(dispatches.count("layers.0") == 1);
  // A device that binds only four buffers rotates in two dispatches.
  const int most = shared_device().capabilities().max_storage_buffers < 5 ? 9 : 8;
  for (const auto& [layer, count] : dispatches) {
    INFO(layer);
    CHECK(count <= most);
  }
}

TEST_CASE("A decode step of a file of mixed types has at most eight dispatches a layer") {
  const std::filesystem::path file = fixtures_dir() / "gguf/tiny-Q4_K_M.gguf";
  if (!std::filesystem::exists(file)) MULCIBER_SKIP("the reference models are not here");
  const Checkpoint checkpoint(file.string());
  DecoderModel model(shared_device(), checkpoint, read_decoder_config(checkpoint), {});
  SequenceSlots slots = slots_of(model.network(), 1, 32);
  std::map<std::string, int> dispatches;
  bool mixed = false;
  for (const CausalLayer& layer : model.network().decoder.layers)
    mixed = mixed || !layer.attention.qkv.more_segments.empty();
  CHECK(mixed);
  for (const Node& node : slots.step_program().nodes())
    dispatches[node.label.substr(0, std::string("layers.0").size())]++;
  const Capabilities& device = shared_device().capabilities();
  // Devices without subgroup arithmetic run a product per type, and devices that bind four buffers
  // rotate in two dispatches.
  const bool merges = device.has(kSubgroupArithmetic) && device.max_storage_buffers >= 5;
  for (const auto& [layer, count] : dispatches) {
    INFO(layer);
    CHECK(count <= (merges ? 8 : 11));
  }
}

TEST_CASE("Tokens are scored as the logits of a whole pass say") {
  const auto model = open_decoder(small_decoder());
  for (uint32_t length : {2u, 9u, 61u}) {
    INFO(length << " tokens");
    const std::vector<uint32_t> ids = prompt_of(length, 12);
    const std::vector<std::string> wanted = {"logits"};
    const NamedArrays outputs =
        model->forward({{"input_ids", {{1, length}, {ids.begin(), ids.end()}}}}, wanted);
    const std::vector<double>& logits = outputs.at("logits").values;
    const size_t vocabulary = model->network().vocabulary;
    TokenScorer scorer(shared_device(), model->network(), length);
    for (uint32_t first : {1u, (length + 1) / 2, length - 1}) {
      const std::vector<double> scores = scorer.score(ids, first);
      REQUIRE(scores.size() == length - first);
      double worst = 0;
      for (uint32_t i = first; i < length; ++i) {
        const double* row = &logits[(i - 1) * vocabulary];
        double sum = 0;
        for (size_t id = 0; id < vocabulary; ++id) sum += std::exp(row[id]);
        worst = std::max(worst, std::abs(scores[i - first] - (row[ids[i]] - std::log(sum))));
      }
      INFO("from " << first << ": largest difference " << worst);
      CHECK(worst < 1e-4);
    }
  }
}

TEST_CASE("Perplexity is of second halves, each chunk with the first token of a text") {
  const auto model = open_decoder(small_decoder());
  const std::vector<uint32_t> ids = prompt_of(45, 3);  // two chunks of 20, and 5 tokens are left
  TokenScorer scorer(shared_device(), model->network(), 20);
  double sum = 0;
  for (uint32_t chunk : {0u, 1u}) {
    std::vector<uint32_t> own(ids.begin() + 20 * chunk, ids.begin() + 20 * (chunk + 1));
    own[0] = 2;
    for (const double score : scorer.score(own, 11)) sum -= score;
  }
  const Perplexity all = perplexity(scorer, ids, 20, 2, 0, {});
  CHECK(all.chunks == 2);
  CHECK(all.tokens == 18);
  CHECK(std::abs(all.value - std::exp(sum / 18)) < 1e-9 * all.value);
  CHECK(all.error > 0);
  CHECK(perplexity(scorer, ids, 20, 2, 1, {}).tokens == 9);
  CHECK_THAT(model_error([&] { perplexity(scorer, prompt_of(39, 3), 20, 2, 0, {}); }).value_or(""),
             ContainsSubstring("two chunks of 20"));
}

TEST_CASE("A decode step records, allocates and writes nothing") {
  const auto model = open_decoder(small_decoder());
  SequenceSlots slots = slots_of(model->network(), 1, 96);
  const std::vector<uint32_t> prompt = prompt_of(8, 7);
  const auto decode = [&](uint32_t tokens) {
    decode_sequence(slots, 0, {.prompt = prompt, .reuses = false}, {.max_new_tokens = tokens});
    slots.end(0, false);
  };
  decode(3);
  const auto run = [&](uint32_t tokens) {
    Counters& c = shared_device().counters();
    const uint64_t waits = c.cpu_waits,
                   before[] = {c.command_buffers, c.descriptor_writes, c.pipelines};
    const uint64_t allocations = c.allocations;
    decode(tokens);
    CHECK(c.command_buffers == before[0]);
    CHECK(c.descriptor_writes == before[1]);
    CHECK(c.pipelines == before[2]);
    return std::pair(c.allocations - allocations, c.cpu_waits - waits);
  };
  // All these tokens fit one page: for a second one, a page table is uploaded.
  REQUIRE(slots.page_tokens() >= prompt.size() + 23);
  const auto few = run(3), many = run(24);
  CHECK(many.first == few.first);
  CHECK(many.second - few.second <= 21);
}

TEST_CASE("Predicted device memory is what slots take") {
  // A single slot has rows for draft tokens beside it.
  const uint32_t count = GENERATE(1u, 2u);
  CAPTURE(count);
  Device& device = shared_device();
  const auto model = open_decoder(small_decoder());
  const SlotShape shape = conversation_slots(device.capabilities(), model->network(), count, 64);
  const uint64_t predicted =
      SequenceSlots::predict_bytes(device.capabilities(), model->network(), shape);
  const uint64_t before = device.memory().used();
  SequenceSlots slots(device, model->network(), shape);
  for (const uint32_t length : {60u, 2u}) {
    const std::vector<uint32_t> prompt = prompt_of(length, 8);
    decode_sequence(slots, count - 1, {.prompt = prompt, .reuses = false}, {.max_new_tokens = 2});
    slots.end(count - 1, false);
  }
  const uint64_t taken = device.memory().used() - before;
  INFO("predicted " << predicted << ", taken " << taken);
  CHECK(static_cast<double>(taken) <= 1.1 * static_cast<double>(predicted));
  CHECK(static_cast<double>(predicted) <= 1.1 * static_cast<double>(taken));
}
