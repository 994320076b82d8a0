// Reads SentencePiece's protocol buffers with our own reader: four messages do not justify a
// library, and every length in the file is checked against the bytes that are left.
#include <cmath>
#include <cstring>

#include "checkpoints/json.h"
#include "checkpoints/mapped_file.h"
#include "mulciber/error.h"
#include "text/tokenizers/sentencepiece.h"
#include "text/tokenizers/text.h"

namespace mulciber {
namespace {

// Published models stay below 6 MB and 300,000 pieces. The bounds keep the tables of a hostile file
// within a few hundred megabytes.
constexpr std::size_t kLongestFile = std::size_t{64} << 20;
constexpr std::size_t kMostPieces = std::size_t{1} << 22;

/// The fields of one message, in order.
class MessageReader {
 public:
  MessageReader(std::string_view bytes, const std::string& where) : rest_(bytes), where_(where) {}

  /// Moves to the next field; false at the end.
  bool next() {
    if (rest_.empty()) return false;
    const std::uint64_t tag = varint();
    field_ = tag >> 3;
    wire_ = static_cast<unsigned>(tag & 7);
    if (field_ == 0) fail("a field has number 0");
    switch (wire_) {
      case 0: number_ = varint(); break;
      case 1: payload_ = take(8); break;
      case 2: payload_ = take(varint()); break;
      case 5: payload_ = take(4); break;
      default: fail("a field has wire type " + std::to_string(wire_));
    }
    return true;
  }

  std::uint64_t field() const { return field_; }
  std::uint64_t number() const { return expect(0), number_; }
  bool boolean() const { return number() != 0; }
  std::string_view bytes() const { return expect(2), payload_; }
  float real() const {
    expect(5);
    float value = 0;
    std::memcpy(&value, payload_.data(), sizeof value);
    return value;
  }

  [[noreturn]] void fail(const std::string& problem) const {
    throw ModelError(where_, "is not a SentencePiece model: " + problem,
                     "the file is damaged or of another kind: download it again");
  }

 private:
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1)[0]);
      value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
    fail("a number takes more than 10 bytes");
  }

  std::string_view take(std::uint64_t length) {
    if (length > rest_.size())
      fail("a field claims " + std::to_string(length) + " bytes, but " +
           std::to_string(rest_.size()) + " are left");
    const std::string_view taken = rest_.substr(0, length);
    rest_.remove_prefix(length);
    return taken;
  }

  void expect(unsigned wire) const {
    if (wire_ != wire)
      fail("field " + std::to_string(field_) + " has wire type " + std::to_string(wire_) +
           " instead of " + std::to_string(wire));
  }

  std::string_view rest_, payload_;
  const std::string& where_;
  std::uint64_t field_ = 0, number_ = 0;
  unsigned wire_ = 0;
};

Piece read_piece(std::string_view bytes, const std::string& where) {
  Piece piece;
  MessageReader reader(bytes, where);
  while (reader.next()) {
    if (reader.field() == 1) piece.text = reader.bytes();
    if (reader.field() == 2) piece.score = reader.real();
    if (reader.field() == 3) {
      if (reader.number() < 1 || reader.number() > 6)
        reader.fail("a piece has type " + std::to_string(reader.number()));
      piece.type = static_cast<PieceType>(reader.number());
    }
  }
  if (piece.text.empty()) reader.fail("a piece is empty");
  if (!is_valid_utf8(piece.text)) reader.fail("piece '" + printable(piece.text) + "' is not UTF-8");
  if (!std::isfinite(piece.score))
    reader.fail("piece '" + printable(piece.text) + "' has no finite score");
  return piece;
}

void read_trainer_spec(std::string_view bytes, const std::string& where, SentencePieceSpec& spec) {
  MessageReader reader(bytes, where);
  while (reader.next()) {
    switch (reader.field()) {
      case 3:
        if (reader.number() != 1 && reader.number() != 2)
          throw ModelError(where,
                           "uses SentencePiece's algorithm " + std::to_string(reader.number()),
                           "only unigram (1) and BPE (2) models are supported");
        spec.algorithm = reader.number() == 1 ? SentencePieceSpec::Algorithm::kUnigram
                                              : SentencePieceSpec::Algorithm::kBpe;
        break;
      case 24: spec.treat_whitespace_as_suffix = reader.boolean(); break;
      case 35: spec.byte_fallback = reader.boolean(); break;
      case 44: spec.unk_surface = decode_lossy(reader.bytes()); break;
      case 46: spec.bos_piece = reader.bytes(); break;
      case 47: spec.eos_piece = reader.bytes(); break;
      case 48: spec.pad_piece = reader.bytes(); break;
      default: break;
    }
  }
}

void read_normalizer_spec(std::string_view bytes, const std::string& where,
                          SentencePieceSpec& spec) {
  MessageReader reader(bytes, where);
  while (reader.next()) {
    switch (reader.field()) {
      case 2: spec.precompiled_charsmap = reader.bytes(); break;
      case 3: spec.add_dummy_prefix = reader.boolean(); break;
      case 4: spec.remove_extra_whitespaces = reader.boolean(); break;
      case 5: spec.escape_whitespaces = reader.boolean(); break;
      default: break;
    }
  }
}

}  // namespace

SentencePieceSpec parse_sentencepiece(std::span<const std::byte> bytes, const std::string& where) {
  if (bytes.size() > kLongestFile)
    throw ModelError(
        where, "is " + std::to_string(bytes.size()) + " bytes, more than any SentencePiece model",
        "check that this is a tokenizer file");
  SentencePieceSpec spec;
  MessageReader reader({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, where);
  while (reader.next()) {
    if (reader.field() == 1) {
      if (spec.pieces.size() >= kMostPieces)
        reader.fail("it has more than " + std::to_string(kMostPieces) + " pieces");
      spec.pieces.push_back(read_piece(reader.bytes(), where));
    }
    if (reader.field() == 2) read_trainer_spec(reader.bytes(), where, spec);
    if (reader.field() == 3) read_normalizer_spec(reader.bytes(), where, spec);
  }
  if (spec.pieces.empty()) reader.fail("it has no pieces");
  return spec;
}

SentencePieceSpec read_sentencepiece(const ModelFile& file) {
  std::vector<std::byte> scratch;
  return parse_sentencepiece(std::as_bytes(std::span(file.whole(scratch, kLongestFile))),
                             file.path().string());
}

}  // namespace mulciber
