// Decoder-only models: reference values, sequences in company and alone, the decode loop, memory.
#include "models/decoder_model.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>

#include "models/perplexity.h"
#include "models/verify.h"
#include "mulciber/error.h"
#include "mulciber/text_generator.h"
#include "tests/catch.h"
#include "tests/device.h"
#include "tests/model_error.h"
#include "tests/support.h"

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;
namespace fs = std::filesystem;

namespace {

fs::path small_model() { return data_dir() / "gemma3"; }

std::unique_ptr<DecoderModel> open_decoder(const fs::path& path, const ModelOptions& options = {}) {
  const Checkpoint checkpoint(path);
  return std::make_unique<DecoderModel>(shared_device(), checkpoint,
                                        read_decoder_config(checkpoint), options);
}

void check_report(const VerifyReport& report) {
  for (const VerifyResult& result : report.results) {
    INFO(result.case_name << " " << result.tensor << ": error " << result.error << ", tolerance "
                          << result.tolerance << " " << result.detail);
    CHECK(result.status == VerifyResult::Status::kPass);
  }
  CHECK(report.results.size() >= 9);
}

std::vector<uint32_t> prompt_of(uint32_t length, uint32_t seed) {
  std::vector<uint32_t> ids;
  for (uint32_t i = 0; i < length; ++i) ids.push_back((seed + 37 * i + i * i) % 400 + 5);
  return ids;
}

std::vector<uint32_t> alone(const DecoderModel& model, const std::vector<uint32_t>& prompt,
                            uint32_t tokens) {
  SequenceBatch batch(shared_device(), model.network(), {1, 96});
  return batch.generate({.prompts = {prompt}, .max_new_tokens = tokens}).rows[0].ids;
}

std::vector<double> read_values(const CheckpointTensor& tensor) {
  std::vector<double> values;
  for (size_t i = 0; i < tensor.elements(); ++i) {
    if (tensor.type == CheckpointType::kI64) {
      int64_t value;
      std::memcpy(&value, tensor.bytes.data() + 8 * i, 8);
      values.push_back(static_cast<double>(value));
    } else {
      float value;
      std::memcpy(&value, tensor.bytes.data() + 4 * i, 4);
      values.push_back(value);
    }
  }
  return values;
}

}  // namespace

TEST_CASE("The small Gemma model meets every reference value") {
  const auto model = open_decoder(small_model());
  check_report(verify(*model, small_model() / "expected.safetensors"));
}

TEST_CASE("Every decoder-only reference model meets its values") {
  if (fixtures_dir().empty()) MULCIBER_SKIP("the reference models are not here");
  const auto [folder, expected] = GENERATE(
      table<std::string, std::string>({{"models/gpt2", "models/gpt2"},
                                       {"models/llama", "models/llama"},
                                       {"models/llama_realistic", "models/llama_realistic"},
                                       {"models/qwen2", "models/qwen2"},
                                       {"variants/qwen2_sharded", "models/qwen2"},
                                       {"models/qwen3", "models/qwen3"},
                                       {"models/gemma3", "models/gemma3"},
                                       {"models2/phi3", "models2/phi3"},
                                       {"models2/phi3/model-F32.gguf", "models2/phi3"},
                                       {"models2/mixtral", "models2/mixtral"},
                                       {"models2/mixtral/model-F32.gguf", "models2/mixtral"}}));
  INFO(folder);
  const auto model = open_decoder(fixtures_dir() / folder);
  check_report(verify(*model, fixtures_dir() / expected / "expected.safetensors"));
}

TEST_CASE("GGUF models meet the values of their dequantized weights") {
  if (fixtures_dir().empty()) MULCIBER_SKIP("the reference models are not here");
  const std::string type = GENERATE("F32", "F16", "Q8_0", "Q4_0", "Q4_K_M", "Q6_K");
  INFO(type);
  const auto model = open_decoder(fixtures_dir() / "gguf" / ("tiny-" + type + ".gguf"));
  const SafetensorsFile expected(fixtures_dir() / "gguf/expected.safetensors");
  const auto values = [&](int prompt, const char* name) {
    return read_values(*expected.find(type + "/prompt" + std::to_string(prompt) + "/" + name));
  };
  for (int prompt : {0, 1}) {
    const std::vector<double> ids = values(prompt, "input_ids"),
                              greedy = values(prompt, "greedy_ids");
    CHECK(alone(*model, {ids.begin(), ids.end()}, 24) ==
          std::vector<uint32_t>(greedy.begin(), greedy.end()));
    if (prompt > 0) continue;
    std::vector<double> fed = ids;
    fed.insert(fed.end(), greedy.begin(), greedy.end() - 1);
    const std::vector<std::string> wanted = {"logits"};
    const NamedArrays outputs = model->forward({{"input_ids", {{1, fed.size()}, fed}}}, wanted);
    const std::vector<double>& found = outputs.at("logits").values;
    const std::vector<double> logits = values(prompt, "logits");
    REQUIRE(found.size() == logits.size());
    double worst = 0;
    for (size_t i = 0; i < logits.size(); ++i)
      worst = std::max(worst, std::abs(found[i] - logits[i]));
    INFO("largest difference " << worst);
    CHECK(worst < 2e-4);
  }
}

