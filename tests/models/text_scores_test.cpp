// Scores of given texts: log probabilities against those of float64 logits, hidden states, vectors
// of decoders, errors.
#include "mulciber/text_scores.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <numeric>

#include "models/generation/decoder_vectors.h"
#include "models/generation/token_scorer.h"
#include "mulciber/batch_generator.h"
#include "mulciber/text_encoder.h"
#include "mulciber/text_generator.h"
#include "tests/catch.h"
#include "tests/device.h"
#include "tests/model_error.h"
#include "tests/small_decoder.h"
#include "tests/support.h"

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

template <typename Number>
std::vector<double> numbers(const CheckpointTensor& tensor) {
  std::vector<double> values(tensor.elements());
  for (size_t i = 0; i < values.size(); ++i) {
    Number value;
    std::memcpy(&value, tensor.bytes.data() + sizeof(Number) * i, sizeof(Number));
    values[i] = static_cast<double>(value);
  }
  return values;
}

std::vector<double> expected_values(const SafetensorsFile& file, const std::string& name) {
  const CheckpointTensor* tensor = file.find(name);
  REQUIRE(tensor != nullptr);
  if (tensor->type == CheckpointType::kI64) return numbers<int64_t>(*tensor);
  if (tensor->type == CheckpointType::kF64) return numbers<double>(*tensor);
  return numbers<float>(*tensor);
}

std::vector<uint32_t> expected_ids(const SafetensorsFile& file, const std::string& name) {
  const std::vector<double> ids = expected_values(file, name);
  return {ids.begin(), ids.end()};
}

/// The log softmax of a row at one id.
double log_probability(std::span<const double> logits, uint32_t id) {
  const double largest = *std::ranges::max_element(logits);
  double sum = 0;
  for (const double logit : logits) sum += std::exp(logit - largest);
  return logits[id] - largest - std::log(sum);
}

/// Checks a reference model's scores and states in some of its cases.
void check_model(const std::filesystem::path& path, const std::filesystem::path& folder) {
  const auto model = open_decoder(path);
  const SafetensorsFile expected(folder / "expected.safetensors");
  const size_t vocabulary = model->network().vocabulary;
  double worst = 0;
  for (const std::string name : {"len7", "len33"}) {
    const std::vector<uint32_t> ids = expected_ids(expected, name + "/input_ids");
    const std::vector<double> logits = expected_values(expected, name + "/logits");
    // LongRoPE's frequencies depend on the context's length.
    TokenScorer scorer(shared_device(), model->network(), static_cast<uint32_t>(ids.size()));
    const std::vector<TokenScore> scores = scorer.score(ids, 1, {.likeliest = 3, .ranks = true});
    REQUIRE(scores.size() == ids.size() - 1);
    for (size_t i = 0; i < scores.size(); ++i) {
      const std::span row = std::span(logits).subspan(i * vocabulary, vocabulary);
      const auto error = [&](uint32_t id, double found) {
        worst = std::max(worst, std::abs(found - log_probability(row, id)));
      };
      error(ids[i + 1], scores[i].log_probability);
      for (const TokenProbability& one : scores[i].likeliest) error(one.id, one.log_probability);
      // Ids whose logits differ by no more than the error may swap ranks.
      const double own = row[ids[i + 1]];
      const auto above = std::ranges::count_if(row, [&](double x) { return x > own + 2e-4; });
      const auto near = std::ranges::count_if(row, [&](double x) { return x > own - 2e-4; });
      CHECK((scores[i].rank >= above && scores[i].rank < near));
    }
  }
  INFO("largest difference of a log probability " << worst);
  CHECK(worst < 1e-4);

  const std::vector<uint32_t> ids = expected_ids(expected, "states9/input_ids");
  std::vector<double> states = expected_values(expected, "states9/hidden_states");
  std::vector<uint32_t> layers(model->network().decoder.layers.size() + 1);
  std::iota(layers.begin(), layers.end(), 0);
  if (model->network().decoder.keeps_states()) {
    // Transformers gives Mamba's states without the embedding, and the last layer's both before and
    // after its norm.
    const auto of_layer = static_cast<std::ptrdiff_t>(states.size() / layers.size());
    states.erase(states.end() - 2 * of_layer, states.end() - of_layer);
    layers.erase(layers.begin());
  }
  TokenScorer scorer(shared_device(), model->network(), static_cast<uint32_t>(ids.size()));
  const std::vector<float> found = scorer.states(ids, layers);
  REQUIRE(found.size() == states.size());
  double error = 0, largest = 1;
  for (size_t i = 0; i < found.size(); ++i) {
    error = std::max(error, std::abs(found[i] - states[i]));
    largest = std::max(largest, std::abs(states[i]));
  }
  INFO("largest difference of a state " << error << ", largest state " << largest);
  CHECK(error < 1e-4 * largest);
  // States of one layer alone, and of the last alone, which another program computes.
  const size_t of_layer = found.size() / layers.size();
  for (const uint32_t layer : {1u, layers.back()}) {
    const std::vector<float> one = scorer.states(ids, {&layer, 1});
    CHECK(std::ranges::equal(
        one, std::span(found).subspan((layer - layers.front()) * of_layer, of_layer)));
  }
}

}  // namespace

