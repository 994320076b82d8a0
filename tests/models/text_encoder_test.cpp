// Encoder-only models: float64 values, batches of unequal length, and refusals.
#include <cmath>
#include <nlohmann/json.hpp>

#include "models/encoding/sentence_config.h"
#include "models/encoding/text_encoder_model.h"
#include "models/loading/open_files.h"
#include "models/loading/verify.h"
#include "tests/catch.h"
#include "tests/device.h"
#include "tests/model_error.h"
#include "tests/support.h"

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

/// A model with its open files.
struct Loaded {
  OpenModel opened;
  std::unique_ptr<Model> model;

  explicit Loaded(const std::filesystem::path& path, const ModelOptions& options = {})
      : opened(open_files(path)), model(load_model(shared_device(), opened, options)) {}
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

/// Random ids below `vocabulary`, none of them padding.
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

double largest_error(std::span<const float> a, std::span<const float> b) {
  REQUIRE(a.size() == b.size());
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i)
    largest = std::max(largest, std::abs(double{a[i]} - double{b[i]}));
  return largest;
}

/// The message that refuses a bundled model's configuration with `key` set to `value`.
std::string encoder_refusal(const char* key, const Json& value) {
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
       {"models2/deberta_v2", "models2/deberta_v2", 6},
       {"models2/deberta_v2_cls", "models2/deberta_v2_cls", 4},
       {"models2/bert_qa", "models2/bert_qa", 8}}));
  INFO(folder);
  Loaded loaded(fixtures_dir() / folder);
  check_all_pass(verify(*loaded.model, fixtures_dir() / expected / "expected.safetensors"), least);
}

TEST_CASE("A text has the same vector alone and in a batch of unequal lengths") {
  std::vector<std::filesystem::path> folders = {data_dir() / "roberta_cls"};
  if (!fixtures_dir().empty())
    for (const char* name : {"models/bert", "models2/mpnet", "models2/modernbert",
                             "models2/nomic_bert", "models2/deberta_v2", "models2/bert_qa"})
      folders.push_back(fixtures_dir() / name);
  for (const auto& folder : folders) {
    Loaded loaded(folder);
    const EncoderConfig& config = loaded.encoder().config();
    const std::vector<EncoderInput> inputs =
        inputs_of({1, 9, 30, 4, 17}, config.vocabulary, std::max(config.embedding.types, 1u));
    std::vector<EncoderOutput> outputs = {EncoderOutput::kMean, EncoderOutput::kFirst,
                                          EncoderOutput::kMax, EncoderOutput::kLast};
    if (config.task == EncoderTask::kClassify) outputs.push_back(EncoderOutput::kLogits);
    if (config.task == EncoderTask::kAnswer) outputs.push_back(EncoderOutput::kSpans);
    if (loaded.encoder().has_pooler()) outputs.push_back(EncoderOutput::kPooler);
    for (const EncoderOutput output : outputs) {
      const EncoderResult together = loaded.encoder().encode({inputs, output, false});
      REQUIRE(together.values.size() == inputs.size());
      CHECK(together.computed_tokens == 64);  // 61 packed tokens; a rectangle would take 6 by 32
      for (size_t i = 0; i < inputs.size(); ++i) {
        INFO(folder << ", output " << static_cast<int>(output) << ", text " << i);
        const EncoderResult alone =
            loaded.encoder().encode({std::span(inputs).subspan(i, 1), output, false});
        // The errors are those of f32, so they grow with the values; a mean's values are small, a
        // single state's need not be.
        double largest = 1;
        for (const float value : alone.values.at(0))
          largest = std::max(largest, std::abs(static_cast<double>(value)));
        CHECK(largest_error(together.values[i], alone.values.at(0)) < 2e-6 * largest);
      }
    }
  }
}

TEST_CASE("Packed texts have the same vectors in 16 bits") {
  Loaded loaded(data_dir() / "roberta_cls", {.activations = DataType::kF16});
  const auto inputs = inputs_of({3, 26, 11, 1}, loaded.encoder().config().vocabulary, 1);
  const EncoderResult together = loaded.encoder().encode({inputs, EncoderOutput::kMean, true});
  CHECK(together.computed_tokens == 48);  // a rectangle would take 4 by 32
  for (size_t i = 0; i < inputs.size(); ++i) {
    INFO(i);
    const EncoderResult alone =
        loaded.encoder().encode({std::span(inputs).subspan(i, 1), EncoderOutput::kMean, true});
    CHECK(largest_error(together.values[i], alone.values.at(0)) < 1e-3);
  }
}

