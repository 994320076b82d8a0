#include "checkpoints/gguf.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

#include "mulciber/error.h"

namespace mulciber {
namespace {

static_assert(std::endian::native == std::endian::little,
              "values are used as they lie in the file");

constexpr std::uint64_t kDefaultAlignment = 32;
constexpr std::uint32_t kMostDimensions = 4;
constexpr int kDeepestArray = 4;  // for arrays of arrays; no known file has any
constexpr const char* kDamagedGguf = "the file is damaged or truncated: download it again";

struct TensorType {
  std::uint32_t id;
  std::optional<CheckpointType> type;
  const char* name;
};

// Types by the number of ggml; types without a CheckpointType are known by name only.
constexpr TensorType kTensorTypes[] = {
    {0, CheckpointType::kF32, "F32"},
    {1, CheckpointType::kF16, "F16"},
    {2, CheckpointType::kQ4_0, "Q4_0"},
    {3, CheckpointType::kQ4_1, "Q4_1"},
    {6, CheckpointType::kQ5_0, "Q5_0"},
    {7, CheckpointType::kQ5_1, "Q5_1"},
    {8, CheckpointType::kQ8_0, "Q8_0"},
    {9, std::nullopt, "Q8_1"},
    {10, CheckpointType::kQ2_K, "Q2_K"},
    {11, CheckpointType::kQ3_K, "Q3_K"},
    {12, CheckpointType::kQ4_K, "Q4_K"},
    {13, CheckpointType::kQ5_K, "Q5_K"},
    {14, CheckpointType::kQ6_K, "Q6_K"},
    {15, std::nullopt, "Q8_K"},
    {16, CheckpointType::kIQ2_XXS, "IQ2_XXS"},
    {17, CheckpointType::kIQ2_XS, "IQ2_XS"},
    {18, CheckpointType::kIQ3_XXS, "IQ3_XXS"},
    {19, std::nullopt, "IQ1_S"},
    {20, CheckpointType::kIQ4_NL, "IQ4_NL"},
    {21, CheckpointType::kIQ3_S, "IQ3_S"},
    {22, CheckpointType::kIQ2_S, "IQ2_S"},
    {23, CheckpointType::kIQ4_XS, "IQ4_XS"},
    {24, CheckpointType::kI8, "I8"},
    {25, CheckpointType::kI16, "I16"},
    {26, CheckpointType::kI32, "I32"},
    {27, CheckpointType::kI64, "I64"},
    {28, CheckpointType::kF64, "F64"},
    {29, std::nullopt, "IQ1_M"},
    {30, CheckpointType::kBF16, "BF16"},
    {34, std::nullopt, "TQ1_0"},
    {35, std::nullopt, "TQ2_0"},
    {39, CheckpointType::kMXFP4, "MXFP4"},
    {40, std::nullopt, "NVFP4"},
};

std::size_t scalar_bytes(GgufType type) {
  switch (type) {
    case GgufType::kU8:
    case GgufType::kI8:
    case GgufType::kBool: return 1;
    case GgufType::kU16:
    case GgufType::kI16: return 2;
    case GgufType::kU32:
    case GgufType::kI32:
    case GgufType::kF32: return 4;
    case GgufType::kU64:
    case GgufType::kI64:
    case GgufType::kF64: return 8;
    case GgufType::kString:
    case GgufType::kArray: break;
  }
  return 0;
}

template <typename T>
T load(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

std::int64_t integer_at(GgufType type, const std::byte* at) {
  switch (type) {
    case GgufType::kU8:
    case GgufType::kBool: return load<std::uint8_t>(at);
    case GgufType::kI8: return load<std::int8_t>(at);
    case GgufType::kU16: return load<std::uint16_t>(at);
    case GgufType::kI16: return load<std::int16_t>(at);
    case GgufType::kU32: return load<std::uint32_t>(at);
    case GgufType::kI32: return load<std::int32_t>(at);
    case GgufType::kU64:
      return static_cast<std::int64_t>(std::min<std::uint64_t>(load<std::uint64_t>(at), INT64_MAX));
    case GgufType::kI64: return load<std::int64_t>(at);
    default: return 0;
  }
}

double number_at(GgufType type, const std::byte* at) {
  if (type == GgufType::kF32) return load<float>(at);
  if (type == GgufType::kF64) return load<double>(at);
  return static_cast<double>(integer_at(type, at));
}

std::string_view text_at(const std::byte* at) {
  return {reinterpret_cast<const char*>(at) + 8, static_cast<std::size_t>(load<std::uint64_t>(at))};
}

}  // namespace

/// A position in the file, and reads that never pass its end.
class GgufReader {
 public:
  GgufReader(FileBytes& file, std::string where)
      : file_(file), bytes_(file.all()), where_(std::move(where)) {}

