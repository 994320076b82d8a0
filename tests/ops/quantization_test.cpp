// Block types from the file to the device: values through the embedding and the product, compared
// with other implementations' values.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "base/blocks.h"
#include "base/finite.h"
#include "checkpoints/safetensors.h"
#include "checkpoints/tensor_values.h"
#include "conformance/block_input.h"
#include "layers/linear.h"
#include "ops/elementwise.h"
#include "ops/embedding.h"
#include "ops/matmul.h"
#include "runtime/device.h"
#include "tests/catch.h"
#include "tests/device.h"
#include "tests/support.h"

using namespace mulciber;
using namespace mulciber::tests;

namespace {

constexpr DataType kBlockTypes[] = {DataType::kQ8_0,     DataType::kQ4_0,    DataType::kQ4_1,
                                    DataType::kQ5_0,     DataType::kQ5_1,    DataType::kQ4_K,
                                    DataType::kQ5_K,     DataType::kQ6_K,    DataType::kQ2_K,
                                    DataType::kQ3_K,     DataType::kIQ4_NL,  DataType::kIQ4_XS,
                                    DataType::kMXFP4,    DataType::kF8E4M3,  DataType::kInt4_32,
                                    DataType::kInt4_128, DataType::kIQ2_XXS, DataType::kIQ2_XS,
                                    DataType::kIQ2_S,    DataType::kIQ3_XXS, DataType::kIQ3_S};

std::string fixture_name(DataType type) {
  std::string name = name_of(type);
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::toupper(c); });
  return name;
}

/// Offsets of a block's scales in f16; none where scales have another type.
std::vector<uint64_t> half_scales(DataType type) {
  switch (type) {
    case DataType::kMXFP4:
    case DataType::kF8E4M3: return {};
    case DataType::kQ4_1:
    case DataType::kQ5_1:
    case DataType::kQ4_K:
    case DataType::kQ5_K: return {0, 2};
    case DataType::kQ6_K: return {208};
    case DataType::kQ2_K: return {80, 82};
    case DataType::kQ3_K: return {108};
    default: return {0};
  }
}

/// Random blocks with small scales: their upper bytes are set.
std::vector<std::byte> random_blocks(DataType type, uint64_t blocks, std::mt19937& random) {
  const uint64_t bytes = gguf_block_bytes(type);
  std::vector<std::byte> raw(blocks * bytes);
  for (std::byte& byte : raw) byte = static_cast<std::byte>(random());
  for (uint64_t b = 0; b < blocks; ++b) {
    std::byte* block = raw.data() + b * bytes;
    for (const uint64_t at : half_scales(type))
      block[at + 1] = at % 4 == 2 ? std::byte{0xac} : std::byte{0x2c};
    if (type == DataType::kMXFP4) block[0] = std::byte(100 + random() % 40);
    // A row has one scale for all its blocks; E4M3 numbers are never NaN.
    const float scale = 0.0123f;
    if (type == DataType::kF8E4M3) {
      std::memcpy(block, &scale, 4);
      for (int i = 4; i < 36; ++i)
        if ((block[i] & std::byte{127}) == std::byte{127}) block[i] = std::byte{0x85};
    }
    if (type == DataType::kInt4_32) block[3] = std::byte{0};
    if (type == DataType::kInt4_128) std::memcpy(block, "\x12\x2c\x09\x00", 4);
  }
  return raw;
}

Buffer upload_words(Device& device, std::span<const std::byte> bytes) {
  Buffer buffer = device.memory().allocate(bytes.size(), MemoryUsage::kActivations);
  upload(device, buffer.view(), bytes);
  return buffer;
}

/// A matrix's rows in blocks, read by the embedding and by a product with the identity.
struct Readings {
  std::vector<float> looked_up, multiplied;
};
Readings read_on_device(DataType type, uint64_t rows, uint64_t columns,
                        std::span<const std::byte> packed) {
  Device& device = shared_device();
  const Buffer weight = upload_words(device, packed);
  std::vector<uint32_t> ids(rows);
  for (uint32_t i = 0; i < rows; ++i) ids[i] = i;
  const Buffer control = upload_words(device, std::as_bytes(std::span(ids)));
  std::vector<float> identity(columns * columns);
  for (uint64_t i = 0; i < columns; ++i) identity[i * columns + i] = 1;
  const Buffer x = upload_words(device, std::as_bytes(std::span(identity)));

  ProgramBuilder builder(device, "blocks");
  const Tensor table = weight.tensor({rows, columns}, type);
  const Tensor entries = embedding(builder, table,
                                   {.control = control.tensor({rows}, DataType::kU32),
                                    .tokens = {0, static_cast<uint32_t>(rows)},
                                    .rows = 1,
                                    .length = static_cast<uint32_t>(rows)});
  const Tensor product = matmul(builder, x.tensor({columns, columns}, DataType::kF32), table);
  builder.keep(entries);
  builder.keep(product);
  Program program = builder.build();
  program.run();
  Readings readings{download_as<float>(device, program.view(entries)), {}};
  const std::vector<float> turned = download_as<float>(device, program.view(product));
  for (uint64_t i = 0; i < rows; ++i) {
    for (uint64_t k = 0; k < columns; ++k) readings.multiplied.push_back(turned[k * rows + i]);
  }
  return readings;
}