TEST_CASE("A decode step has at most eight dispatches a layer") {
  const auto model = open_decoder(small_model());
  SequenceBatch batch(shared_device(), model->network(), {1, 32});
  std::map<std::string, int> dispatches;
  for (const Node& node : batch.step().nodes())
    dispatches[node.label.substr(0, std::string("layers.0").size())]++;
  REQUIRE(dispatches.count("layers.0") == 1);
  // A device that binds only four buffers takes two for rotation.
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
  SequenceBatch batch(shared_device(), model.network(), {1, 32});
  std::map<std::string, int> dispatches;
  bool mixed = false;
  for (const CausalLayer& layer : model.network().decoder.layers)
    mixed = mixed || !layer.attention.qkv.more_segments.empty();
  CHECK(mixed);
  for (const Node& node : batch.step().nodes())
    dispatches[node.label.substr(0, std::string("layers.0").size())]++;
  const Capabilities& device = shared_device().capabilities();
  // Devices without subgroup arithmetic take a product per type, those that bind four buffers two
  // for rotation.
  const bool merges = device.has(kSubgroupArithmetic) && device.max_storage_buffers >= 5;
  for (const auto& [layer, count] : dispatches) {
    INFO(layer);
    CHECK(count <= (merges ? 8 : 11));
  }
}

TEST_CASE("Sequences of unequal lengths in one batch go as each would alone") {
  const auto model = open_decoder(small_model());
  const std::vector<std::vector<uint32_t>> prompts = {
      prompt_of(3, 1), prompt_of(41, 2), prompt_of(1, 3), {}, prompt_of(17, 4)};
  SequenceBatch batch(shared_device(), model->network(), {5, 96});
  const SequenceResult together = batch.generate({.prompts = prompts, .max_new_tokens = 20});
  for (size_t row = 0; row < prompts.size(); ++row) {
    INFO("row " << row);
    if (prompts[row].empty()) {
      CHECK(together.rows[row].ids.empty());
      CHECK(together.rows[row].end == SequenceEnd::kIdle);
      CHECK(batch.length(static_cast<uint32_t>(row)) == 0);
      continue;
    }
    CHECK(together.rows[row].ids == alone(*model, prompts[row], 20));
    CHECK(together.rows[row].end == SequenceEnd::kLimit);
    CHECK(batch.length(static_cast<uint32_t>(row)) == prompts[row].size() + 19);
  }
  // The rows go on from where they stand; one of them from further back.
  std::vector<std::vector<uint32_t>> more(5);
  more[0] = {together.rows[0].ids.back(), 9, 10};
  more[4] = {77};
  batch.truncate(4, 17);
  const SequenceResult later = batch.generate({.prompts = more, .max_new_tokens = 6});
  std::vector<uint32_t> whole = prompts[0];
  whole.insert(whole.end(), together.rows[0].ids.begin(), together.rows[0].ids.end());
  whole.insert(whole.end(), {9, 10});
  CHECK(later.rows[0].ids == alone(*model, whole, 6));
  whole = prompts[4];
  whole.push_back(77);
  CHECK(later.rows[4].ids == alone(*model, whole, 6));
}