  [[noreturn]] void fail(const std::string& problem, const char* remedy = kDamagedGguf) const {
    throw ModelError(where_, problem, remedy);
  }
  std::uint64_t position() const { return position_; }
  std::uint64_t left() const { return bytes_.size() - position_; }
  std::span<const std::byte> since(std::uint64_t begin) const {
    return bytes_.subspan(begin, position_ - begin);
  }
  std::span<const std::byte> all() const { return bytes_; }

  template <typename T>
  T number(const std::string& what) {
    return load<T>(take(sizeof(T), what));
  }
  const std::byte* take(std::uint64_t count, const std::string& what) {
    if (count > left()) {
      fail(what + " needs " + std::to_string(count) + " bytes at byte " +
           std::to_string(position_) + ", the file has " + std::to_string(left()) + " more");
    }
    const std::byte* at = bytes_.data() + position_;
    position_ += count;
    file_.fetch_first(position_);
    return at;
  }
  std::string_view text(const std::string& what) {
    const auto length = number<std::uint64_t>(what);
    return {reinterpret_cast<const char*>(take(length, what)), static_cast<std::size_t>(length)};
  }
  GgufType type(const std::string& what) {
    const auto id = number<std::uint32_t>(what);
    if (id > static_cast<std::uint32_t>(GgufType::kF64))
      fail(what + " has the unknown type " + std::to_string(id));
    return static_cast<GgufType>(id);
  }
  /// Checks one value completely, so that later reads need no checks.
  GgufValue value(GgufType type, const std::string& what, int depth = 0) {
    GgufValue result{type, false, 1, {}};
    std::uint64_t begin = position_;
    if (type == GgufType::kString) {
      text(what);
    } else if (type == GgufType::kArray) {
      if (depth >= kDeepestArray) fail(what + " nests arrays too deep");
      result.is_array = true;
      result.type = this->type(what);
      result.count = number<std::uint64_t>(what);
      begin = position_;
      if (const std::size_t size = scalar_bytes(result.type)) {
        if (result.count > left() / size) {
          fail(what + " claims " + std::to_string(result.count) + " elements, the file has " +
               std::to_string(left()) + " more bytes");
        }
        take(result.count * size, what);
      } else {
        for (std::uint64_t i = 0; i < result.count; ++i) value(result.type, what, depth + 1);
      }
    } else {
      take(scalar_bytes(type), what);
    }
    result.bytes = since(begin);
    return result;
  }

