// The small Marian model, and every Marian reference model that is present: values, refusals,
// scores.
#include "models/translation/encoder_decoder_architecture.h"

#include <cmath>
#include <cstring>
#include <numeric>

#include "models/loading/open_files.h"
#include "models/loading/verify.h"
#include "tests/catch.h"
#include "tests/device.h"
#include "tests/model_error.h"
#include "tests/small_marian.h"

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;
namespace fs = std::filesystem;

namespace {

std::unique_ptr<EncoderDecoderModel> open_marian(const fs::path& folder,
                                                 const ModelOptions& options = {}) {
  const Checkpoint checkpoint(folder);
  return load_encoder_decoder(shared_device(), checkpoint, read_encoder_decoder_config(checkpoint),
                              options);
}

void check_marian_report(const VerifyReport& report, size_t passed) {
  for (const VerifyResult& result : report.results) {
    INFO(result.case_name << " " << result.tensor << ": error " << result.error << ", tolerance "
                          << result.tolerance << " " << result.detail);
    CHECK(result.status == VerifyResult::Status::kPass);
  }
  CHECK(report.count(VerifyResult::Status::kPass) == passed);
  CHECK(report.exit_code() == 0);
}

}  // namespace

TEST_CASE("The small Marian model meets every reference value") {
  const auto model = open_marian(small_marian());
  check_marian_report(verify(*model, small_marian() / "expected.safetensors"), 22);
}

TEST_CASE("Every Marian reference model meets its values") {
  if (fixtures_dir().empty()) MULCIBER_SKIP("the reference models are not here");
  for (const fs::directory_entry& entry : fs::directory_iterator(fixtures_dir() / "models")) {
    const Checkpoint checkpoint(entry.path());
    if (checkpoint.model_type() != "marian") continue;
    DYNAMIC_SECTION(entry.path().filename().string()) {
      const auto model = open_marian(entry.path());
      check_marian_report(verify(*model, entry.path() / "expected.safetensors"), 22);
    }
  }
}

TEST_CASE("Half-precision storage stays within its tolerance") {
  const auto model =
      open_marian(small_marian(), {.matrices = MatrixStorage::kF16, .activations = DataType::kF16});
  const VerifyReport report = verify(*model, small_marian() / "expected.safetensors");
  size_t compared = 0;
  for (const VerifyResult& result : report.results) {
    if (result.kind != "forward") continue;  // ids may differ where two are close
    INFO(result.case_name << " " << result.tensor << ": error " << result.error << " "
                          << result.detail);
    CHECK(result.status == VerifyResult::Status::kPass);
    ++compared;
  }
  CHECK(compared == 13);
}

TEST_CASE("verify says what is over, what is missing, and what is wrong") {
  const auto model = open_marian(small_marian());
  const fs::path expected = small_marian() / "expected.safetensors";
  CHECK(verify(*model, expected, {.tolerance = 0.0}).exit_code() == 1);

  TemporaryFolder folder;
  fs::copy(expected, folder.path() / "expected.safetensors");
  Json list = read_json(small_marian() / "expected.json");
  for (Json& entry : list["cases"]) entry["kind"] = "dance";
  write_file(folder.path() / "expected.json", list.dump());
  const VerifyReport unknown = verify(*model, folder.path() / "expected.safetensors");
  CHECK(unknown.exit_code() == 3);
  CHECK_THAT(unknown.results.at(0).detail, ContainsSubstring("dance"));

  list = read_json(small_marian() / "expected.json");
  list["cases"] = Json::array({list["cases"][0]});
  list["cases"][0]["outputs"].push_back("no_such_tensor");
  write_file(folder.path() / "expected.json", list.dump());
  CHECK_THAT(
      model_error([&] { verify(*model, folder.path() / "expected.safetensors"); }).value_or(""),
      ContainsSubstring("no_such_tensor"));
}

TEST_CASE("NaN never passes") {
  const auto model = open_marian(small_marian());
  TemporaryFolder folder;
  std::string bytes = read_file(small_marian() / "expected.safetensors");
  // Every real value of the tensor becomes NaN. The file's data are f64 and i64; ids keep their
  // values in the cases that are compared.
  const Json list = read_json(small_marian() / "expected.json");
  const SafetensorsFile file(small_marian() / "expected.safetensors");
  const CheckpointTensor* logits = file.find("len1_3/logits");
  REQUIRE(logits != nullptr);
  const size_t offset = logits->bytes.data() - file.tensors().front().bytes.data();
  uint64_t header = 0;
  std::memcpy(&header, bytes.data(), 8);
  std::memset(bytes.data() + 8 + header + offset, 0xff, logits->bytes.size());
  write_file(folder.path() / "expected.safetensors", bytes);
  write_file(folder.path() / "expected.json", list.dump());
  const VerifyReport report =
      verify(*model, folder.path() / "expected.safetensors", {.tolerance = 1e30});
  for (const VerifyResult& result : report.results) {
    const bool touched = result.case_name == "len1_3" && result.tensor == "logits";
    INFO(result.case_name << " " << result.tensor);
    CHECK((result.status == VerifyResult::Status::kFail) == touched);
  }
}

TEST_CASE("A source as long as the model's positions is translated") {
  const auto model = open_marian(small_marian());
  const std::vector<std::vector<uint32_t>> sources = {std::vector<uint32_t>(64, 5)};
  GenerationSettings settings = generation_settings(model->generation_config(), 64);
  settings.max_new_tokens = 64;
  const GenerationResult result = model->generate({.sources = sources, .settings = settings});
  CHECK(result.items.at(0).size() == 1);
  CHECK(result.items[0][0].ids.size() <= 64);
}