TEST_CASE("A row is saved, and goes on in another row and another batch") {
  const auto model = open_decoder(small_model());
  const std::vector<uint32_t> prompt = prompt_of(21, 11), expected = alone(*model, prompt, 12);
  std::vector<uint32_t> begin(prompt.begin(), prompt.end() - 1);
  SequenceBatch batch(shared_device(), model->network(), {3, 96});
  batch.generate({.prompts = {begin, {}, {9, 8, 7}}, .max_new_tokens = 0});
  batch.restore(1, batch.save(0));
  CHECK(batch.length(1) == 20);
  const SequenceResult forked =
      batch.generate({.prompts = {{prompt.back()}, {prompt.back()}, {}}, .max_new_tokens = 12});
  CHECK(forked.rows[0].ids == expected);
  CHECK(forked.rows[1].ids == expected);
  batch.truncate(1, 20);
  const SavedSequence saved = batch.save(1);
  SequenceBatch other(shared_device(), model->network(), {1, 40});
  other.restore(0, saved);
  CHECK(other.generate({.prompts = {{prompt.back()}}, .max_new_tokens = 12}).rows[0].ids ==
        expected);

  SequenceBatch small(shared_device(), model->network(), {1, 16});
  CHECK_THAT(model_error([&] { small.restore(0, saved); }).value_or(""),
             ContainsSubstring("holds 20 tokens, there is room for 16"));
}

TEST_CASE("The tokens are the same whatever the number of steps per submission") {
  const auto model = open_decoder(small_model());
  const std::vector<uint32_t> prompt = prompt_of(9, 5), expected = alone(*model, prompt, 40);
  REQUIRE(expected.size() == 40);
  // The first token that did not occur before, from the middle on: it ends the sequence where it
  // comes.
  size_t end = 15;
  while (end < 39 &&
         std::count(expected.begin(), expected.begin() + static_cast<std::ptrdiff_t>(end),
                    expected[end]) > 0)
    ++end;
  for (uint32_t steps : {1u, 2u, 7u, 32u}) {
    INFO(steps << " steps per submission");
    SequenceBatch batch(shared_device(), model->network(), {1, 96});
    std::vector<uint32_t> told;
    SequenceRequest request = {.prompts = {prompt}, .max_new_tokens = 40};
    request.steps_per_submission = steps;
    request.on_token = [&](uint32_t, uint32_t id) { told.push_back(id); };
    CHECK(batch.generate(request).rows[0].ids == expected);
    CHECK(told == expected);
    batch.truncate(0, 0);
    request.stops = {expected[end]};
    const SequenceResult stopped = batch.generate(request);
    const auto first = std::find(expected.begin(), expected.end(), expected[end]);
    CHECK(stopped.rows[0].ids == std::vector<uint32_t>(expected.begin(), first + 1));
    CHECK(stopped.rows[0].end == SequenceEnd::kStop);
    CHECK(batch.length(0) == prompt.size() + static_cast<size_t>(first - expected.begin()));
  }
}

TEST_CASE("What is drawn depends on tokens, settings and seed alone") {
  const auto model = open_decoder(small_model());
  const std::vector<uint32_t> prompt = prompt_of(9, 5);
  const Sampling settings = {
      .temperature = 1.4f, .top_k = 60, .top_p = 0.97f, .repetition_penalty = 1.1f, .seed = 42};
  const auto draw = [&](const Sampling& s, uint32_t steps, std::vector<uint32_t> stops = {}) {
    SequenceBatch batch(shared_device(), model->network(), {1, 96});
    return batch.generate({.prompts = {prompt},
                           .max_new_tokens = 40,
                           .sampling = {s},
                           .stops = std::move(stops),
                           .steps_per_submission = steps});
  };
  const std::vector<uint32_t> expected = draw(settings, 1).rows[0].ids;
  REQUIRE(expected.size() == 40);
  CHECK(expected != alone(*model, prompt, 40));
  for (uint32_t steps : {2u, 7u, 32u}) {
    INFO(steps << " steps per submission");
    CHECK(draw(settings, steps).rows[0].ids == expected);
  }
  Sampling other = settings;
  other.seed = 43;
  CHECK(draw(other, 2).rows[0].ids != expected);
  CHECK(draw({.temperature = 0.5f, .top_k = 1, .seed = 9}, 2).rows[0].ids ==
        alone(*model, prompt, 40));

  // The device sees the stop itself: nothing is drawn behind it.
  const SequenceResult stopped = draw(settings, 32, {expected[20]});
  const auto first = std::find(expected.begin(), expected.end(), expected[20]);
  CHECK(stopped.rows[0].ids == std::vector<uint32_t>(expected.begin(), first + 1));
  CHECK(stopped.rows[0].end == SequenceEnd::kStop);

  // In company, each row with settings of its own; and in two turns, the second from what the first
  // left.
  SequenceBatch batch(shared_device(), model->network(), {3, 96});
  const SequenceResult together = batch.generate({.prompts = {prompt_of(30, 8), {}, prompt},
                                                  .max_new_tokens = 25,
                                                  .sampling = {other, {}, settings}});
  CHECK(together.rows[2].ids == std::vector<uint32_t>(expected.begin(), expected.begin() + 25));
  const SequenceResult later = batch.generate(
      {.prompts = {{}, {}, {expected[24]}}, .max_new_tokens = 15, .sampling = {{}, {}, settings}});
  CHECK(later.rows[2].ids == std::vector<uint32_t>(expected.begin() + 25, expected.end()));
  CHECK(std::ranges::equal(batch.ids(2).first(prompt.size()), prompt));
}