TEST_CASE("The small decoder's scores and states are those of float64") {
  check_model(small_decoder(), small_decoder());
}

TEST_CASE("Every reference decoder's scores and states are those of float64") {
  if (fixtures_dir().empty()) MULCIBER_SKIP("the reference models are not here");
  const std::string folder = GENERATE(
      "models/gpt2", "models/llama", "models/llama_realistic", "models/qwen2", "models/qwen3",
      "models/gemma3", "models2/phi3", "models2/mixtral", "models2/qwen3_moe", "models2/gemma2",
      "models2/olmo2", "models2/granite", "models2/phi", "models2/gpt_neox", "models2/falcon",
      "models2/falcon_new", "models2/starcoder2", "models2/stablelm", "models2/cohere",
      "models2/cohere2", "models2/smollm3", "models2/glm4", "models2/mamba");
  INFO(folder);
  check_model(fixtures_dir() / folder, fixtures_dir() / folder);
}

TEST_CASE("What texts have in common is computed once, and changes no bit") {
  const auto model = open_decoder(small_decoder());
  const std::vector<uint32_t> text = prompt_of(100, 3);
  std::vector<uint32_t> other = text;
  for (size_t i = 75; i < other.size(); ++i) other[i] = 7 + i % 90;
  const auto make = [&] { return TokenScorer(shared_device(), model->network(), 100, 0, 32); };
  TokenScorer scorer = make(), fresh = make();
  scorer.score(text, 90);
  const uint64_t read = scorer.read_tokens();
  const std::vector<double> found = scorer.score(other, 80);
  CHECK(scorer.reused_tokens() == 64);
  CHECK(scorer.read_tokens() - read == 99 - 64);
  CHECK(fresh.score(other, 80) == found);
  CHECK(fresh.reused_tokens() == 0);
  // All scores are wanted, so no token can be skipped.
  const std::vector<double> all = scorer.score(other, 1);
  CHECK(scorer.reused_tokens() == 64);
  CHECK(all == fresh.score(other, 1));
  CHECK(std::equal(found.begin(), found.end(), all.end() - found.size()));
  // Passes of other lengths add up in another order.
  const std::vector<double> whole =
      TokenScorer(shared_device(), model->network(), 100).score(other, 80);
  for (size_t i = 0; i < whole.size(); ++i) CHECK(std::abs(whole[i] - found[i]) < 1e-4);
}