TEST_CASE("Ids that the model has not are refused") {
  const auto model = open_marian(small_marian());
  const std::vector<std::vector<uint32_t>> sources = {{5, 273, 0}};
  const GenerationSettings settings = generation_settings(model->generation_config(), 64);
  CHECK_THAT(model_error([&] {
               model->generate({.sources = sources, .settings = settings});
             }).value_or(""),
             ContainsSubstring("273"));
}

TEST_CASE("A given translation scores what decoding it scored, with heads masked too") {
  const auto model = open_marian(small_marian());
  const std::vector<std::vector<uint32_t>> sources = {{5, 17, 40, 9, 0}, {33, 0}, {7, 7, 80, 0}};
  GenerationSettings settings = generation_settings(model->generation_config(), 64);
  settings.beams = settings.n_best = 1;
  settings.length_penalty = 0;
  settings.max_new_tokens = 20;
  settings.banned.clear();
  const Extents extents = model->extents();
  std::vector<float> cross(extents.decoder_layers * extents.decoder_heads, 1.0f);
  cross[0] = 0;
  double plain = 0;
  for (const HeadMasks& factors :
       {HeadMasks{}, HeadMasks{.encoder = {}, .decoder = {}, .cross = cross}}) {
    const GenerationResult found =
        model->generate({.sources = sources, .settings = settings, .head_masks = factors});
    std::vector<std::vector<uint32_t>> targets;
    for (const auto& hypotheses : found.items) {
      targets.push_back(hypotheses.at(0).ids);
      // A token that the length limit forces adds nothing to the score in decoding.
      if (targets.back().size() == settings.max_new_tokens) targets.back().pop_back();
    }
    std::vector<double> scores;
    for (const std::vector<double>& tokens :
         model->score(sources, targets, settings.start, factors))
      scores.push_back(std::accumulate(tokens.begin(), tokens.end(), 0.0));
    REQUIRE(scores.size() == sources.size());
    for (size_t i = 0; i < scores.size(); ++i) {
      INFO(i << ": " << targets[i].size() << " tokens");
      CHECK(std::abs(scores[i] - found.items[i][0].score) < 1e-4 * std::abs(scores[i]));
      CHECK(scores[i] < 0);
    }
    if (factors.cross.empty())
      plain = scores[0];
    else
      CHECK(std::abs(scores[0] - plain) > 1e-4);
  }
  const std::vector<std::vector<uint32_t>> one_source = {{5, 0}}, unknown = {{273}}, none = {{}};
  CHECK_THAT(model_error([&] { model->score(one_source, unknown, 0, {}); }).value_or(""),
             ContainsSubstring("273"));
  CHECK_THAT(model_error([&] { model->score(one_source, none, 0, {}); }).value_or(""),
             ContainsSubstring("0 tokens"));
}

TEST_CASE("A config that disagrees with the tensors is refused by tensor and shapes") {
  TemporaryFolder folder;
  copy_model(folder.path(), [](Json& config) { config["decoder_ffn_dim"] = 88; });
  const std::string message = model_error([&] { open_marian(folder.path()); }).value_or("");
  CHECK_THAT(message, ContainsSubstring("model.decoder.layers.0.fc1.weight"));
  CHECK_THAT(message, ContainsSubstring("[84, 48]"));
  CHECK_THAT(message, ContainsSubstring("(88, 48)"));

  TemporaryFolder deeper;
  copy_model(deeper.path(), [](Json& config) { config["encoder_layers"] = 3; });
  CHECK_THAT(model_error([&] { open_marian(deeper.path()); }).value_or(""),
             ContainsSubstring("model.encoder.layers.2"));

  TemporaryFolder other;
  copy_model(other.path(), [](Json& config) { config["model_type"] = "abacus"; });
  const std::string unknown =
      model_error([&] { load_model(shared_device(), open_files(other.path())); }).value_or("");
  CHECK_THAT(unknown, ContainsSubstring("abacus"));
  CHECK_THAT(unknown, ContainsSubstring("marian"));
}

TEST_CASE("Loading a translation model tells how far it is") {
  for (const char* name : {"marian", "luong"}) {
    INFO(name);
    const OpenModel opened = open_files(data_dir() / name);
    std::vector<std::pair<uint64_t, uint64_t>> calls;
    const auto note = [&](uint64_t done, uint64_t total) { calls.emplace_back(done, total); };
    load_model(shared_device(), opened, {.on_progress = note});
    REQUIRE(calls.size() > 1);
    CHECK(std::is_sorted(calls.begin(), calls.end()));
    CHECK(calls.front().first < calls.back().first);
    CHECK(calls.back().first == calls.back().second);
  }
}

TEST_CASE("A model that does not fit the memory given is refused with the numbers") {
  try {
    const Checkpoint checkpoint(small_marian());
    read_encoder_decoder(checkpoint, kMarian)->load(shared_device(), {.memory_limit = 1000});
    FAIL("it was loaded");
  } catch (const DeviceError& error) {
    CHECK(error.kind() == DeviceError::Kind::kOutOfMemory);
    CHECK_THAT(error.what(), ContainsSubstring("the limit given is 1000 bytes"));
  }
}