 private:
  FileBytes& file_;
  std::span<const std::byte> bytes_;
  std::string where_;
  std::uint64_t position_ = 0;
};

const char* name_of(GgufType type) {
  constexpr const char* kNames[] = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                    "bool", "string", "array", "u64", "i64", "f64"};
  return kNames[static_cast<std::uint32_t>(type)];
}

bool GgufValue::is_integer() const {
  return is_number() && type != GgufType::kF32 && type != GgufType::kF64;
}
bool GgufValue::is_number() const {
  return !is_array && scalar_bytes(type) > 0 && type != GgufType::kBool;
}
std::int64_t GgufValue::integer() const { return integer_at(type, bytes.data()); }
double GgufValue::number() const { return number_at(type, bytes.data()); }
bool GgufValue::boolean() const { return integer_at(type, bytes.data()) != 0; }
std::string_view GgufValue::text() const { return text_at(bytes.data()); }

std::vector<std::string_view> GgufValue::texts() const {
  std::vector<std::string_view> result;
  if (!is_array || type != GgufType::kString) return result;
  result.reserve(count);
  const std::byte* at = bytes.data();
  for (std::uint64_t i = 0; i < count; ++i) {
    result.push_back(text_at(at));
    at += 8 + result.back().size();
  }
  return result;
}

std::vector<std::int64_t> GgufValue::integers() const {
  std::vector<std::int64_t> result;
  const std::size_t size = scalar_bytes(type);
  for (std::uint64_t i = 0; is_array && size > 0 && i < count; ++i) {
    result.push_back(integer_at(type, bytes.data() + i * size));
  }
  return result;
}

std::vector<double> GgufValue::numbers() const {
  std::vector<double> result;
  const std::size_t size = scalar_bytes(type);
  for (std::uint64_t i = 0; is_array && size > 0 && i < count; ++i) {
    result.push_back(number_at(type, bytes.data() + i * size));
  }
  return result;
}

Json GgufValue::shown(std::size_t most_elements) const {
  const auto scalar = [](GgufType type, const std::byte* at) -> Json {
    if (type == GgufType::kBool) return integer_at(type, at) != 0;
    if (type == GgufType::kU64) return load<std::uint64_t>(at);
    if (type == GgufType::kF32 || type == GgufType::kF64) return number_at(type, at);
    return integer_at(type, at);
  };
  if (is_text()) return printable(text());
  if (!is_array) return scalar(type, bytes.data());
  Json first = Json::array();
  const std::uint64_t most = std::min<std::uint64_t>(count, most_elements);
  if (type == GgufType::kString) {
    const std::byte* at = bytes.data();
    for (std::uint64_t i = 0; i < most; ++i) {
      first.push_back(printable(text_at(at)));
      at += 8 + text_at(at).size();
    }
  } else if (type != GgufType::kArray) {
    for (std::uint64_t i = 0; i < most; ++i)
      first.push_back(scalar(type, bytes.data() + i * scalar_bytes(type)));
  }
  if (most == count && type != GgufType::kArray) return first;
  return {{"array", name_of(type)}, {"count", count}, {"first", first}};
}

GgufFile::GgufFile(ModelFile file) : file_(std::move(file)) {
  GgufReader reader(*file_.bytes(), path().string());
  const char* magic = reinterpret_cast<const char*>(reader.take(4, "the GGUF header"));
  if (std::string_view(magic, 4) != "GGUF")
    reader.fail("does not begin with GGUF", "not a GGUF file");
  version_ = reader.number<std::uint32_t>("the GGUF header");
  if (version_ != 2 && version_ != 3) {
    const bool swapped = (version_ & 0xffff) == 0 && version_ != 0;
    reader.fail(
        swapped ? "is a big-endian GGUF file" : "is of GGUF version " + std::to_string(version_),
        "versions 2 and 3, little-endian, are supported: download a newer file");
  }
  const auto tensor_count = reader.number<std::uint64_t>("the GGUF header");
  const auto value_count = reader.number<std::uint64_t>("the GGUF header");
  // An entry has at least its lengths of strings, types and offsets.
  if (value_count > reader.left() / 13 || tensor_count > reader.left() / 24) {
    reader.fail("claims " + std::to_string(value_count) + " metadata values and " +
                std::to_string(tensor_count) + " tensors in " + std::to_string(file_.size()) +
                " bytes");
  }
  read_metadata(reader, value_count);
  read_tensors(reader, tensor_count);
}

void GgufFile::read_metadata(GgufReader& reader, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::string_view key = reader.text("a metadata key");
    const std::string what = "metadata '" + printable(key) + "'";
    if (key.empty()) reader.fail("has a metadata value without a key");
    const GgufType type = reader.type(what);
    if (!metadata_.emplace(std::string(key), reader.value(type, what)).second)
      reader.fail(what + " stands twice");
  }
}