TEST_CASE("A generator scores texts and continuations, and goes on where it was") {
  const std::shared_ptr<Device> device = shared_handle();
  TextGenerator generator(device, small_decoder().string(), {.context = 64});
  const GenerateOptions greedy = {.max_new_tokens = 6, .ignore_end = true};
  const Generation before = generator.generate("the red hammer", greedy);
  size_t calls = 0;
  const std::vector<ScoreInput> inputs = {{"", "the red hammer and the blue nails"},
                                          {"the red hammer ", "and the blue nails"},
                                          {"the red hammer", " and the blue nails"}};
  const TextScores scores = generator.score(
      inputs,
      {.likeliest = 2, .ranks = true, .progress = [&](size_t done, size_t) { calls = done; }});
  CHECK(calls == 3);
  const TextScore &whole = scores.texts[0], &rest = scores.texts[1], &spaced = scores.texts[2];
  CHECK(whole.complete);
  CHECK(whole.tokens.size() + 1 == whole.ids.size());  // all but <bos>
  REQUIRE(rest.tokens.size() < whole.tokens.size());
  CHECK(rest.ids == whole.ids);
  CHECK(spaced.tokens.size() == rest.tokens.size());
  double sum = 0;
  for (size_t i = 0; i < rest.tokens.size(); ++i) {
    const TokenScore& token = rest.tokens[i];
    const TokenScore& same = whole.tokens[whole.tokens.size() - rest.tokens.size() + i];
    CHECK(token.id == same.id);
    CHECK(token.log_probability == same.log_probability);
    CHECK(token.likeliest.size() == 2);
    CHECK((token.rank == 0) == (token.likeliest[0].id == token.id));
    sum += token.log_probability;
  }
  CHECK(rest.sum == sum);
  CHECK(rest.mean() == sum / static_cast<double>(rest.tokens.size()));
  CHECK(scores.statistics.scored_tokens ==
        whole.tokens.size() + rest.tokens.size() + spaced.tokens.size());
  // The text is given as ids.
  const std::vector<ScoreInput> by_ids = {{.ids = whole.ids}};
  const TextScore same = generator.score(by_ids, {.likeliest = 2}).texts[0];
  CHECK(same.ids == whole.ids);
  CHECK(same.tokens.size() == whole.tokens.size());
  CHECK(same.sum == whole.sum);
  // The conversation is unchanged.
  CHECK(generator.generate("the red hammer", greedy).ids == before.ids);
  CHECK(generator.statistics().reused_tokens == before.prompt_ids.size() - 1);

  const std::atomic<bool> cancel{true};
  CHECK_FALSE(generator.score(inputs, {.cancel = &cancel}).texts[0].complete);
  const auto refused = [&](const ScoreInput& input) {
    return model_error([&] { generator.score({&input, 1}); }).value_or("");
  };
  CHECK_THAT(refused({"", ""}), ContainsSubstring("text 1 of 1: has no tokens to score"));
  CHECK_THAT(refused({"", std::string(400, 'x')}), ContainsSubstring("the context 64"));
  const uint32_t last = generator.hidden_states("red", std::vector<uint32_t>{0}).width;
  CHECK(last == generator.width());
  CHECK_THAT(
      model_error([&] { generator.hidden_states("red", std::vector<uint32_t>{99}); }).value_or(""),
      ContainsSubstring("layer: 99 is not there"));
}

TEST_CASE("What an answer says of its tokens is what scoring it says") {
  BatchGeneratorOptions options;
  options.generator = {.context = 64, .sequences = 2};
  BatchGenerator batch(shared_handle(), open_model(small_decoder().string()), options);
  std::vector<uint32_t> ids;
  std::vector<float> said;
  BatchRequest request;
  request.prompt = "the red hammer";
  request.max_new_tokens = 8;
  request.ignore_end = true;
  request.log_probabilities = 1;
  request.on_token = [&](const BatchToken& token) {
    ids.push_back(token.id);
    said.push_back(token.log_probability.value());
  };
  std::vector<uint32_t> prompt;
  request.on_end = [&](const Generation& generation, std::string_view) {
    prompt = generation.prompt_ids;
  };
  batch.submit(std::move(request));
  while (batch.step()) {
  }
  const auto model = open_decoder(small_decoder());
  TokenScorer scorer(shared_device(), model->network(), 64);
  std::vector<uint32_t> text = prompt;
  text.insert(text.end(), ids.begin(), ids.end());
  const std::vector<double> scores = scorer.score(text, static_cast<uint32_t>(prompt.size()));
  REQUIRE(scores.size() == said.size());
  // The batch keeps keys and values in 16 bits.
  for (size_t i = 0; i < said.size(); ++i) CHECK(std::abs(scores[i] - said[i]) < 5e-2);
}

TEST_CASE("A batch scores texts between two steps, and goes on where it was") {
  BatchGeneratorOptions options;
  options.generator = {.context = 64, .sequences = 2};
  BatchGenerator batch(shared_handle(), open_model(small_decoder().string()), options);
  std::vector<std::vector<uint32_t>> answers;
  const auto submit = [&] {
    BatchRequest request;
    request.prompt = "the red hammer";
    request.max_new_tokens = 8;
    request.ignore_end = true;
    request.on_end = [&](const Generation& made, std::string_view) { answers.push_back(made.ids); };
    batch.submit(std::move(request));
  };
  const std::vector<ScoreInput> inputs = {{"", "the red hammer and the blue nails"}};
  submit();
  while (batch.step()) {
  }
  submit();
  for (int i = 0; i < 4; ++i) batch.step();
  const TextScores scores = batch.score(inputs, {.likeliest = 1});
  while (batch.step()) {
  }
  REQUIRE(answers.size() == 2);
  CHECK(answers[0] == answers[1]);
  TextGenerator alone(shared_handle(), small_decoder().string(), {.context = 64});
  const TextScores wanted = alone.score(inputs, {.likeliest = 1});
  CHECK(scores.texts[0].ids == wanted.texts[0].ids);
  CHECK(scores.texts[0].sum == wanted.texts[0].sum);
}

