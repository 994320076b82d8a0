// Rotary angles against transformers' formulas, and the op against recorded values of an
// independent implementation.
#include "layers/rope.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numbers>

#include "checkpoints/safetensors.h"
#include "checkpoints/tensor_values.h"
#include "models/core/rope_config.h"
#include "mulciber/error.h"
#include "ops/rope.h"
#include "tests/catch.h"
#include "tests/device.h"
#include "tests/support.h"

using namespace mulciber;
using Catch::Matchers::WithinRel;

namespace {

std::vector<double> doubles(const CheckpointTensor& tensor) {
  if (tensor.type != CheckpointType::kF64) {
    const std::vector<float> values = read_floats(tensor, 0, tensor.elements());
    return {values.begin(), values.end()};
  }
  std::vector<double> values(tensor.elements());
  std::memcpy(values.data(), tensor.bytes.data(), values.size() * sizeof(double));
  return values;
}

}  // namespace

TEST_CASE("Angles turn by the position, cosines first") {
  const std::vector<float> angles = rope_angles(5, 6, 10000);
  REQUIRE(angles.size() == 30);
  for (size_t position = 0; position < 5; ++position) {
    for (size_t i = 0; i < 3; ++i) {
      const double angle =
          static_cast<double>(position) / std::pow(10000.0, static_cast<double>(i) / 3);
      CHECK(std::fabs(angles[position * 6 + i] - std::cos(angle)) < 1e-7);
      CHECK(std::fabs(angles[position * 6 + 3 + i] - std::sin(angle)) < 1e-7);
    }
  }
  CHECK(rope_angles(2, 4, 100, {.kind = RopeScalingKind::kLinear, .factor = 4})[4] ==
        static_cast<float>(std::cos(0.25)));
  CHECK(rope_angles(2, 4, 100, {.frequency_factors = {1, 5}})[7] ==
        static_cast<float>(std::sin(0.1 / 5)));
}

TEST_CASE("Llama 3 scales low frequencies and blends those between") {
  const RopeScaling scaling{.kind = RopeScalingKind::kLlama3,
                            .factor = 8,
                            .original_max_position_embeddings = 8192,
                            .low_freq_factor = 1,
                            .high_freq_factor = 4};
  const std::vector<double> frequencies = rope_frequencies(64, 500000, scaling);
  // The expected frequencies are computed from wavelengths, as in transformers'
  // _compute_llama3_parameters.
  for (size_t i = 0; i < 32; ++i) {
    const double plain = 1 / std::pow(500000.0, 2.0 * static_cast<double>(i) / 64);
    const double wavelength = 2 * std::numbers::pi / plain;
    double expected = plain;
    if (wavelength > 8192.0 / 1) {
      expected = plain / 8;
    } else if (wavelength >= 8192.0 / 4) {
      const double smooth = (8192 / wavelength - 1) / (4 - 1);
      expected = (1 - smooth) * plain / 8 + smooth * plain;
    }
    CHECK_THAT(frequencies[i], WithinRel(expected, 1e-12));
  }
  // One frequency of each kind, from the same formulas in Python.
  CHECK_THAT(frequencies[13], WithinRel(0.004839421345719893, 1e-12));
  CHECK_THAT(frequencies[15], WithinRel(0.0013718935677611381, 1e-12));
  CHECK_THAT(frequencies[31], WithinRel(3.767322690173964e-07, 1e-12));
  CHECK(rope_magnitude(scaling) == 1);
}

TEST_CASE("YaRN blends by the number of the frequency and has a magnitude") {
  RopeScaling scaling{
      .kind = RopeScalingKind::kYarn, .factor = 4, .original_max_position_embeddings = 32768};
  const std::vector<double> frequencies = rope_frequencies(128, 1e6, scaling);
  // From transformers' _compute_yarn_parameters in Python: the blend reaches from frequency 23
  // to 40.
  CHECK_THAT(frequencies[23], WithinRel(0.006978305848598663, 1e-12));
  CHECK_THAT(frequencies[24], WithinRel(0.005375321490790102, 1e-12));
  CHECK_THAT(frequencies[39], WithinRel(6.490394320837028e-05, 1e-12));
  CHECK_THAT(frequencies[40], WithinRel(4.445698525097307e-05, 1e-12));
  CHECK_THAT(frequencies[63], WithinRel(3.102344401879299e-07, 1e-12));
  CHECK_THAT(rope_magnitude(scaling), WithinRel(1.138629436111989, 1e-12));
  CHECK(rope_angles(1, 128, 1e6, scaling)[0] == 1.138629436111989f);
  scaling.mscale = 0.707;
  scaling.mscale_all_dim = 0.707;
  CHECK(rope_magnitude(scaling) == 1);
  scaling.attention_factor = 1.25;
  CHECK(rope_magnitude(scaling) == 1.25);
}