TEST_CASE("A prompt is taken in by chunks, up to the last token of the context") {
  const auto model = open_decoder(small_model());
  const std::vector<uint32_t> prompt = prompt_of(93, 6);
  const std::vector<uint32_t> expected = alone(*model, prompt, 3);
  SequenceBatch batch(shared_device(), model->network(), {1, 96});
  for (size_t first = 0; first < prompt.size();) {
    const size_t count = std::min<size_t>(first % 11 + 1, prompt.size() - first);
    SequenceRequest request = {
        .prompts = {{prompt.begin() + static_cast<std::ptrdiff_t>(first),
                     prompt.begin() + static_cast<std::ptrdiff_t>(first + count)}}};
    first += count;
    request.max_new_tokens = first < prompt.size() ? 0 : 9;
    const SequenceResult result = batch.generate(request);
    if (first < prompt.size()) {
      CHECK(result.rows[0].ids.empty());
      continue;
    }
    // Three are fed into the last three places; the fourth is known and has no place.
    REQUIRE(result.rows[0].ids.size() == 4);
    CHECK(std::equal(expected.begin(), expected.end(), result.rows[0].ids.begin()));
    CHECK(result.rows[0].end == SequenceEnd::kFull);
  }
  CHECK_THAT(
      model_error([&] { batch.generate({.prompts = {{5}}, .max_new_tokens = 1}); }).value_or(""),
      ContainsSubstring("97 tokens, there is room for 96"));
}

TEST_CASE("Tokens are scored as the logits of a whole pass say") {
  const auto model = open_decoder(small_model());
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
  const auto model = open_decoder(small_model());
  const std::vector<uint32_t> ids = prompt_of(45, 3);  // two chunks of 20, and 5 that are left over
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
  const auto model = open_decoder(small_model());
  SequenceBatch batch(shared_device(), model->network(), {1, 96});
  batch.generate({.prompts = {prompt_of(8, 7)}, .max_new_tokens = 3});
  const auto run = [&](uint32_t tokens) {
    batch.truncate(0, 0);
    Counters& c = shared_device().counters();
    const uint64_t waits = c.host_waits,
                   before[] = {c.command_buffers, c.descriptor_writes, c.pipelines};
    const uint64_t allocations = c.allocations;
    batch.generate({.prompts = {prompt_of(8, 7)}, .max_new_tokens = tokens});
    CHECK(c.command_buffers == before[0]);
    CHECK(c.descriptor_writes == before[1]);
    CHECK(c.pipelines == before[2]);
    return std::pair(c.allocations - allocations, c.host_waits - waits);
  };
  const auto few = run(3), many = run(30);
  CHECK(many.first == few.first);
  CHECK(many.second - few.second <= 27);
}

TEST_CASE("Predicted device memory is what a batch takes") {
  Device& device = shared_device();
  const auto model = open_decoder(small_model());
  const BatchShape shape = {2, 64};
  const uint64_t predicted =
      SequenceBatch::predict_bytes(device.capabilities(), model->network(), shape);
  const uint64_t before = device.memory().used();
  SequenceBatch batch(device, model->network(), shape);
  batch.generate({.prompts = {prompt_of(60, 8), prompt_of(2, 9)}, .max_new_tokens = 2});
  const uint64_t taken = device.memory().used() - before;
  INFO("predicted " << predicted << ", taken " << taken);
  CHECK(static_cast<double>(taken) <= 1.1 * static_cast<double>(predicted));
  CHECK(static_cast<double>(predicted) <= 1.1 * static_cast<double>(taken));
}

