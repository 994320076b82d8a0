// Attention weights of a language model's tokens, and heads that are switched off.
#include <algorithm>
#include <cmath>

#include "models/core/device_weights.h"
#include "models/generation/decoder_model.h"
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

// The model has 3 layers of 4 heads; the first two layers see 5 tokens. decoder_test checks its
// attention weights in expected.safetensors.
std::string attended_model() { return (data_dir() / "gemma3").string(); }

std::unique_ptr<DecoderModel> open_attended(const ModelOptions& options) {
  const Checkpoint checkpoint(attended_model());
  return std::make_unique<DecoderModel>(shared_device(), checkpoint,
                                        read_decoder_config(checkpoint), options);
}

std::vector<double> output(DecoderModel& model, const std::vector<uint32_t>& ids,
                           const std::string& name) {
  const std::vector<std::string> wanted = {name};
  return model.forward({{"input_ids", {{1, ids.size()}, {ids.begin(), ids.end()}}}}, wanted)
      .at(name)
      .values;
}

double largest_map_difference(std::span<const double> a, std::span<const double> b) {
  REQUIRE(a.size() == b.size());
  double worst = 0;
  for (size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::abs(a[i] - b[i]));
  return worst;
}

}  // namespace

TEST_CASE("What tokens of prompt and answer read of one another is kept on request") {
  TextGenerator generator(shared_handle(), attended_model(), {.context = 64});
  GenerateOptions options = {.max_new_tokens = 12, .ignore_end = true};
  const Generation plain = generator.generate("The red hammer", options);
  CHECK_FALSE(plain.attention.has_value());
  options.attention = true;
  const Generation kept = generator.generate("The red hammer", options);
  CHECK(kept.ids == plain.ids);
  REQUIRE(kept.attention.has_value());
  const TokenAttention& maps = *kept.attention;
  std::vector<uint32_t> ids = kept.prompt_ids;
  ids.insert(ids.end(), kept.ids.begin(), kept.ids.end());
  const size_t n = ids.size();
  REQUIRE(maps.length == n);
  CHECK(maps.layers == 3);
  CHECK(maps.heads == 4);
  CHECK(maps.windows == std::vector<uint32_t>{5, 5, 0});
  REQUIRE(maps.tokens.size() == n);
  CHECK(maps.tokens[0] == "<bos>");
  CHECK(std::ranges::count(maps.tokens, "") == 0);
  for (size_t i = 0; i < n; ++i) CHECK(generator.token_text(ids[i]) == maps.tokens[i]);
  CHECK_THROWS_WITH(generator.token_text(1 << 20), ContainsSubstring("1048576"));
  REQUIRE(maps.weights.size() == 3 * 4 * n * n);

  size_t outside = 0;
  double worst = 0;
  for (size_t row = 0; row < maps.weights.size() / n; ++row) {
    const size_t query = row % n, window = maps.windows[row / n / 4];
    double sum = 0;
    for (size_t key = 0; key < n; ++key) {
      const float weight = maps.weights[row * n + key];
      const bool seen = key <= query && (window == 0 || key + window > query);
      outside += seen ? weight <= 0 : weight != 0;
      sum += weight;
    }
    worst = std::max(worst, std::abs(sum - 1));
  }
  CHECK(outside == 0);
  CHECK(worst < 1e-5);

  // The maps match those of the pass that is compared with reference values; both keep keys in 16
  // bits.
  const auto model = open_attended({.cache = DataType::kF16});
  CHECK(largest_map_difference(output(*model, ids, "attentions"),
                               std::vector<double>(maps.weights.begin(), maps.weights.end())) <
        1e-6);

  // Several texts have maps of their own; each fills its context, so its last token was never read.
  TextGenerator several(shared_handle(), attended_model(), {.context = 16, .sequences = 2});
  options.max_new_tokens = 0;
  const std::vector<std::string> prompts = {"The red hammer", "A"};
  for (const Generation& each : several.generate_all(prompts, options)) {
    REQUIRE(each.attention.has_value());
    CHECK(each.attention->length == 16);
    CHECK(each.end == GenerateEnd::kContextFull);
  }
}

TEST_CASE("Attention maps of too many tokens are refused before anything is computed") {
  TextGenerator generator(shared_handle(), attended_model(), {.context = 64});
  GenerateOptions options = {.max_new_tokens = 3000, .attention = true};
  bool computed = false;
  options.on_prompt = [&](size_t, size_t) { computed = true; };
  // sqrt(2^26 / 12)
  CHECK_THAT(model_error([&] { generator.generate("The red hammer", options); }).value_or(""),
             ContainsSubstring("3 layers of 4 heads") && ContainsSubstring("67108864") &&
                 ContainsSubstring("2364 tokens"));
  CHECK_FALSE(computed);
}

TEST_CASE("A head that is switched off counts as if nothing took its output") {
  const std::vector<HeadNumber> masked = {{0, 1}, {2, 0}, {2, 3}};
  const std::vector<uint32_t> ids = {2, 40, 77, 300, 12, 9, 120};
  const auto whole = open_attended({}), without = open_attended({.masked_heads = masked}),
             cut = open_attended({});
  for (const HeadNumber& number : masked) {
    const CausalAttention& attention = cut->network().decoder.layers[number.layer].attention;
    const Tensor& matrix = attention.out.weight;  // (D, heads * head size)
    REQUIRE(matrix.type == DataType::kF32);
    std::vector<float> values = download_as<float>(shared_device(), matrix.view);
    for (size_t row = 0; row < matrix.shape.rows(); ++row)
      std::fill_n(values.begin() + static_cast<ptrdiff_t>(row * matrix.shape.columns() +
                                                          number.head * attention.head_size),
                  attention.head_size, 0.0f);
    upload(shared_device(), matrix.view, std::as_bytes(std::span(values)));
  }
  const std::vector<double> logits = output(*without, ids, "logits");
  CHECK(largest_map_difference(logits, output(*cut, ids, "logits")) < 1e-6);
  CHECK(largest_map_difference(logits, output(*whole, ids, "logits")) > 1e-2);

  // Decoding steps and passes over a prompt choose the same tokens without the head.
  const auto last = [](const std::vector<double>& all, const DecoderModel& model) {
    const auto row = std::span(all).last(model.network().vocabulary);
    return static_cast<uint32_t>(std::ranges::max_element(row) - row.begin());
  };
  SequenceSlots slots = slots_of(without->network(), 1, 32);
  std::vector<uint32_t> fed = ids;
  const std::vector<uint32_t> chosen = greedy(slots, ids, 6);
  REQUIRE(chosen.size() == 6);
  for (const uint32_t id : chosen) {
    CHECK(id == last(output(*without, fed, "logits"), *without));
    fed.push_back(id);
  }

  CHECK_THAT(model_error([] {
               open_attended({.masked_heads = {{3, 0}}});
             }).value_or(""),
             ContainsSubstring("head 0 of layer 3") && ContainsSubstring("3 layers of 4 heads"));
  CHECK(model_error([] { open_attended({.masked_heads = {{0, 4}}}); }).has_value());

  // Without a head, a prompt's keys and values differ.
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "prompt").string();
  TextGenerator saved(shared_handle(), attended_model(), {.context = 64});
  saved.generate("The red hammer", {.max_new_tokens = 2});
  saved.save_cache(file);
  TextGenerator other(shared_handle(), attended_model(), {.context = 64, .masked_heads = masked});
  CHECK_THAT(model_error([&] { other.load_cache(file); }).value_or(""),
             ContainsSubstring("other settings"));
}