TEST_CASE("LongRoPE divides each frequency by its own factor and has a magnitude") {
  RopeScaling scaling{.kind = RopeScalingKind::kLongRope,
                      .factor = 4,
                      .original_max_position_embeddings = 28,
                      .frequency_factors = {1.25, 8}};
  const std::vector<double> frequencies = rope_frequencies(4, 10000, scaling);
  CHECK_THAT(frequencies[0], WithinRel(1 / 1.25, 1e-12));
  CHECK_THAT(frequencies[1], WithinRel(0.01 / 8, 1e-12));
  CHECK_THAT(rope_magnitude(scaling),
             WithinRel(1.1899702497764466, 1e-12));  // sqrt(1 + ln 4 / ln 28)
  scaling.factor = 1;
  CHECK(rope_magnitude(scaling) == 1);
  scaling.attention_factor = 1.25;
  CHECK(rope_magnitude(scaling) == 1.25);
}

TEST_CASE("A configuration's LongRoPE is read in both of its forms") {
  const auto read = [](const char* text) {
    const Json json = Json::parse(text);
    return read_rope_of(ConfigReader(json, "config.json"), nullptr,
                        {.head_size = 16, .base = 10000, .context = 112});
  };
  const RopeConfig older = read(R"({"rope_theta": 500, "partial_rotary_factor": 0.5,
      "original_max_position_embeddings": 28, "rope_scaling": {"type": "su",
      "short_factor": [1, 2, 3, 4], "long_factor": [5, 6, 7, 8]}})");
  CHECK(older.rotated == 8);
  CHECK(older.base == 500);
  CHECK(older.scaling.kind == RopeScalingKind::kLongRope);
  CHECK(older.scaling.factor == 4);
  CHECK(older.scaling.frequency_factors == std::vector<double>{1, 2, 3, 4});
  REQUIRE(older.long_scaling);
  CHECK(older.long_scaling->frequency_factors == std::vector<double>{5, 6, 7, 8});
  CHECK(older.long_scaling->original_max_position_embeddings == 28);

  const RopeConfig newer = read(R"({"rope_parameters": {"rope_type": "longrope",
      "rope_theta": 700, "partial_rotary_factor": 0.25, "factor": 2, "attention_factor": 1.5,
      "original_max_position_embeddings": 56, "short_factor": [1, 2], "long_factor": [3, 4]}})");
  CHECK(newer.rotated == 4);
  CHECK(newer.base == 700);
  CHECK(newer.scaling.factor == 2);
  CHECK(newer.scaling.attention_factor == 1.5);
  CHECK(newer.long_scaling->original_max_position_embeddings == 56);

  CHECK_THROWS_WITH(read(R"({"rope_scaling": {"type": "longrope", "short_factor": [1, 2]}})"),
                    Catch::Matchers::ContainsSubstring("short_factor") &&
                        Catch::Matchers::ContainsSubstring("each of 8 pairs"));
  CHECK(read(R"({"partial_rotary_factor": 0.4})").rotated == 6);
  CHECK_THROWS_WITH(read(R"({"partial_rotary_factor": 0.45})"),
                    Catch::Matchers::ContainsSubstring("partial_rotary_factor") &&
                        Catch::Matchers::ContainsSubstring("7 rotate, which are no pairs"));
}

TEST_CASE("A base beside the parameters is theirs, unless they say another") {
  const auto base = [](const char* text) {
    const Json json = Json::parse(text);
    return read_rope_of(ConfigReader(json, "config.json"), nullptr,
                        {.head_size = 16, .base = 10000, .context = 112})
        .base;
  };
  CHECK(base(R"({"rope_theta": 500, "rope_parameters": {"rope_type": "default"}})") == 500);
  CHECK(base(R"({"rope_theta": 500, "rope_parameters": {"rope_theta": 700}})") == 700);
  CHECK(base(R"({"rope_parameters": {"rope_type": "default"}})") == 10000);
  // Up to max_position_embeddings, dynamic scaling uses the configuration's own base.
  CHECK(base(R"({"rope_theta": 500, "rope_scaling": {"type": "dynamic", "factor": 2}})") == 500);
}

TEST_CASE("What the context was before it was extended may stand at the top") {
  const auto scaling = [](const char* text) {
    const Json json = Json::parse(text);
    return read_rope_of(ConfigReader(json, "config.json"), nullptr,
                        {.head_size = 16, .base = 10000, .context = 112})
        .scaling;
  };
  const char* const yarn = R"({"original_max_position_embeddings": 28, "rope_parameters": {
      "rope_type": "yarn", "factor": 2, "original_max_position_embeddings": 56}})";
  CHECK(scaling(yarn).original_max_position_embeddings == 28);
  CHECK(scaling(yarn).factor == 2);
  CHECK(scaling(R"({"rope_scaling": {"type": "yarn", "factor": null,
      "original_max_position_embeddings": 28}})")
            .factor == 4);
  const char* const llama = R"({"original_max_position_embeddings": 28, "rope_scaling": {
      "rope_type": "llama3", "factor": 2, "low_freq_factor": 1, "high_freq_factor": 4}})";
  CHECK(scaling(llama).original_max_position_embeddings == 28);
}