TEST_CASE("A prompt is kept in a file, for the same model and settings") {
  const std::shared_ptr<Device> device(&shared_device(), [](Device*) {});
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "prompt").string(),
                    prompt = "The red hammer and the blue nails";
  const GenerateOptions options = {.max_new_tokens = 10, .ignore_end = true};
  TextGenerator first(device, small_model().string(), {.context = 64});
  const Generation expected = first.generate(prompt, options);
  first.save_cache(file);

  TextGenerator second(device, small_model().string(), {.context = 96});
  CHECK(second.load_cache(file) == expected.prompt_ids.size() + 9);
  CHECK(second.generate(prompt, options).ids == expected.ids);
  CHECK(second.statistics().reused_tokens == expected.prompt_ids.size() - 1);

  TextGenerator half(device, small_model().string(),
                     {.load = {.half_activations = true}, .context = 64});
  CHECK_THAT(model_error([&] { half.load_cache(file); }).value_or(""),
             ContainsSubstring("another model, or other settings"));
  TextGenerator small(device, small_model().string(), {.context = 8});
  CHECK_THAT(model_error([&] { small.load_cache(file); }).value_or(""),
             ContainsSubstring("there is room for 8"));
  std::fstream bytes(file, std::ios::in | std::ios::out | std::ios::binary);
  bytes.seekp(200);
  bytes.put('!');
  bytes.close();
  CHECK_THAT(model_error([&] { second.load_cache(file); }).value_or(""),
             ContainsSubstring("is damaged"));
  fs::resize_file(file, 20);
  CHECK_THAT(model_error([&] { second.load_cache(file); }).value_or(""),
             ContainsSubstring("is not a saved prompt"));
  CHECK_THAT(model_error([&] { second.load_cache(file + "-not-there"); }).value_or(""),
             ContainsSubstring("not-there"));
  CHECK_THAT(model_error([&] { second.save_cache(file + "/in/no/folder"); }).value_or(""),
             ContainsSubstring("cannot be written"));
}

TEST_CASE("A generator continues, stops at a text and reuses what it holds") {
  const std::shared_ptr<Device> device(&shared_device(), [](Device*) {});
  TextGenerator generator(device, small_model().string(), {.context = 64});
  std::string streamed;
  GenerateOptions options = {.max_new_tokens = 20, .ignore_end = true};
  options.on_text = [&](std::string_view piece) { streamed += piece; };
  const Generation whole = generator.generate("The red hammer", options);
  CHECK(whole.end == GenerateEnd::kTokenLimit);
  CHECK(whole.ids.size() == 20);
  CHECK(streamed == whole.text);
  CHECK(generator.statistics().reused_tokens == 0);

  const Generation again = generator.generate("The red hammer", options);
  CHECK(again.ids == whole.ids);
  CHECK(generator.statistics().reused_tokens == whole.prompt_ids.size() - 1);

  // A stop text from the middle of the answer is not shown, and the answer ends before it.
  REQUIRE(whole.text.size() > 8);
  const std::string stop = whole.text.substr(whole.text.size() / 2, 3);
  options.stop = {stop};
  streamed.clear();
  const Generation stopped = generator.generate("The red hammer", options);
  CHECK(stopped.end == GenerateEnd::kStopText);
  CHECK(stopped.text == whole.text.substr(0, whole.text.find(stop)));
  CHECK(streamed == stopped.text);

  options.stop.clear();
  CHECK(generator.default_sampling().temperature == 0);
  options.sampling = Sampling{.temperature = 1.5f, .seed = 3};
  const Generation drawn = generator.generate("The red hammer", options);
  CHECK(drawn.ids != whole.ids);
  options.steps_per_submission = 5;
  CHECK(generator.generate("The red hammer", options).ids == drawn.ids);
  options.sampling->top_p = -1;
  CHECK_THROWS_AS(generator.generate("The red hammer", options), SettingError);

  // Several texts together, in two groups: as each alone.
  options = {.max_new_tokens = 12, .ignore_end = true};
  const std::vector<std::string> prompts = {"The red hammer", "A", "Blue nails are in the old box"};
  TextGenerator several(device, small_model().string(), {.context = 64, .sequences = 2});
  const std::vector<Generation> together = several.generate_all(prompts, options);
  REQUIRE(together.size() == 3);
  for (size_t i = 0; i < prompts.size(); ++i) {
    const Generation single = generator.generate(prompts[i], options);
    CHECK(together[i].ids == single.ids);
    CHECK(together[i].text == single.text);
    CHECK(together[i].end == single.end);
  }
  CHECK(several.statistics().new_tokens == 36);
  options.stop = {together[2].text.substr(together[2].text.size() / 2, 3)};
  CHECK(several.generate_all(prompts, options)[2].text ==
        generator.generate(prompts[2], options).text);

  std::string longest(1000, 'a');
  CHECK_THAT(model_error([&] { generator.generate(longest, options); }).value_or(""),
             ContainsSubstring("context of 64"));
}
