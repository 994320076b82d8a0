// Bahdanau's and Luong's models: reference values, searches, maps, and refusals.
#include "models/translation/recurrent_translation.h"

#include <nlohmann/json.hpp>

#include "models/loading/open_files.h"
#include "models/loading/verify.h"
#include "tests/catch.h"
#include "tests/device.h"
#include "tests/model_error.h"

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;
namespace fs = std::filesystem;

namespace {

std::unique_ptr<RecurrentTranslation> open_recurrent(const std::string& name,
                                                     const ModelOptions& options = {}) {
  const Checkpoint checkpoint(data_dir() / name);
  return std::make_unique<RecurrentTranslation>(shared_device(), checkpoint,
                                                read_recurrent_config(checkpoint), options);
}

/// Checks every expected tensor of one kind of case. Returns how many there were.
size_t check_cases(const VerifyReport& report, std::string_view kind = "") {
  size_t passed = 0;
  for (const VerifyResult& result : report.results) {
    if (!kind.empty() && result.kind != kind) continue;
    INFO(result.case_name << " " << result.tensor << ": error " << result.error << ", tolerance "
                          << result.tolerance << " " << result.detail);
    CHECK(result.status == VerifyResult::Status::kPass);
    ++passed;
  }
  return passed;
}

GenerationRequest request_of(const TranslationModel& model,
                             const std::vector<std::vector<uint32_t>>& sources, uint32_t beams) {
  GenerationRequest request;
  request.sources = sources;
  request.settings = generation_settings(model.generation_config(), model.max_target_tokens());
  request.settings.beams = beams;
  request.settings.n_best = beams;
  return request;
}

const std::vector<std::vector<uint32_t>> kSources = {
    {5, 9, 31, 7, 0}, {12, 0}, {44, 2, 2, 19, 50, 8, 33, 27, 6, 0}};

}  // namespace

TEST_CASE("Recurrent translation models meet every reference value") {
  for (const char* name : {"bahdanau", "luong"}) {
    DYNAMIC_SECTION(name) {
      const auto model = open_recurrent(name);
      CHECK(model->family() == name);
      CHECK(check_cases(verify(*model, data_dir() / name / "expected.safetensors")) == 18);
    }
  }
}

TEST_CASE("Recurrent translation models with matrices in 16 bits stay within their tolerance") {
  for (const char* name : {"bahdanau", "luong"}) {
    DYNAMIC_SECTION(name) {
      const auto model = open_recurrent(name, {.matrices = MatrixStorage::kF16});
      // Ids may differ where two are close.
      CHECK(check_cases(verify(*model, data_dir() / name / "expected.safetensors"), "forward") ==
            12);
    }
  }
}

TEST_CASE("A batch of a recurrent model searches as each of its sentences does alone") {
  for (const char* name : {"bahdanau", "luong"}) {
    for (uint32_t beams : {1, 3}) {
      DYNAMIC_SECTION(name << " " << beams) {
        const auto model = open_recurrent(name);
        const GenerationResult together = model->generate(request_of(*model, kSources, beams));
        REQUIRE(together.items.size() == kSources.size());
        for (size_t i = 0; i < kSources.size(); ++i) {
          const std::vector<std::vector<uint32_t>> one = {kSources[i]};
          const GenerationResult alone = model->generate(request_of(*model, one, beams));
          REQUIRE(alone.items[0].size() == together.items[i].size());
          for (size_t rank = 0; rank < alone.items[0].size(); ++rank)
            CHECK(alone.items[0][rank].ids == together.items[i][rank].ids);
        }
      }
    }
  }
}

TEST_CASE(
    "The map of a recurrent model has one head, whose rows add up to 1, and a factor silences it") {
  for (const char* name : {"bahdanau", "luong"}) {
    DYNAMIC_SECTION(name) {
      const auto model = open_recurrent(name);
      const std::vector<uint32_t> source = kSources[2], target = {60, 3, 4, 5, 6};
      const SequenceAttention maps = model->attention(source, target, {});
      CHECK(maps.encoder.empty());
      CHECK(maps.decoder.empty());
      REQUIRE(maps.cross.size() == target.size() * source.size());
      for (size_t t = 0; t < target.size(); ++t) {
        float sum = 0;
        for (size_t s = 0; s < source.size(); ++s) sum += maps.cross[t * source.size() + s];
        CHECK(sum == Approx(1).margin(1e-5));
      }
      // Without the context vector the second token's query differs, and so do its weights.
      const std::vector<float> silent = {0.0f};
      const SequenceAttention masked = model->attention(source, target, {.cross = silent});
      CHECK(std::equal(maps.cross.begin(),
                       maps.cross.begin() + static_cast<std::ptrdiff_t>(source.size()),
                       masked.cross.begin()));
      CHECK(maps.cross != masked.cross);
      CHECK_THAT(
          model_error([&] { model->attention(source, target, {.decoder = silent}); }).value_or(""),
          ContainsSubstring("0 heads"));
    }
  }
}

TEST_CASE("A recurrent configuration that cannot be run is refused by its key") {
  TemporaryFolder folder;
  for (const fs::directory_entry& file : fs::directory_iterator(data_dir() / "bahdanau"))
    fs::copy(file.path(), folder.path() / file.path().filename());
  const Json good = read_json(folder.path() / "config.json");
  fs::permissions(folder.path() / "config.json", fs::perms::owner_all);
  fs::remove(folder.path() /
             // The ids of generation_config.json would take precedence over those of config.json.
             "generation_config.json");
  const auto refusal = [&](const char* key, const Json& value) {
    Json config = good;
    config[key] = value;
    write_file(folder.path() / "config.json", config.dump());
    return model_error([&] { load_model(shared_device(), open_files(folder.path())); })
        .value_or("");
  };
  CHECK_THAT(refusal("hidden_size", 257), ContainsSubstring("hidden_size"));
  CHECK_THAT(refusal("attention_size", nullptr), ContainsSubstring("attention_size"));
  CHECK_THAT(refusal("eos_token_id", 61), ContainsSubstring("eos_token_id"));
  CHECK_THAT(refusal("hidden_size", 23), ContainsSubstring("weight_ih_l0"));
}
