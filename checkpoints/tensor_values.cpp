#include "checkpoints/tensor_values.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/grids.h"
#include "mulciber/error.h"

namespace mulciber {
namespace {

template <typename T>
T load(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

float half_at(const std::byte* at) { return half_to_float(load<uint16_t>(at)); }
int byte_at(const std::byte* at) { return std::to_integer<int>(*at); }
int low(const std::byte* at) { return byte_at(at) & 15; }
int high(const std::byte* at) { return byte_at(at) >> 4; }

// Blocks of 32. Low nibbles are the first half of a block of four-bit values, high nibbles the
// second.

void read_q4_0(const std::byte* block, float* out) {
  const float scale = half_at(block);
  for (int i = 0; i < 16; ++i) {
    out[i] = scale * static_cast<float>(low(block + 2 + i) - 8);
    out[i + 16] = scale * static_cast<float>(high(block + 2 + i) - 8);
  }
}

void read_q4_1(const std::byte* block, float* out) {
  const float scale = half_at(block), least = half_at(block + 2);
  for (int i = 0; i < 16; ++i) {
    out[i] = scale * static_cast<float>(low(block + 4 + i)) + least;
    out[i + 16] = scale * static_cast<float>(high(block + 4 + i)) + least;
  }
}

// One word holds the fifth bits of all 32 values.
int fifth_bit(uint32_t word, int i) { return static_cast<int>(word >> i & 1) << 4; }

void read_q5_0(const std::byte* block, float* out) {
  const float scale = half_at(block);
  const auto fifth = load<uint32_t>(block + 2);
  for (int i = 0; i < 16; ++i) {
    out[i] = scale * static_cast<float>((low(block + 6 + i) | fifth_bit(fifth, i)) - 16);
    out[i + 16] = scale * static_cast<float>((high(block + 6 + i) | fifth_bit(fifth, i + 16)) - 16);
  }
}

void read_q5_1(const std::byte* block, float* out) {
  const float scale = half_at(block), least = half_at(block + 2);
  const auto fifth = load<uint32_t>(block + 4);
  for (int i = 0; i < 16; ++i) {
    out[i] = scale * static_cast<float>(low(block + 8 + i) | fifth_bit(fifth, i)) + least;
    out[i + 16] =
        scale * static_cast<float>(high(block + 8 + i) | fifth_bit(fifth, i + 16)) + least;
  }
}

void read_q8_0(const std::byte* block, float* out) {
  const float scale = half_at(block);
  for (int i = 0; i < 32; ++i) out[i] = scale * static_cast<float>(load<int8_t>(block + 2 + i));
}

// Nibbles are indices into these integers.
constexpr float kIQ4Values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                  1,    13,   25,  38,  53,  69,  89,  113};
// Magnitudes of E2M1.
constexpr float kFp4Values[16] = {0,    .5f,  1,  1.5f,  2,  3,  4,  6,
                                  -0.f, -.5f, -1, -1.5f, -2, -3, -4, -6};

void read_iq4_nl(const std::byte* block, float* out) {
  const float scale = half_at(block);
  for (int i = 0; i < 16; ++i) {
    out[i] = scale * kIQ4Values[low(block + 2 + i)];
    out[i + 16] = scale * kIQ4Values[high(block + 2 + i)];
  }
}

void read_mxfp4(const std::byte* block, float* out) {
  for (int i = 0; i < 16; ++i) {
    out[i] = std::ldexp(kFp4Values[low(block + 1 + i)], byte_at(block) - 127);
    out[i + 16] = std::ldexp(kFp4Values[high(block + 1 + i)], byte_at(block) - 127);
  }
}

float e4m3_at(const std::byte* at) {
  const int exponent = byte_at(at) >> 3 & 15, fraction = byte_at(at) & 7;
  if (exponent == 15 && fraction == 7) return std::numeric_limits<float>::quiet_NaN();
  const float magnitude = std::ldexp(static_cast<float>(exponent == 0 ? fraction : fraction + 8),
                                     std::max(exponent, 1) - 10);
  return byte_at(at) >= 128 ? -magnitude : magnitude;
}

void read_scaled_e4m3(const std::byte* block, float* out) {
  for (int i = 0; i < 32; ++i) out[i] = load<float>(block) * e4m3_at(block + 4 + i);
}

void read_int4(const std::byte* block, float* out) {
  const float scale = half_at(block), zero = load<uint16_t>(block + 2);
  for (int i = 0; i < 16; ++i) {
    out[i] = scale * (static_cast<float>(low(block + 4 + i)) - zero);
    out[i + 16] = scale * (static_cast<float>(high(block + 4 + i)) - zero);
  }
}

// Blocks of 256, with a scale for every 16 or 32 values.

void read_q2_k(const std::byte* block, float* out) {
  const std::byte* scales = block;
  const std::byte* values = block + 16;
  const float scale = half_at(block + 80), least = half_at(block + 82);
  for (int i = 0; i < 256; ++i) {
    const int group = i / 16, half = i / 128, shift = i % 128 / 32 * 2;
    const int value = byte_at(values + half * 32 + i % 32) >> shift & 3;
    out[i] = scale * static_cast<float>(low(scales + group)) * static_cast<float>(value) -
             least * static_cast<float>(high(scales + group));
  }
}

void read_q3_k(const std::byte* block, float* out) {
  const std::byte* third = block;
  const std::byte* values = block + 32;
  const std::byte* packed = block + 96;
  const float scale = half_at(block + 108);
  for (int i = 0; i < 256; ++i) {
    const int group = i / 16, half = i / 128, shift = i % 128 / 32;
    // Each of the sixteen scales has six bits: four in the first eight bytes, two in the last four.
    const int nibble = group < 8 ? low(packed + group) : high(packed + group - 8);
    const int upper = byte_at(packed + 8 + group % 4) >> (group / 4 * 2) & 3;
    const int value = (byte_at(values + half * 32 + i % 32) >> (shift * 2) & 3) -
                      ((byte_at(third + i % 32) >> (half * 4 + shift) & 1) ? 0 : 4);
    out[i] = scale * static_cast<float>((nibble | upper << 4) - 32) * static_cast<float>(value);
  }
}

// Q4_K and Q5_K: eight scales and eight minima of six bits each, packed into twelve bytes.
struct ScaleAndLeast {
  int scale, least;
};
ScaleAndLeast packed_pair(const std::byte* packed, int group) {
  if (group < 4) return {byte_at(packed + group) & 63, byte_at(packed + group + 4) & 63};
  return {low(packed + group + 4) | (byte_at(packed + group - 4) >> 6) << 4,
          high(packed + group + 4) | (byte_at(packed + group) >> 6) << 4};
}

void read_q4_k(const std::byte* block, float* out) {
  const float scale = half_at(block), least = half_at(block + 2);
  for (int i = 0; i < 256; ++i) {
    const int group = i / 32;
    const auto pair = packed_pair(block + 4, group);
    const std::byte* at = block + 16 + group / 2 * 32 + i % 32;
    out[i] = scale * static_cast<float>(pair.scale) *
                 static_cast<float>(group % 2 ? high(at) : low(at)) -
             least * static_cast<float>(pair.least);
  }
}

void read_q5_k(const std::byte* block, float* out) {
  const float scale = half_at(block), least = half_at(block + 2);
  for (int i = 0; i < 256; ++i) {
    const int group = i / 32;
    const auto pair = packed_pair(block + 4, group);
    const std::byte* at = block + 48 + group / 2 * 32 + i % 32;
    const int fifth = (byte_at(block + 16 + i % 32) >> group & 1) << 4;
    out[i] = scale * static_cast<float>(pair.scale) *
                 static_cast<float>((group % 2 ? high(at) : low(at)) | fifth) -
             least * static_cast<float>(pair.least);
  }
}

void read_q6_k(const std::byte* block, float* out) {
  const float scale = half_at(block + 208);
  for (int i = 0; i < 256; ++i) {
    // Each half of 256 values has four runs of 32, whose low bits share 64 bytes and high bits 32.
    const int half = i / 128, run = i % 128 / 32;
    const std::byte* four = block + half * 64 + run % 2 * 32 + i % 32;
    const int upper = byte_at(block + 128 + half * 32 + i % 32) >> (run * 2) & 3;
    const int value = ((run < 2 ? low(four) : high(four)) | upper << 4) - 32;
    out[i] =
        scale * static_cast<float>(load<int8_t>(block + 192 + i / 16)) * static_cast<float>(value);
  }
}

void read_iq4_xs(const std::byte* block, float* out) {
  const float scale = half_at(block);
  for (int i = 0; i < 256; ++i) {
    const int group = i / 32;
    const std::byte* packed = block + 4 + group / 2;
    const int upper = load<uint16_t>(block + 2) >> (2 * group) & 3;
    const int sub_scale = ((group % 2 ? high(packed) : low(packed)) | upper << 4) - 32;
    const std::byte* at = block + 8 + group * 16 + i % 16;
    out[i] = scale * static_cast<float>(sub_scale) * kIQ4Values[i % 32 < 16 ? low(at) : high(at)];
  }
}

// Magnitudes are entries of a table of the type.
template <DataType type>
void read_grid(const std::byte* block, float* out) {
  const uint32_t format = grid_format(type), length = GRID_LENGTH(format);
  const float scale = grid_super_scale(type, block);
  for (uint32_t i = 0; i < 256; i += 32) {
    const GridGroup group = read_grid_group(type, block, i / 32);
    for (uint32_t j = 0; j < 32; ++j) {
      const int magnitude = grid_magnitude(format, group.entries[j / length], j % length);
      out[i + j] = scale * static_cast<float>(2 * group.scales[j / 16] + 1) *
                   static_cast<float>(group.signs >> j & 1 ? -magnitude : magnitude);
    }
  }
}

using BlockReader = void (*)(const std::byte*, float*);

BlockReader block_reader(CheckpointType type) {
  switch (type) {
    case CheckpointType::kQ4_0: return read_q4_0;
    case CheckpointType::kQ4_1: return read_q4_1;
    case CheckpointType::kQ5_0: return read_q5_0;
    case CheckpointType::kQ5_1: return read_q5_1;
    case CheckpointType::kQ8_0: return read_q8_0;
    case CheckpointType::kQ2_K: return read_q2_k;
    case CheckpointType::kQ3_K: return read_q3_k;
    case CheckpointType::kQ4_K: return read_q4_k;
    case CheckpointType::kQ5_K: return read_q5_k;
    case CheckpointType::kQ6_K: return read_q6_k;
    case CheckpointType::kIQ4_NL: return read_iq4_nl;
    case CheckpointType::kIQ4_XS: return read_iq4_xs;
    case CheckpointType::kIQ2_XXS: return read_grid<DataType::kIQ2_XXS>;
    case CheckpointType::kIQ2_XS: return read_grid<DataType::kIQ2_XS>;
    case CheckpointType::kIQ2_S: return read_grid<DataType::kIQ2_S>;
    case CheckpointType::kIQ3_XXS: return read_grid<DataType::kIQ3_XXS>;
    case CheckpointType::kIQ3_S: return read_grid<DataType::kIQ3_S>;
    case CheckpointType::kMXFP4: return read_mxfp4;
    case CheckpointType::kScaledF8E4M3: return read_scaled_e4m3;
    case CheckpointType::kInt4_32:
    case CheckpointType::kInt4_128: return read_int4;
    case CheckpointType::kF32:
      return [](const std::byte* at, float* out) { *out = load<float>(at); };
    case CheckpointType::kF64:
      return [](const std::byte* at, float* out) { *out = static_cast<float>(load<double>(at)); };
    case CheckpointType::kF16: return [](const std::byte* at, float* out) { *out = half_at(at); };
    case CheckpointType::kBF16:
      return [](const std::byte* at, float* out) { *out = bf16_to_float(load<uint16_t>(at)); };
    default: return nullptr;
  }
}

}  // namespace

bool has_float_values(CheckpointType type) { return block_reader(type) != nullptr; }

std::vector<float> read_floats(const CheckpointTensor& tensor, uint64_t first, uint64_t count) {
  if (!has_float_values(tensor.type)) {
    throw ModelError("tensor `" + tensor.name + "`",
                     std::string("is stored as ") + name_of(tensor.type), kReadableTypes);
  }
  const std::size_t elements = block_elements(tensor.type), bytes = block_bytes(tensor.type);
  std::vector<std::byte> scratch;
  return floats_of(tensor.type,
                   tensor.read(first / elements * bytes, count / elements * bytes, scratch), count);
}

std::vector<float> floats_of(CheckpointType type, std::span<const std::byte> blocks,
                             uint64_t count) {
  const BlockReader read = block_reader(type);
  const std::size_t elements = block_elements(type), bytes = block_bytes(type);
  std::vector<float> values(count);
  for (uint64_t i = 0; i < count / elements; ++i)
    read(blocks.data() + i * bytes, values.data() + i * elements);
  return values;
}

}  // namespace mulciber
