#include "checkpoints/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "checkpoints/json.h"
#include "mulciber/error.h"

namespace mulciber {
namespace {

static_assert(std::endian::native == std::endian::little,
              "tensor bytes are used as they lie in the file");

// The types of the format; block types exist only in GGUF.
constexpr CheckpointType kTypes[] = {
    CheckpointType::kF64,    CheckpointType::kF32,    CheckpointType::kF16,  CheckpointType::kBF16,
    CheckpointType::kF8E4M3, CheckpointType::kF8E5M2, CheckpointType::kI64,  CheckpointType::kI32,
    CheckpointType::kI16,    CheckpointType::kI8,     CheckpointType::kU64,  CheckpointType::kU32,
    CheckpointType::kU16,    CheckpointType::kU8,     CheckpointType::kBool,
};

// The reference implementation's limit of the header, and a rank beyond every known model.
constexpr std::uint64_t kLongestHeader = 100'000'000;
constexpr std::size_t kHighestRank = 16;
// Mixture-of-experts checkpoints have almost a hundred thousand tensors. The bounds keep the tables
// of a hostile header of maximum length at a few hundred megabytes.
constexpr std::size_t kMostTensors = 1'000'000;
constexpr std::size_t kMostMetadata = 100'000;
constexpr const char* kDamaged = "the file is damaged: download it again";

struct Entry {
  std::string name;
  std::optional<CheckpointType> type;
  std::vector<std::uint64_t> shape;
  bool has_shape = false;
  std::vector<std::uint64_t> offsets;  // begin and end, from the end of the header
};

/// Reads the header by its grammar and stores tensor entries alone: {"__metadata__": {key: text},
/// name: {"dtype": text, "shape": [n...], "data_offsets": [begin, end]}}.
class HeaderReader : public nlohmann::json_sax<Json> {
 public:
  explicit HeaderReader(const std::string& where) : where_(where) {}

  std::vector<Entry> entries;
  std::map<std::string, std::string> metadata;

  bool null() override { return refuse("null"); }
  bool boolean(bool) override { return refuse("a boolean"); }
  bool number_integer(number_integer_t value) override { return refuse(std::to_string(value)); }
  bool number_float(number_float_t, const string_t& text) override { return refuse(text); }
  bool binary(binary_t&) override { return refuse("binary data"); }

  bool number_unsigned(number_unsigned_t value) override {
    if (state_ != State::kNumbers) return refuse(std::to_string(value));
    if (numbers_->size() >= (numbers_ == &entries.back().offsets ? 2 : kHighestRank))
      fail("'" + field_ + "' has too many numbers");
    numbers_->push_back(value);
    return true;
  }

  bool string(string_t& value) override {
    if (state_ == State::kMetadata) {
      if (metadata.size() >= kMostMetadata)
        throw ModelError(
            where_, "has more than " + std::to_string(kMostMetadata) + " metadata entries", {});
      metadata[field_] = std::move(value);
    } else if (state_ == State::kTensor && field_ == "dtype") {
      for (const CheckpointType type : kTypes)
        if (value == name_of(type)) entries.back().type = type;
      if (!entries.back().type) fail("has the unknown type '" + printable(value) + "'");
    } else {
      return refuse("text");
    }
    return true;
  }

  bool start_object(std::size_t) override {
    if (state_ == State::kStart) {
      state_ = State::kTop;
    } else if (state_ == State::kTop) {
      state_ = metadata_follows_ ? State::kMetadata : State::kTensor;
    } else {
      return refuse("an object");
    }
    return true;
  }

  bool end_object() override {
    if (state_ == State::kTensor) {
      const Entry& entry = entries.back();
      if (!entry.type || !entry.has_shape || entry.offsets.size() != 2)
        fail("lacks dtype, shape or data_offsets");
    }
    metadata_follows_ = false;
    state_ = state_ == State::kTop ? State::kEnd : State::kTop;
    return true;
  }

  bool start_array(std::size_t) override {
    if (state_ != State::kTensor || (field_ != "shape" && field_ != "data_offsets"))
      return refuse("an array");
    Entry& entry = entries.back();
    if (field_ == "shape") entry.has_shape = true;
    numbers_ = field_ == "shape" ? &entry.shape : &entry.offsets;
    state_ = State::kNumbers;
    return true;
  }

  bool end_array() override {
    state_ = State::kTensor;
    return true;
  }

  bool key(string_t& name) override {
    if (state_ == State::kTop) {
      metadata_follows_ = name == "__metadata__";
      if (!metadata_follows_) {
        if (entries.size() >= kMostTensors)
          throw ModelError(where_, "has more than " + std::to_string(kMostTensors) + " tensors",
                           {});
        entries.emplace_back().name = std::move(name);
        seen_ = 0;
      } else if (had_metadata_) {
        throw ModelError(where_, "has __metadata__ twice", kDamaged);
      } else {
        had_metadata_ = true;
      }
      return true;
    }
    field_ = std::move(name);
    if (state_ != State::kTensor) return true;
    const unsigned bit = field_ == "dtype"          ? 1
                         : field_ == "shape"        ? 2
                         : field_ == "data_offsets" ? 4
                                                    : 0;
    if (bit == 0) fail("has the unknown field '" + printable(field_) + "'");
    if (seen_ & bit) fail("has the field '" + field_ + "' twice");
    seen_ |= bit;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    throw ModelError(where_, "the header is not valid JSON at byte " + std::to_string(8 + position),
                     kDamaged);
  }