TEST_CASE("Texts of about the same length are not packed") {
  Loaded loaded(data_dir() / "roberta_cls");
  const auto inputs = inputs_of({16, 16, 15, 16}, loaded.encoder().config().vocabulary, 1);
  CHECK(loaded.encoder().encode({inputs, EncoderOutput::kMean, true}).computed_tokens == 64);
}

TEST_CASE("What stands for a text is made of its states, and a normalized vector has length 1") {
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
  const auto output = [&](EncoderOutput which) {
    return loaded.encoder().encode({inputs, which, false}).values.at(0);
  };
  const auto first = output(EncoderOutput::kFirst), last = output(EncoderOutput::kLast),
             largest = output(EncoderOutput::kMax), root = output(EncoderOutput::kMeanSqrtLength),
             weighted = output(EncoderOutput::kWeightedMean);
  for (size_t i = 0; i < mean.size(); ++i) {
    INFO(i);
    double highest = -INFINITY, sum = 0;
    for (size_t token = 0; token < 11; ++token) {
      highest = std::max(highest, states[token * config.width + i]);
      sum += static_cast<double>(token + 1) / 66 * states[token * config.width + i];
    }
    CHECK(std::abs(last[i] - states[10 * config.width + i]) < 2e-6);
    CHECK(std::abs(largest[i] - highest) < 2e-6);
    CHECK(std::abs(root[i] - mean[i] * std::sqrt(11.0)) < 5e-6);
    CHECK(std::abs(weighted[i] - sum) < 2e-6);
    CHECK(std::abs(plain[i] - mean[i]) < 2e-6);
    CHECK(std::abs(unit[i] - mean[i] / std::sqrt(squares)) < 2e-6);
    CHECK(std::abs(first[i] - states[i]) < 2e-6);
  }
}

TEST_CASE("A dense module goes on from what pooling gives") {
  Loaded loaded(data_dir() / "roberta_cls");
  const uint32_t width = loaded.encoder().config().width;
  const std::vector<EncoderInput> inputs =
      inputs_of({6, 2}, loaded.encoder().config().vocabulary, 1);
  const EncoderResult before = loaded.encoder().encode({inputs, EncoderOutput::kMean, false});
  DenseModule dense{
      .in = width, .out = 3, .bias = {0.5f, -0.25f, 0}, .activation = Activation::kTanh};
  for (uint32_t i = 0; i < 3 * width; ++i)
    dense.weight.push_back(static_cast<float>(i % 7) / 8 - 0.375f);
  loaded.encoder().add_dense(dense);
  const EncoderResult after = loaded.encoder().encode({inputs, EncoderOutput::kMean, false});
  for (size_t text = 0; text < inputs.size(); ++text) {
    REQUIRE(after.values[text].size() == 3);
    for (uint32_t row = 0; row < 3; ++row) {
      double sum = dense.bias[row];
      for (uint32_t c = 0; c < width; ++c)
        sum += double{dense.weight[row * width + c]} * before.values[text][c];
      CHECK(std::abs(after.values[text][row] - std::tanh(sum)) < 5e-6);
    }
  }
}