std::vector<std::byte> packed(DataType type, uint64_t rows, uint64_t columns,
                              std::span<const std::byte> blocks) {
  std::vector<std::byte> result(rows * row_bytes(type, columns));
  pack_blocks(type, columns, blocks, result);
  return result;
}

}  // namespace

TEST_CASE("Blocks that other programs wrote have their values on the device, bit by bit") {
  const SafetensorsFile blocks_file(data_dir() / "blocks.safetensors"),
      grids_file(data_dir() / "weight_types/grids.safetensors");
  for (const DataType type : share_of(kBlockTypes)) {
    const SafetensorsFile& file = is_grid_type(type) ? grids_file : blocks_file;
    for (const char* set : {"random", "quantized", "file"}) {
      const std::string name = fixture_name(type) + "/" + set;
      const CheckpointTensor *raw = file.find(name + "_raw"), *values = file.find(name + "_float");
      if (!raw) continue;
      INFO(name);
      // Each block is a row.
      const uint64_t bytes = gguf_block_bytes(type), blocks = raw->bytes.size() / bytes;
      const uint64_t columns = block_elements(type), rows = blocks;
      const std::vector<float> wanted = read_floats(*values, 0, values->elements());
      REQUIRE(wanted.size() == rows * columns);
      const Readings readings =
          read_on_device(type, rows, columns, packed(type, rows, columns, raw->bytes));
      for (uint64_t i = 0; i < wanted.size(); ++i) {
        // A scale that is not finite gives no value to compare; the first value of a block shows
        // its scale.
        if (!std::isfinite(wanted[i]) || !std::isfinite(readings.looked_up[i])) continue;
        INFO("element " << i);
        REQUIRE(readings.looked_up[i] == wanted[i]);
        REQUIRE(readings.multiplied[i] == wanted[i]);
      }
    }
  }
}

TEST_CASE("Packed rows mean what the blocks of the file mean") {
  std::mt19937 random(7);
  for (const DataType type : kBlockTypes) {
    INFO(name_of(type));
    // An odd number of blocks of 32 leaves half a word after the scales, and padding.
    const uint64_t columns = block_elements(type) == 32 ? 96 : 512, rows = 3;
    const uint64_t bytes = gguf_block_bytes(type), blocks = rows * columns / block_elements(type);
    std::vector<std::byte> raw = random_blocks(type, blocks, random);
    const std::vector<std::byte> rows_of_words = packed(type, rows, columns, raw);
    std::vector<uint32_t> words(rows_of_words.size() / 4);
    std::memcpy(words.data(), rows_of_words.data(), rows_of_words.size());
    std::vector<double> values, sizes;
    conformance::read_blocks(type, columns, words, values, sizes);
    CheckpointTensor tensor{"t", {}, {rows, columns}, raw};
    for (int candidate = 0;; ++candidate) {
      tensor.type = static_cast<CheckpointType>(candidate);
      if (device_type(tensor.type) == type) break;
    }
    const std::vector<float> wanted = read_floats(tensor, 0, rows * columns);
    REQUIRE(values.size() == wanted.size());
    for (size_t i = 0; i < values.size(); ++i) REQUIRE(static_cast<float>(values[i]) == wanted[i]);

    // Not finite: first the scale of the last block, then one of its numbers.
    CHECK(all_finite(type, columns, rows_of_words));
    for (const uint64_t at : half_scales(type)) {
      std::vector<std::byte> other = raw;
      other[(blocks - 1) * bytes + at + 1] = std::byte{0x7c};
      CHECK_FALSE(all_finite(type, columns, packed(type, rows, columns, other)));
    }
    if (type != DataType::kF8E4M3) continue;
    raw.back() = std::byte{0xff};
    CHECK_FALSE(all_finite(type, columns, packed(type, rows, columns, raw)));
    raw.back() = std::byte{0};
    std::memcpy(raw.data() + (blocks - 1) * bytes, "\0\0\x80\x7f", 4);
    CHECK_FALSE(all_finite(type, columns, packed(type, rows, columns, raw)));
  }
}