TEST_CASE("States are pooled as sentence-transformers does it") {
  const std::vector<float> states = {1, 5, 2, -4, 6, 2};  // three tokens of two columns
  const auto of = [&](EncoderOutput output) { return pooled(states, 2, output, false); };
  CHECK(of(EncoderOutput::kFirst) == std::vector<float>{1, 5});
  CHECK(of(EncoderOutput::kLast) == std::vector<float>{6, 2});
  CHECK(of(EncoderOutput::kMax) == std::vector<float>{6, 5});
  CHECK(of(EncoderOutput::kMean) == std::vector<float>{3, 1});
  CHECK(std::abs(of(EncoderOutput::kMeanSqrtLength)[0] - 9 / std::sqrt(3.0)) < 1e-6);
  CHECK(std::abs(of(EncoderOutput::kWeightedMean)[0] - 23.0 / 6) < 1e-6);
  CHECK(std::abs(of(EncoderOutput::kWeightedMean)[1] - 3.0 / 6) < 1e-6);
  const std::vector<float> unit = pooled(states, 2, EncoderOutput::kLast, true);
  CHECK(std::abs(unit[0] - 6 / std::sqrt(40.0)) < 1e-6);
}

TEST_CASE("A decoder's vectors are its pooled states") {
  TextGenerator generator(shared_handle(), small_decoder().string(),
                          {.key_values = KeyValueStorage::kF32, .context = 64});
  const std::string text = "the red hammer and the blue nails";
  const auto layers =
      static_cast<uint32_t>(open_decoder(small_decoder())->network().decoder.layers.size());
  const HiddenStates states = generator.hidden_states(text, {&layers, 1});
  TextEncoder encoder(shared_handle(), small_decoder().string());
  CHECK(encoder.width() == states.width);
  for (const auto& [pooling, output] : {std::pair(Pooling::kLast, EncoderOutput::kLast),
                                        std::pair(Pooling::kMean, EncoderOutput::kMean)}) {
    for (const bool normalize : {false, true}) {
      const TextVector found = encoder.embed(text, {.pooling = pooling, .normalize = normalize});
      CHECK(found.tokens == states.ids.size());
      CHECK(found.values == pooled(states.values, states.width, output, normalize));
    }
  }
  CHECK_THAT(model_error([&] { encoder.embed(text, {.pooling = Pooling::kPooler}); }).value_or(""),
             ContainsSubstring("has no pooler"));
}

TEST_CASE("A decoder's folder says how its states become a vector") {
  const TemporaryFolder folder;
  for (const auto& entry : std::filesystem::directory_iterator(small_decoder()))
    std::filesystem::copy(entry.path(), folder.path() / entry.path().filename());
  const auto write = [&](const std::string& name, const std::string& text) {
    std::filesystem::create_directories((folder.path() / name).parent_path());
    std::ofstream(folder.path() / name) << text;
  };
  write("modules.json",
        R"([{"idx":0,"name":"0","path":"","type":"sentence_transformers.models.Transformer"},)"
        R"({"idx":1,"name":"1","path":"1_Pooling","type":"sentence_transformers.models.Pooling"},)"
        R"({"idx":2,"name":"2","path":"","type":"sentence_transformers.models.Normalize"}])");
  write("1_Pooling/config.json",
        R"({"pooling_mode_lasttoken":true,"pooling_mode_mean_tokens":false})");
  write("config_sentence_transformers.json", R"({"prompts":{"query":"the red "}})");
  TextEncoder encoder(shared_handle(), folder.path().string());
  TextEncoder plain(shared_handle(), small_decoder().string());
  CHECK(encoder.embed("hammer", {.prompt_name = "query"}).values ==
        plain.embed("the red hammer", {.pooling = Pooling::kLast, .normalize = true}).values);
}
