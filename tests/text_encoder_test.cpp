// Encoder-only models: values of float64, batches of unequal length, and what is refused.
#include <cmath>
#include <nlohmann/json.hpp>

#include "models/open_model.h"
#include "models/text_encoder_model.h"
#include "models/verify.h"
#include "tests/catch.h"
#include "tests/device.h"
#include "tests/model_error.h"
#include "tests/support.h"

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

/// A model that has its files open.
struct Loaded {
  OpenModel opened;
  std::unique_ptr<Model> model;

  explicit Loaded(const std::filesystem::path& path, const ModelOptions& options = {})
      : opened(path), model(load_model(shared_device(), opened, options)) {}
  EncodingModel& encoder() { return *model->encodes_text(); }
};

void check_all_pass(const VerifyReport& report, size_t least) {
  for (const VerifyResult& result : report.results) {
    INFO(result.case_name << " " << result.tensor << ": " << result.error << " above "
                          << result.tolerance << " " << result.detail);
    CHECK(result.status == VerifyResult::Status::kPass);
  }
  CHECK(report.results.size() >= least);
}

/// Ids that no tokenizer made, all of them below `vocabulary` and none of them padding.
std::vector<EncoderInput> inputs_of(std::initializer_list<size_t> lengths, uint32_t vocabulary,
                                    uint32_t types) {
  std::vector<EncoderInput> inputs;
  uint32_t number = 7;
  for (const size_t length : lengths) {
    EncoderInput input;
    for (size_t i = 0; i < length; ++i) {
      input.ids.push_back(5 + number % (vocabulary - 5));
      input.types.push_back(i > length / 2 ? types - 1 : 0);
      number = number * 31 + 11;
    }
    inputs.push_back(std::move(input));
  }
  return inputs;
}

double largest_difference(std::span<const float> a, std::span<const float> b) {
  REQUIRE(a.size() == b.size());
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i)
    largest = std::max(largest, std::abs(double{a[i]} - double{b[i]}));
  return largest;
}

/// What reading a bundled model's configuration, changed, is refused with.
std::string refusal(const char* key, const Json& value) {
  const Checkpoint checkpoint(data_dir() / "roberta_cls");
  Json config = checkpoint.config();
  config[key] = value;
  return model_error([&] { kRoberta.read(ConfigReader(config, "config.json")); })
      .value_or("no error");
}

}  // namespace

TEST_CASE("A bundled classifier gives the logits of float64") {
  const auto folder = data_dir() / "roberta_cls";
  const bool half = GENERATE(false, true);
  Loaded loaded(folder, {.activations = half ? DataType::kF16 : DataType::kF32});
  check_all_pass(verify(*loaded.model, folder / "expected.safetensors"), 4);
}

TEST_CASE("Encoders of every family give the values of float64") {
  if (fixtures_dir().empty()) MULCIBER_SKIP("the reference models are not here");
  const auto [folder, expected, least] = GENERATE(table<std::string, std::string, size_t>(
      {{"models/bert", "models/bert", 10},
       {"variants/bert_old_names", "models/bert", 10},
       {"models/bert_cls", "models/bert_cls", 4},
       {"models/distilbert", "models/distilbert", 6},
       {"models/roberta", "models/roberta", 10},
       {"models2/xlm_roberta", "models2/xlm_roberta", 10},
       {"models2/xlm_roberta_cls", "models2/xlm_roberta_cls", 4},
       {"models2/electra", "models2/electra", 6},
       {"models2/mpnet", "models2/mpnet", 10},
       {"models2/albert", "models2/albert", 10},
       {"models2/modernbert", "models2/modernbert", 6},
       {"models2/modernbert_cls", "models2/modernbert_cls", 4},
       {"models2/nomic_bert", "models2/nomic_bert", 6},
       {"models2/bert_qa", "models2/bert_qa", 8}}));
  INFO(folder);
  Loaded loaded(fixtures_dir() / folder);
  check_all_pass(verify(*loaded.model, fixtures_dir() / expected / "expected.safetensors"), least);
}

TEST_CASE("A text has the same vector alone and in a batch of unequal lengths") {
  std::vector<std::filesystem::path> folders = {data_dir() / "roberta_cls"};
  if (!fixtures_dir().empty())
    for (const char* name : {"models/bert", "models2/mpnet", "models2/modernbert",
                             "models2/nomic_bert", "models2/bert_qa"})
      folders.push_back(fixtures_dir() / name);
  for (const auto& folder : folders) {
    Loaded loaded(folder);
    const EncoderConfig& config = loaded.encoder().config();
    const std::vector<EncoderInput> inputs =
        inputs_of({1, 9, 30, 4, 17}, config.vocabulary, std::max(config.embedding.types, 1u));
    std::vector<EncoderOutput> outputs = {EncoderOutput::kMean, EncoderOutput::kFirst};
    if (config.task == EncoderTask::kClassify) outputs.push_back(EncoderOutput::kLogits);
    if (config.task == EncoderTask::kAnswer) outputs.push_back(EncoderOutput::kSpans);
    if (loaded.encoder().has_pooler()) outputs.push_back(EncoderOutput::kPooler);
    for (const EncoderOutput output : outputs) {
      const EncoderResult together = loaded.encoder().encode({inputs, output, false});
      REQUIRE(together.values.size() == inputs.size());
      for (size_t i = 0; i < inputs.size(); ++i) {
        INFO(folder << ", output " << static_cast<int>(output) << ", text " << i);
        const EncoderResult alone =
            loaded.encoder().encode({std::span(inputs).subspan(i, 1), output, false});
        CHECK(largest_difference(together.values[i], alone.values.at(0)) < 2e-6);
      }
    }
  }
}