TEST_CASE("NaN and infinity are found wherever they stand") {
  const auto finite = [](DataType type, auto... words) {
    const std::array row = {words...};
    return all_finite(type, row.size(), std::as_bytes(std::span(row)));
  };
  CHECK(finite(DataType::kF32, 1.0f, -3e38f, 0.0f));
  CHECK_FALSE(finite(DataType::kF32, 1.0f, 2.0f, -std::numeric_limits<float>::infinity()));
  CHECK_FALSE(finite(DataType::kF32, std::numeric_limits<float>::quiet_NaN(), 1.0f));
  CHECK(finite(DataType::kF16, uint16_t{0x7bff}, uint16_t{0xfbff}));
  CHECK_FALSE(finite(DataType::kF16, uint16_t{0}, uint16_t{0xfc00}));
  CHECK(finite(DataType::kBF16, uint16_t{0x7f7f}, uint16_t{0x7c00}));
  CHECK_FALSE(finite(DataType::kBF16, uint16_t{0x7fc0}, uint16_t{0}));
}

TEST_CASE("One row takes a layer of three block types in one dispatch, but for types with tables") {
  const DataType second = GENERATE(DataType::kQ8_0, DataType::kIQ3_S);
  INFO(name_of(second));
  Device& device = shared_device();
  std::mt19937 random(5);
  const uint64_t columns = 512;
  const struct {
    DataType type;
    uint64_t rows;
  } segments[] = {{DataType::kQ4_K, 70}, {second, 34}, {DataType::kQ6_K, 2}};
  // Random blocks whose scales are finite and small, one type after the other with a gap between.
  std::vector<std::byte> bytes;
  std::vector<uint64_t> begins;
  for (const auto& segment : segments) {
    bytes.resize((bytes.size() + 255) / 256 * 256);
    begins.push_back(bytes.size());
    const uint64_t block = gguf_block_bytes(segment.type),
                   blocks = segment.rows * columns / block_elements(segment.type);
    std::vector<std::byte> raw(blocks * block);
    for (std::byte& byte : raw) byte = static_cast<std::byte>(random());
    for (uint64_t b = 0; b < blocks; ++b) {
      // The f16 scales: d and dmin of q4_K and d of q8_0 at the beginning, d of q6_K at the end.
      const uint64_t at = b * block + (segment.type == DataType::kQ6_K ? block - 2 : 0);
      raw[at + 1] = std::byte{0x20};
      if (segment.type == DataType::kQ4_K) raw[at + 3] = std::byte{0x20};
    }
    const std::vector<std::byte> rows = packed(segment.type, segment.rows, columns, raw);
    bytes.insert(bytes.end(), rows.begin(), rows.end());
  }
  const Buffer weights = upload_words(device, bytes);
  std::vector<Tensor> tensors;
  uint64_t all = 0;
  for (size_t i = 0; i < 3; ++i) {
    Tensor tensor = {
        .shape = {segments[i].rows, columns}, .type = segments[i].type, .view = weights.view()};
    tensor.view.offset += begins[i];
    if (tensor.view.address) tensor.view.address += begins[i];
    if (tensor.view.mapped) tensor.view.mapped += begins[i];
    tensor.view.size = tensor.bytes();
    tensors.push_back(tensor);
    all += segments[i].rows;
  }
  std::normal_distribution<float> normal;
  std::vector<float> values(columns + all);
  for (float& value : values) value = normal(random);
  const Buffer x = upload_words(device, std::as_bytes(std::span(values).first(columns)));
  const Buffer bias = upload_words(device, std::as_bytes(std::span(values).subspan(columns)));

  for (size_t below = 1; below <= 2; ++below) {
    ProgramBuilder builder(device, "block_types");
    const Tensor input = x.tensor({1, columns}, DataType::kF32);
    uint64_t count = 0;
    for (size_t i = 0; i <= below; ++i) count += segments[i].rows;
    const Linear layer{
        tensors[0],
        bias.tensor({count}, DataType::kF32),
        {tensors.begin() + 1, tensors.begin() + 1 + static_cast<std::ptrdiff_t>(below)}};
    const Tensor y = layer(builder, input, Activation::kRelu);
    std::vector<Tensor> single;
    for (size_t i = 0; i <= below; ++i) single.push_back(matmul(builder, input, tensors[i]));
    builder.keep(y);
    for (const Tensor& tensor : single) builder.keep(tensor);
    Program program = builder.build();
    const bool merges = device.capabilities().has(kSubgroupArithmetic | kSubgroupShuffle);
    CHECK((program.nodes().size() == below + 2) == (merges && !is_grid_type(second)));
    program.run();
    const std::vector<float> got = download_as<float>(device, program.view(y));
    uint64_t first = 0;
    for (size_t i = 0; i <= below; ++i) {
      const std::vector<float> plain = download_as<float>(device, program.view(single[i]));
      for (uint64_t j = 0; j < segments[i].rows; ++j) {
        const float wanted = std::max(0.0f, plain[j] + values[columns + first + j]);
        INFO("types " << below + 1 << ", segment " << i << ", row " << j);
        CHECK(std::fabs(got[first + j] - wanted) <= 1e-5f * (1 + std::fabs(wanted)));
      }
      first += segments[i].rows;
    }
  }
}

