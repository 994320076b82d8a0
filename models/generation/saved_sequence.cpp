#include "models/generation/saved_sequence.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "base/hash.h"
#include "base/replace_file.h"
#include "checkpoints/mapped_file.h"
#include "models/core/config.h"
#include "mulciber/error.h"

namespace mulciber {
namespace {

// The file: the header, ids (u32), then per layer its bytes; all in the byte order of the machine
// that wrote it, which the magic number shows.
constexpr uint64_t kMagic =
    0x31304b434f434c4d;  // "MLCOCK01" on machines that begin with the low byte

struct Header {
  uint64_t magic = kMagic;
  uint64_t fingerprint = 0;
  uint64_t hash = 0;         // over all bytes behind the header
  uint64_t layer_bytes = 0;  // in every layer
  uint32_t tokens = 0, layers = 0, type = 0, reserved = 0;
};
static_assert(sizeof(Header) == 48);

uint64_t hash_of(std::string_view bytes) {
  Fnv1a hash;
  size_t at = 0;
  for (; at + 8 <= bytes.size(); at += 8) {
    uint64_t word;
    std::memcpy(&word, bytes.data() + at, 8);
    hash.add(word);
  }
  hash.add(bytes.substr(at));
  return hash.value();
}

std::string_view view_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

SavedSequence parse_sequence(std::string_view bytes, uint64_t fingerprint, const std::string& where,
                             const char* remedy) {
  const auto fail = [&](const char* problem) { throw ModelError(where, problem, remedy); };
  Header header;
  if (bytes.size() < sizeof header) fail("is not a saved prompt");
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.magic != kMagic) fail("is not a saved prompt");
  if (header.fingerprint != fingerprint)
    throw ModelError(where, "was saved with another model, or other settings",
                     "give another one, or remove it");
  const uint64_t begin = sizeof header + uint64_t{header.tokens} * 4;
  if (header.layers > kMostLayers || header.layer_bytes > bytes.size() ||
      begin + header.layers * header.layer_bytes != bytes.size() ||
      header.hash != hash_of(bytes.substr(sizeof header)))
    fail("is damaged");
  SavedSequence sequence;
  sequence.type = static_cast<DataType>(header.type);
  sequence.ids.resize(header.tokens);
  if (header.tokens > 0)  // an empty vector has no address
    std::memcpy(sequence.ids.data(), bytes.data() + sizeof header, uint64_t{header.tokens} * 4);
  for (uint32_t layer = 0; layer < header.layers; ++layer) {
    const auto* first =
        reinterpret_cast<const std::byte*>(bytes.data() + begin + layer * header.layer_bytes);
    sequence.layers.emplace_back(first, first + header.layer_bytes);
  }
  return sequence;
}

}  // namespace

uint64_t sequence_fingerprint(const Checkpoint& checkpoint, const DecoderNetwork& network) {
  constexpr size_t kSample = 64;
  Fnv1a hash;
  for (const CheckpointTensor* tensor : checkpoint.tensors()) {
    hash.add(tensor->name);
    hash.add(static_cast<uint32_t>(tensor->type));
    for (const uint64_t extent : tensor->shape) hash.add(extent);
    const uint64_t all = tensor->bytes.size(), part = std::min<uint64_t>(all, kSample);
    std::vector<std::byte> scratch;
    hash.add(view_of(tensor->read(0, part, scratch)));
    hash.add(view_of(tensor->read(all - part, part, scratch)));
  }
  const CausalLayer& layer = network.decoder.layers.front();
  const DataType first = layer.mixer ? layer.mixer->weights : layer.attention.qkv.weight.type;
  for (const DataType type :
       {network.cache, network.activations, network.decoder.output.weight.type, first})
    hash.add(static_cast<uint32_t>(type));
  if (const uint32_t context = network.decoder.original_context(); context > 0) hash.add(context);
  for (const float factor : network.head_masks) hash.add(std::bit_cast<uint32_t>(factor));
  return hash.value();
}

std::vector<std::byte> sequence_bytes(const SavedSequence& sequence, uint64_t fingerprint) {
  std::vector<std::byte> bytes(sizeof(Header));
  const auto append = [&](std::span<const std::byte> more) {
    bytes.insert(bytes.end(), more.begin(), more.end());
  };
  append(std::as_bytes(std::span(sequence.ids)));
  for (const std::vector<std::byte>& layer : sequence.layers) append(layer);
  Header header;
  header.fingerprint = fingerprint;
  header.hash = hash_of(view_of(bytes).substr(sizeof header));
  header.layer_bytes = sequence.layers.empty() ? 0 : sequence.layers.front().size();
  header.tokens = static_cast<uint32_t>(sequence.ids.size());
  header.layers = static_cast<uint32_t>(sequence.layers.size());
  header.type = static_cast<uint32_t>(sequence.type);
  std::memcpy(bytes.data(), &header, sizeof header);
  return bytes;
}

SavedSequence read_sequence(std::span<const std::byte> bytes, uint64_t fingerprint) {
  return parse_sequence(view_of(bytes), fingerprint, "a snapshot", "take another one");
}

void save_sequence(const std::string& file, const SavedSequence& sequence, uint64_t fingerprint) {
  if (const std::string reason = replace_file(file, view_of(sequence_bytes(sequence, fingerprint)));
      !reason.empty())
    throw ModelError(file, reason, "choose a file in a folder that can be written and has room");
}

SavedSequence load_sequence(const std::string& file, uint64_t fingerprint) {
  const MappedFile mapped(file);
  return parse_sequence(view_of(mapped.bytes()), fingerprint, file,
                        "remove the file; it will be made again");
}

}  // namespace mulciber