TEST_CASE("Scalings that cannot be are refused") {
  CHECK_THROWS_AS(rope_frequencies(7, 10000), ShapeError);
  CHECK_THROWS_AS(rope_frequencies(8, 10000, {.frequency_factors = {1, 2}}), ShapeError);
  CHECK_THROWS_AS(rope_frequencies(8, 10000, {.kind = RopeScalingKind::kYarn, .factor = 2}),
                  ShapeError);
  CHECK_THROWS_AS(rope_frequencies(8, 10000, {.kind = RopeScalingKind::kLinear, .factor = 0}),
                  ShapeError);
}

TEST_CASE("Rotated heads meet recorded values of an independent implementation") {
  Device& device = tests::shared_device();
  const SafetensorsFile file(tests::data_dir() / "rope.safetensors");
  for (const bool interleaved : {false, true}) {
    const std::string name = interleaved ? "rope_interleaved" : "rope_half";
    const CheckpointTensor *x = file.find(name + "/x"), *out = file.find(name + "/out");
    const CheckpointTensor* at = file.find(name + "/positions");
    REQUIRE((x && out && at));
    const auto rows = static_cast<uint32_t>(x->shape[0]),
               heads = static_cast<uint32_t>(x->shape[1]),
               length = static_cast<uint32_t>(x->shape[2]),
               size = static_cast<uint32_t>(x->shape[3]);
    // Positions may be any numbers, so each is a row of its own: (batch, heads, length, size)
    // becomes rows of one token.
    const std::vector<double> values = doubles(*x), expected = doubles(*out);
    std::vector<double> positions(at->elements());
    for (size_t i = 0; i < positions.size(); ++i) {
      int64_t whole = 0;
      if (at->type == CheckpointType::kF64) {
        std::memcpy(&positions[i], at->bytes.data() + 8 * i, 8);
      } else {
        REQUIRE(at->bytes.size() == 8 * positions.size());
        std::memcpy(&whole, at->bytes.data() + 8 * i, 8);
        positions[i] = static_cast<double>(whole);
      }
    }
    const uint32_t tokens = rows * length, columns = 3 * heads * size;
    const auto last = static_cast<uint64_t>(*std::ranges::max_element(positions));
    std::vector<float> qkv(size_t{tokens} * columns, 0);
    std::vector<uint32_t> control;
    const auto index = [&](uint32_t token, uint32_t head, uint32_t d) {
      return ((token / length * heads + head) * length + token % length) * size + d;
    };
    for (uint32_t token = 0; token < tokens; ++token) {
      control.push_back(static_cast<uint32_t>(positions[token % length]));
      for (uint32_t head = 0; head < heads; ++head) {
        for (uint32_t d = 0; d < size; ++d) {
          const auto value = static_cast<float>(values[index(token, head, d)]);
          qkv[token * columns + head * size + d] =
              qkv[token * columns + (heads + head) * size + d] = value;
        }
      }
    }
    std::vector<Buffer> buffers;
    const auto make = [&](Shape shape, DataType type, std::span<const std::byte> bytes) {
      buffers.push_back(device.memory().allocate(bytes.size(), MemoryUsage::kActivations));
      upload(device, buffers.back().view(), bytes);
      return buffers.back().tensor(shape, type);
    };
    const std::vector<float> angles = rope_angles(last + 1, size, 10000),
                             empty(tokens * 2 * heads * size * (last + 1));
    const Tensor input = make({tokens, 1, columns}, DataType::kF32, std::as_bytes(std::span(qkv)));
    const Tensor cache = make({tokens, last + 1, 2ull * heads * size}, DataType::kF32,
                              std::as_bytes(std::span(empty)));
    RopeOptions options;
    options.heads = options.kv_heads = heads;
    options.head_size = options.rotary_size = size;
    options.interleaved = interleaved;
    options.angles = make({last + 1, size}, DataType::kF32, std::as_bytes(std::span(angles)));
    options.control = make({tokens}, DataType::kU32, std::as_bytes(std::span(control)));
    options.positions = {0, static_cast<uint32_t>(control.size())};
    ProgramBuilder builder(device, "rope");
    CHECK(rope_append(builder, input, cache, options).first == 0);
    builder.build().run();
    const auto read = [&](const Tensor& tensor) {
      const std::vector<std::byte> bytes = download(device, tensor.view);
      std::vector<float> result(tensor.shape.elements());
      std::memcpy(result.data(), bytes.data(), result.size() * sizeof(float));
      return result;
    };
    const std::vector<float> rotated = read(input), cached = read(cache);
    for (uint32_t token = 0; token < tokens; ++token) {
      for (uint32_t head = 0; head < heads; ++head) {
        for (uint32_t d = 0; d < size; ++d) {
          INFO(name << ", token " << token << ", head " << head << ", element " << d);
          const double wanted = expected[index(token, head, d)];
          CHECK(std::fabs(rotated[token * columns + head * size + d] - wanted) < 2e-6);
          const uint64_t place =
              (token * (last + 1) + control[token]) * 2 * heads * size + head * size + d;
          CHECK(std::fabs(cached[place] - wanted) < 2e-6);
        }
      }
    }
  }
}