void GgufFile::read_tensors(GgufReader& reader, std::uint64_t count) {
  std::uint64_t alignment = kDefaultAlignment;
  if (const GgufValue* value = find_value("general.alignment")) {
    if (!value->is_integer() || value->integer() <= 0 || value->integer() % 8 != 0 ||
        value->integer() > (std::int64_t{1} << 30)) {
      reader.fail("metadata 'general.alignment' is " + value->shown().dump() +
                  ", not a multiple of 8");
    }
    alignment = static_cast<std::uint64_t>(value->integer());
  }
  std::vector<std::uint64_t> offsets;
  for (std::uint64_t i = 0; i < count; ++i) {
    CheckpointTensor tensor;
    tensor.name = std::string(reader.text("a tensor's name"));
    const std::string what = "tensor '" + printable(tensor.name) + "'";
    const auto rank = reader.number<std::uint32_t>(what);
    if (rank > kMostDimensions) reader.fail(what + " has " + std::to_string(rank) + " dimensions");
    tensor.shape.resize(rank);
    for (std::uint32_t d = 0; d < rank; ++d)
      tensor.shape[rank - 1 - d] = reader.number<std::uint64_t>(what);
    const auto id = reader.number<std::uint32_t>(what);
    const auto* known = std::find_if(std::begin(kTensorTypes), std::end(kTensorTypes),
                                     [&](const TensorType& t) { return t.id == id; });
    if (known == std::end(kTensorTypes))
      reader.fail(what + " has the unknown type " + std::to_string(id));
    if (!known->type) {
      reader.fail(what + " is stored as " + known->name,
                  "use a file in F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q2_K, Q3_K, Q4_K, "
                  "Q5_K, Q6_K, IQ2_XXS, IQ2_XS, IQ2_S, IQ3_XXS, IQ3_S, IQ4_NL, IQ4_XS or MXFP4");
    }
    tensor.type = *known->type;
    if (!tensor.shape.empty() && tensor.shape.back() % block_elements(tensor.type) != 0) {
      reader.fail(what + " has rows of " + std::to_string(tensor.shape.back()) +
                  ", not whole blocks of " + name_of(tensor.type));
    }
    if (tensor.shape.empty() && is_quantized(tensor.type))
      reader.fail(what + " is a scalar in blocks");
    offsets.push_back(reader.number<std::uint64_t>(what));
    tensors_.push_back(std::move(tensor));
  }

  const std::uint64_t begin = (reader.position() + alignment - 1) / alignment * alignment;
  const std::uint64_t size = file_.size();
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    CheckpointTensor& tensor = tensors_[i];
    const std::string what = "tensor '" + printable(tensor.name) + "'";
    const auto bytes = byte_count(tensor.type, tensor.shape);
    if (!bytes) reader.fail(what + " has a shape whose size exceeds 64 bits");
    if (offsets[i] % alignment != 0)
      reader.fail(what + " does not begin at a multiple of the file's alignment");
    if (begin > size || offsets[i] > size - begin || *bytes > size - begin - offsets[i]) {
      reader.fail(what + " lies at bytes " + std::to_string(offsets[i]) + " to " +
                  std::to_string(offsets[i] + *bytes) + " of the data, the file holds " +
                  std::to_string(begin > size ? 0 : size - begin));
    }
    tensor.bytes = file_.bytes()->all().subspan(begin + offsets[i], *bytes);
    tensor.file = file_.bytes();
    if (*bytes > 0) ranges.emplace_back(offsets[i], offsets[i] + *bytes);
    if (!by_name_.emplace(tensor.name, i).second) reader.fail(what + " stands twice");
  }
  std::sort(ranges.begin(), ranges.end());
  for (std::size_t i = 1; i < ranges.size(); ++i) {
    if (ranges[i].first < ranges[i - 1].second) {
      reader.fail("has two tensors that overlap at byte " + std::to_string(ranges[i].first) +
                  " of the data");
    }
  }
}

const GgufValue* GgufFile::find_value(std::string_view key) const {
  const auto found = metadata_.find(key);
  return found == metadata_.end() ? nullptr : &found->second;
}

std::string GgufFile::architecture() const {
  const GgufValue* value = find_value("general.architecture");
  return value && value->is_text() ? std::string(value->text()) : std::string();
}

const CheckpointTensor* GgufFile::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &tensors_[found->second];
}

}  // namespace mulciber