TEST_CASE(
    "Modules of sentence-transformers are read, and those that would change numbers refused") {
  TemporaryFolder folder;
  for (const char* name : {"config.json", "model.safetensors", "tokenizer.json"})
    std::filesystem::copy_file(data_dir() / "roberta_cls" / name, folder.path() / name);
  const auto write = [&](const std::string& name, const Json& json) {
    std::filesystem::create_directories((folder.path() / name).parent_path());
    write_file(folder.path() / name, json.dump());
  };
  const auto modules = [&](std::initializer_list<const char*> names) {
    Json list = Json::array();
    for (const char* name : names)
      list.push_back({{"path", name == std::string("Transformer") ? "" : name},
                      {"type", std::string("sentence_transformers.models.") + name}});
    write("modules.json", list);
  };
  const auto refusal_of = [&] {
    const Checkpoint checkpoint(folder.path());
    return model_error([&] { read_sentence_config(checkpoint); }).value_or("no error");
  };
  modules({"Transformer", "Pooling", "Dense"});
  write("Pooling/config.json", {{"pooling_mode_max_tokens", true}});
  const auto dense = [&](const std::string& activation) {
    write("Dense/config.json",
          {{"in_features", 2},
           {"out_features", 3},
           {"bias", false},
           {"activation_function", "torch.nn.modules.activation." + activation}});
  };
  dense("ReLU");
  CHECK_THAT(refusal_of(), ContainsSubstring("no model.safetensors"));
  const std::string header =
      R"({"linear.weight":{"dtype":"F32","shape":[3,2],"data_offsets":[0,24]}} )";
  const uint64_t length = header.size();
  const float numbers[] = {1, 2, 3, 4, 5, 6};
  write_file(folder.path() / "Dense/model.safetensors",
             std::string(reinterpret_cast<const char*>(&length), 8) + header +
                 std::string(reinterpret_cast<const char*>(numbers), sizeof numbers));
  CHECK(refusal_of() == "no error");
  const SentenceConfig read = read_sentence_config(Checkpoint(folder.path()));
  CHECK(read.pooling == Pooling::kMax);
  REQUIRE(read.dense.size() == 1);
  CHECK(read.dense[0].activation == Activation::kRelu);
  CHECK(read.dense[0].weight == std::vector<float>{1, 2, 3, 4, 5, 6});
  CHECK(read.dense[0].bias.empty());
  // The model's states are wider than the module's input.
  CHECK_THAT(model_error([&] {
               TextEncoder(shared_handle(), folder.path().string());
             }).value_or("no error"),
             ContainsSubstring("takes 2 columns of"));
  dense("Mish");
  CHECK_THAT(refusal_of(), ContainsSubstring("Mish"));
  write("Dense/config.json", {{"in_features", 3}, {"out_features", 3}, {"bias", false}});
  CHECK_THAT(refusal_of(), ContainsSubstring("no linear.weight of the shape"));
  modules({"Transformer", "Dense", "Pooling"});
  CHECK_THAT(refusal_of(), ContainsSubstring("between Pooling and Normalize"));
  modules({"Transformer", "Pooling", "LayerNorm"});
  CHECK_THAT(refusal_of(), ContainsSubstring("LayerNorm"));
}

TEST_CASE("Distances share rows of a table by their logarithm, as DeBERTa was trained") {
  const DisentangledConfig logarithmic{.span = 8, .buckets = 8, .max_distance = 64};
  // The rows come from make_log_bucket_position of the reference implementation.
  const std::vector<std::pair<int32_t, int32_t>> known = {{0, 0},  {1, 1},   {4, 4},   {5, 5},
                                                          {10, 5}, {11, 6},  {25, 6},  {26, 7},
                                                          {63, 7}, {-5, -5}, {-63, -7}};
  for (const auto& [distance, bucket] : known) {
    INFO(distance);
    CHECK(logarithmic.row_of(distance) == static_cast<uint32_t>(bucket + 8));
  }
  const DisentangledConfig plain{.span = 5, .max_distance = 5};
  CHECK(plain.row_of(-9) == 0);
  CHECK(plain.row_of(-5) == 0);
  CHECK(plain.row_of(3) == 8);
  CHECK(plain.row_of(9) == 9);
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
  CHECK_THAT(encoder_refusal("is_decoder", true), ContainsSubstring("is_decoder"));
  CHECK_THAT(encoder_refusal("position_embedding_type", "relative_key"),
             ContainsSubstring("position_embedding_type"));
  CHECK_THAT(encoder_refusal("num_attention_heads", 5), ContainsSubstring("does not divide"));
  CHECK_THAT(encoder_refusal("max_position_embeddings", 2),
             ContainsSubstring("no position behind"));
  CHECK_THAT(encoder_refusal("problem_type", "regression"), ContainsSubstring("problem_type"));
  CHECK_THAT(encoder_refusal("id2label", Json{{"0", "a"}, {"2", "b"}}), ContainsSubstring("id 1"));
  CHECK_THAT(encoder_refusal("hidden_act", "mish"), ContainsSubstring("hidden_act"));
  CHECK(encoder_refusal("type_vocab_size", 1) == "no error");
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