TEST_CASE("A layer whose rows are stored in two types is the layer of all rows") {
  Device& device = shared_device();
  std::mt19937 random(3);
  auto numbers = [&](size_t count) {
    std::normal_distribution<float> normal;
    std::vector<float> values(count);
    for (float& value : values) value = normal(random);
    return values;
  };
  const uint64_t columns = 64, rows[2] = {5, 3}, length = 2;
  std::vector<std::byte> raw(rows[1] * columns / 32 * gguf_block_bytes(DataType::kQ8_0));
  for (std::byte& byte : raw) byte = static_cast<std::byte>(random());
  for (size_t b = 0; b < raw.size() / 34; ++b) raw[34 * b + 1] = std::byte{0x20};
  auto upload_numbers = [&](size_t count) {
    const std::vector<float> values = numbers(count);
    return upload_words(device, std::as_bytes(std::span(values)));
  };
  const Buffer above = upload_numbers(rows[0] * columns);
  const Buffer below = upload_words(device, packed(DataType::kQ8_0, rows[1], columns, raw));
  const Buffer bias = upload_numbers(rows[0] + rows[1]);
  const Buffer x = upload_numbers(length * columns);

  ProgramBuilder builder(device, "two_types");
  const Tensor input = x.tensor({length, columns}, DataType::kF32);
  const Linear layer{above.tensor({rows[0], columns}, DataType::kF32),
                     bias.tensor({rows[0] + rows[1]}, DataType::kF32),
                     {below.tensor({rows[1], columns}, DataType::kQ8_0)}};
  const Tensor y = layer(builder, input, Activation::kRelu);
  const Tensor segments[2] = {matmul(builder, input, layer.weight),
                              matmul(builder, input, layer.more_segments[0])};
  const Tensor sum = fill(builder, {length, rows[0] + rows[1]}, 1);
  layer.add_to(builder, input, sum);
  for (const Tensor& tensor : {y, sum, segments[0], segments[1]}) builder.keep(tensor);
  Program program = builder.build();
  program.run();
  const std::vector<float> got = download_as<float>(device, program.view(y));
  const std::vector<float> summed = download_as<float>(device, program.view(sum));
  const std::vector<float> biases = download_as<float>(device, bias.view());
  uint64_t first = 0;
  for (int segment = 0; segment < 2; ++segment) {
    const std::vector<float> plain = download_as<float>(device, program.view(segments[segment]));
    for (uint64_t i = 0; i < length; ++i) {
      for (uint64_t j = 0; j < rows[segment]; ++j) {
        const float biased = plain[i * rows[segment] + j] + biases[first + j];
        const uint64_t at = i * (rows[0] + rows[1]) + first + j;
        CHECK(std::fabs(got[at] - std::max(0.0f, biased)) <= 1e-5f);
        CHECK(std::fabs(summed[at] - (1 + biased)) <= 1e-5f);
      }
    }
    first += rows[segment];
  }
}

TEST_CASE("What blocks take on the device is close to what they take in the file") {
  for (const DataType type : kBlockTypes) {
    for (const uint64_t columns : {768, 2048, 4096}) {
      double in_file = static_cast<double>(columns / block_elements(type) * gguf_block_bytes(type));
      // Blocks made from a safetensors file repeat the scale of 128 elements.
      if (type == DataType::kF8E4M3 || type == DataType::kInt4_128)
        in_file -= static_cast<double>(columns / 32 * 4 - (columns + 127) / 128 * 4);
      INFO(name_of(type) << " " << columns);
      CHECK(static_cast<double>(row_bytes(type, columns)) >= in_file);
      // On the device the scales of q3_K (six bits in the file) are bytes, mxfp4's exponents are
      // half words, and iq3_s has two copies of its one scale per 32 elements. The end of a row is
      // padding.
      const bool wider =
          type == DataType::kQ3_K || type == DataType::kMXFP4 || type == DataType::kIQ3_S;
      const double most = (wider ? 1.06 : 1.04) * in_file + 15;
      CHECK(static_cast<double>(row_bytes(type, columns)) < most);
    }
  }
  CHECK_THROWS_WITH(row_bytes(DataType::kQ4_K, 640),
                    Catch::Matchers::ContainsSubstring("not whole blocks of q4_k"));
  CHECK_THROWS_WITH(row_bytes(DataType::kQ4_0, 33),
                    Catch::Matchers::ContainsSubstring("not whole blocks of q4_0"));
}
