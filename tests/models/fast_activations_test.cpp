// Activations in blocks of 8-bit integers: which products take them, how they change logits, and
// what is refused.
#include <cmath>
#include <span>

#include "checkpoints/safetensors.h"
#include "models/generation/decoder_model.h"
#include "mulciber/text_generator.h"
#include "tests/catch.h"
#include "tests/device.h"
#include "tests/model_error.h"
#include "tests/reference_values.h"
#include "tests/support.h"

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

std::unique_ptr<DecoderModel> open_model_with(const std::filesystem::path& path,
                                              const ModelOptions& options) {
  const Checkpoint checkpoint(path);
  return std::make_unique<DecoderModel>(shared_device(), checkpoint,
                                        read_decoder_config(checkpoint), options);
}

std::vector<double> logits_of_model(DecoderModel& model, const std::vector<double>& ids) {
  const std::vector<std::string> wanted = {"logits"};
  return model.forward({{"input_ids", {{1, ids.size()}, ids}}}, wanted).at("logits").values;
}

/// The root mean square of the errors, as a share of the root mean square of the exact numbers.
double share_lost(std::span<const double> found, std::span<const double> exact) {
  double squares = 0, errors = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    squares += exact[i] * exact[i];
    errors += (found[i] - exact[i]) * (found[i] - exact[i]);
  }
  return std::sqrt(errors / squares);
}

/// A quantized model of the fixtures, and two sets of logits of a prompt: with its dequantized
/// weights, and llama.cpp's.
struct Reference {
  explicit Reference(const std::string& type)
      : model(fixtures_dir() / ("gguf/tiny-" + type + ".gguf")) {
    const SafetensorsFile file(fixtures_dir() / "gguf/expected.safetensors");
    const auto values = [&](const char* name) {
      return read_values(*file.find(type + "/prompt0/" + name));
    };
    ids = values("input_ids");
    exact = values("logits");
    llama_cpp = values("llama_cpp_logits");
    // Later logits depend on which tokens were chosen.
    const size_t vocabulary = exact.size() / (ids.size() + values("greedy_ids").size() - 1);
    exact.resize(vocabulary * ids.size());
    llama_cpp.resize(exact.size());
  }
  std::filesystem::path model;
  std::vector<double> ids, exact, llama_cpp;
};

bool takes_integers() {
  return network_types(shared_device().capabilities(), {.fast_activations = true}).integer_products;
}

}  // namespace

// llama.cpp quantizes the activations of all its products, and its error is 2.4 to 3.5 % of these
// models' logits. A quarter more is allowed for other roundings; a wrong product has an error of
// 100 %.
TEST_CASE("Fast activations lose no more than llama.cpp's") {
  if (fixtures_dir().empty()) MULCIBER_SKIP("the reference models are not here");
  const std::string type = GENERATE("Q8_0", "Q4_K_M");
  const Reference reference(type);
  const auto fast = open_model_with(reference.model, {.fast_activations = true});
  const std::vector<double> logits = logits_of_model(*fast, reference.ids);
  REQUIRE(logits.size() == reference.exact.size());
  const double lost = share_lost(logits, reference.exact),
               llama_cpp = share_lost(reference.llama_cpp, reference.exact);
  INFO(type << " loses " << lost << ", llama.cpp " << llama_cpp);
  CHECK(lost <= 1.25 * llama_cpp);
  // Where a device has no such products nothing is lost (decoder_test.cpp has the bound); elsewhere
  // something must be.
  CHECK((lost > 1e-3) == takes_integers());
}

TEST_CASE("Weights that are not in blocks take activations as they are") {
  if (fixtures_dir().empty()) MULCIBER_SKIP("the reference models are not here");
  const Reference reference("F16");
  const auto exact = open_model_with(reference.model, {}),
             fast = open_model_with(reference.model, {.fast_activations = true});
  CHECK(logits_of_model(*fast, reference.ids) == logits_of_model(*exact, reference.ids));
}

TEST_CASE("The products of a layer take integers, and norms write them") {
  if (fixtures_dir().empty()) MULCIBER_SKIP("the reference models are not here");
  if (!takes_integers()) MULCIBER_SKIP("the device has no integer dot products");
  const auto model =
      open_model_with(fixtures_dir() / "gguf/tiny-Q8_0.gguf", {.fast_activations = true});
  const DecoderNetwork& network = model->network();
  CHECK_FALSE(network.decoder.output.integers);
  CHECK(network.decoder.first_norm->for_integers);
  const CausalLayer &first = network.decoder.layers.front(), &last = network.decoder.layers.back();
  CHECK(first.attention.qkv.integers);
  CHECK(first.attention.out.integers);
  CHECK(first.after_attention->for_integers);
  CHECK(std::get<FeedForward>(first.feed_forward).up.integers);
  CHECK(std::get<FeedForward>(first.feed_forward).down.integers);
  CHECK(first.after_feed_forward.for_integers);
  CHECK_FALSE(last.after_feed_forward.for_integers);  // the output product takes f32
}

TEST_CASE("Memory is planned for activations in blocks, and answers repeat") {
  if (fixtures_dir().empty()) MULCIBER_SKIP("the reference models are not here");
  // The test opens a device of its own, to read the peak of the memory that it handed out.
  const std::shared_ptr<Device> device =
      Device::open(options_from_environment({.ignore_verdicts = true}));
  const GeneratorOptions loading = {.load = {.fast_activations = true}, .context = 96};
  const std::string path = (fixtures_dir() / "gguf/tiny-Q8_0.gguf").string();
  TextGenerator generator(device, path, loading);
  const GenerateOptions options = {.max_new_tokens = 3, .ignore_end = true};
  const Generation once = generator.generate("The red hammer", options);
  CHECK(once.ids.size() == 3);
  CHECK(generator.generate("The red hammer", options).ids == once.ids);
  const MemoryPrediction predicted = TextGenerator::predict(*device, path, loading);
  CHECK(predicted.weight_bytes + predicted.context_bytes >=
        generator.statistics().peak_device_bytes);
}

TEST_CASE("Fast activations are refused with activations in 16 bits") {
  const auto problem = model_error([&] {
    open_model_with(data_dir() / "gemma3",
                    {.activations = DataType::kF16, .fast_activations = true});
  });
  CHECK_THAT(problem.value_or(""), ContainsSubstring("fast activations or"));
}