 private:
  enum class State { kStart, kTop, kMetadata, kTensor, kNumbers, kEnd };

  [[noreturn]] void fail(const std::string& problem) const {
    throw ModelError(where_, "tensor '" + printable(entries.back().name) + "' " + problem,
                     kDamaged);
  }

  bool refuse(const std::string& what) const {
    if (state_ == State::kTensor || state_ == State::kNumbers)
      fail("has " + printable(what) + " as '" + printable(field_) + "'");
    throw ModelError(where_,
                     "the header has " + printable(what) + " where " +
                         (state_ == State::kStart ? "its object"
                          : state_ == State::kTop ? "a tensor entry"
                                                  : "metadata text") +
                         " is expected",
                     "not a safetensors file, or damaged");
  }

  const std::string& where_;
  State state_ = State::kStart;
  std::string field_;
  std::vector<std::uint64_t>* numbers_ = nullptr;
  unsigned seen_ = 0;
  bool metadata_follows_ = false;
  bool had_metadata_ = false;
};

}  // namespace

SafetensorsFile::SafetensorsFile(ModelFile file) : file_(std::move(file)) {
  const std::string where = path().string();
  const std::span<const std::byte> bytes = file_.bytes()->all();
  if (bytes.size() < 8)
    throw ModelError(
        where, "has " + std::to_string(bytes.size()) + " bytes, too few for a safetensors header",
        kDamaged);
  std::uint64_t header_length = 0;
  file_.bytes()->fetch_first(8);
  std::memcpy(&header_length, bytes.data(), 8);
  if (header_length > bytes.size() - 8)
    throw ModelError(where,
                     "claims a header of " + std::to_string(header_length) + " bytes, but has " +
                         std::to_string(bytes.size()) + " bytes in all",
                     "not a safetensors file, or truncated: download it again");
  if (header_length > kLongestHeader)
    throw ModelError(where,
                     "claims a header of " + std::to_string(header_length) +
                         " bytes; the format allows " + std::to_string(kLongestHeader),
                     "not a safetensors file");
  file_.bytes()->fetch_first(8 + header_length);
  const auto* text = reinterpret_cast<const char*>(bytes.data()) + 8;
  HeaderReader reader(where);
  Json::sax_parse(text, text + header_length, &reader);
  metadata_ = std::move(reader.metadata);

  std::vector<Entry>& entries = reader.entries;
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.offsets < b.offsets; });
  const std::span<const std::byte> data = bytes.subspan(8 + header_length);
  std::uint64_t position = 0;
  tensors_.reserve(entries.size());
  for (Entry& entry : entries) {
    const auto fail = [&](const std::string& problem) {
      throw ModelError(where, "tensor '" + printable(entry.name) + "' " + problem, kDamaged);
    };
    const auto [begin, end] = std::pair(entry.offsets[0], entry.offsets[1]);
    const std::string range = "bytes " + std::to_string(begin) + " to " + std::to_string(end);
    const std::optional<std::uint64_t> size = byte_count(*entry.type, entry.shape);
    if (!size) fail("has a shape whose size exceeds 64 bits");
    if (begin > end || end - begin != *size)
      fail("lies at " + range + ", but its shape and type need " + std::to_string(*size) +
           " bytes");
    if (end > data.size())
      fail("lies at " + range + ", but the file holds only " + std::to_string(data.size()) +
           " bytes of data");
    if (begin < position) fail("lies at " + range + " and overlaps the one before it");
    if (begin > position) fail("lies at " + range + " and leaves a hole before it");
    position = end;
    tensors_.push_back({std::move(entry.name), *entry.type, std::move(entry.shape),
                        data.subspan(begin, end - begin), file_.bytes()});
  }
  if (position != data.size())
    throw ModelError(where,
                     "holds " + std::to_string(data.size()) +
                         " bytes of data, but its tensors end at " + std::to_string(position),
                     kDamaged);

  by_name_.resize(tensors_.size());
  std::iota(by_name_.begin(), by_name_.end(), 0U);
  std::sort(by_name_.begin(), by_name_.end(),
            [&](auto a, auto b) { return tensors_[a].name < tensors_[b].name; });
  for (std::size_t i = 1; i < by_name_.size(); ++i)
    if (tensors_[by_name_[i]].name == tensors_[by_name_[i - 1]].name)
      throw ModelError(where, "tensor '" + printable(tensors_[by_name_[i]].name) + "' stands twice",
                       kDamaged);
}

const CheckpointTensor* SafetensorsFile::find(std::string_view name) const {
  const auto it =
      std::lower_bound(by_name_.begin(), by_name_.end(), name,
                       [&](auto i, std::string_view n) { return tensors_[i].name < n; });
  return it != by_name_.end() && tensors_[*it].name == name ? &tensors_[*it] : nullptr;
}

}  // namespace mulciber