TEST_CASE("The mean is that of the states, and a normalized vector has length 1") {
  Loaded loaded(data_dir() / "roberta_cls");
  const EncoderConfig& config = loaded.encoder().config();
  const std::vector<EncoderInput> inputs = inputs_of({11}, config.vocabulary, 1);
  const std::vector<std::string> wanted = {"last_hidden_state"};
  const NamedArrays found = loaded.model->forward(
      {{"input_ids", {{1, 11}, {inputs[0].ids.begin(), inputs[0].ids.end()}}}}, wanted);
  const std::vector<double>& states = found.at("last_hidden_state").values;
  std::vector<double> mean(config.width);
  for (size_t i = 0; i < states.size(); ++i) mean[i % config.width] += states[i] / 11;
  double squares = 0;
  for (const double value : mean) squares += value * value;

  const auto plain = loaded.encoder().encode({inputs, EncoderOutput::kMean, false}).values.at(0);
  const auto unit = loaded.encoder().encode({inputs, EncoderOutput::kMean, true}).values.at(0);
  const auto first = loaded.encoder().encode({inputs, EncoderOutput::kFirst, false}).values.at(0);
  for (size_t i = 0; i < mean.size(); ++i) {
    INFO(i);
    CHECK(std::abs(plain[i] - mean[i]) < 2e-6);
    CHECK(std::abs(unit[i] - mean[i] / std::sqrt(squares)) < 2e-6);
    CHECK(std::abs(first[i] - states[i]) < 2e-6);
  }
}

TEST_CASE("What an encoder cannot be given is refused by name") {
  Loaded loaded(data_dir() / "roberta_cls");
  const auto refused = [&](EncoderInput input, EncoderOutput output) {
    return model_error([&] {
             loaded.encoder().encode({{&input, 1}, output, false});
           })
        .value_or("no error");
  };
  CHECK_THAT(refused({}, EncoderOutput::kMean), ContainsSubstring("0 tokens"));
  CHECK_THAT(refused({std::vector<uint32_t>(49, 5), {}}, EncoderOutput::kMean),
             ContainsSubstring("49 tokens, the model takes 1 to 48"));
  CHECK_THAT(refused({{330}, {}}, EncoderOutput::kMean), ContainsSubstring("token id 330"));
  CHECK_THAT(refused({{5}, {1}}, EncoderOutput::kMean), ContainsSubstring("token type 1"));
  CHECK_THAT(refused({{5}, {0, 0}}, EncoderOutput::kMean), ContainsSubstring("1 tokens and 2"));
  CHECK_THAT(refused({{5}, {}}, EncoderOutput::kSpans), ContainsSubstring("find answers"));
  CHECK_THAT(refused({{5}, {}}, EncoderOutput::kPooler), ContainsSubstring("no pooler"));
}

TEST_CASE("Configurations that no encoder here follows are refused by their keys") {
  CHECK_THAT(refusal("is_decoder", true), ContainsSubstring("is_decoder"));
  CHECK_THAT(refusal("position_embedding_type", "relative_key"),
             ContainsSubstring("position_embedding_type"));
  CHECK_THAT(refusal("num_attention_heads", 5), ContainsSubstring("does not divide"));
  CHECK_THAT(refusal("max_position_embeddings", 2), ContainsSubstring("no position behind"));
  CHECK_THAT(refusal("problem_type", "regression"), ContainsSubstring("problem_type"));
  CHECK_THAT(refusal("id2label", Json{{"0", "a"}, {"2", "b"}}), ContainsSubstring("id 1"));
  CHECK_THAT(refusal("hidden_act", "mish"), ContainsSubstring("hidden_act"));
  CHECK(refusal("type_vocab_size", 1) == "no error");
}

TEST_CASE("Labels are those of the configuration, and several where it says so") {
  const Checkpoint checkpoint(data_dir() / "roberta_cls");
  Json config = checkpoint.config();
  const auto read = [&] { return kRoberta.read(ConfigReader(config, "config.json")); };
  CHECK(read().labels == std::vector<std::string>{"LABEL_0", "LABEL_1"});
  CHECK_FALSE(read().several_labels);
  config["id2label"] = {{"0", "cold"}, {"1", "warm"}, {"2", "hot"}};
  config["problem_type"] = "multi_label_classification";
  CHECK(read().labels == std::vector<std::string>{"cold", "warm", "hot"});
  CHECK(read().several_labels);
  config["architectures"] = {"RobertaModel"};
  CHECK(read().task == EncoderTask::kNone);
  CHECK(read().labels.empty());
}
