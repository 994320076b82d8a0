#include "text/tokenizers/sentencepiece.h"

#include <algorithm>

#include "checkpoints/json.h"
#include "mulciber/error.h"
#include "text/tokenizers/merge.h"
#include "text/tokenizers/specials.h"
#include "text/tokenizers/text.h"

namespace mulciber {

SentencePieceModel::SentencePieceModel(SentencePieceSpec spec, const std::string& where)
    : spec_(std::move(spec)), charsmap_(spec_.precompiled_charsmap, where) {
  const auto fail = [&](const std::string& problem) {
    throw ModelError(where, "has a vocabulary " + problem,
                     "the file is damaged: download it again");
  };
  std::vector<std::pair<std::string_view, std::int32_t>> user_defined;
  std::array<bool, 256> bytes{};
  int unknown = 0;
  by_text_.reserve(spec_.pieces.size());
  for (std::int32_t id = 0; id < size(); ++id) {
    const Piece& piece = spec_.pieces[id];
    if (!by_text_.emplace(piece.text, id).second)
      fail("with '" + printable(piece.text) + "' twice");
    if (piece.type == PieceType::kUserDefined) user_defined.emplace_back(piece.text, id);
    if (piece.type == PieceType::kUnknown) {
      unknown_id_ = id;
      ++unknown;
    }
    if (piece.type == PieceType::kByte) {
      const int byte = byte_of_piece(piece.text);
      if (byte < 0)
        fail("whose byte piece '" + printable(piece.text) + "' is not of the form <0x00>");
      bytes[static_cast<std::size_t>(byte)] = true;
    }
  }
  if (unknown != 1) fail("with " + std::to_string(unknown) + " unknown pieces instead of one");
  if (spec_.byte_fallback && std::find(bytes.begin(), bytes.end(), false) != bytes.end())
    fail("that falls back on bytes but lacks some of the 256");
  user_defined_ = PieceTrie(std::move(user_defined));
  if (spec_.algorithm == SentencePieceSpec::Algorithm::kUnigram)
    unigram_ = UnigramModel(spec_.pieces, unknown_id_, UnigramModel::Precision::kSingle);
}

std::optional<std::int32_t> SentencePieceModel::find(std::string_view piece) const {
  const auto it = by_text_.find(piece);
  return it == by_text_.end() ? std::nullopt : std::optional(it->second);
}

std::string SentencePieceModel::normalize(std::string_view text) const {
  const std::string_view space = spec_.escape_whitespaces ? kSpaceSymbol : std::string_view(" ");
  // Removes the next characters from the text and returns their replacement.
  const auto next = [&]() -> std::string_view {
    std::size_t length = user_defined_.longest_prefix(text).length;
    std::string_view result = text.substr(0, length);
    if (length == 0) {
      const CharsMap::Match match = charsmap_.longest_prefix(text);
      length = match.length;
      result = match.replacement;
    }
    if (length == 0) {
      length = first_code_point(text).length;
      result = text.substr(0, length);
    }
    if (length == 0) {
      length = 1;
      result = kReplacementCharacter;
    }
    text.remove_prefix(length);
    return result;
  };

  std::string out;
  std::string_view part;
  if (spec_.remove_extra_whitespaces) {
    while (!text.empty() && (part = next()) == " ") part = {};
    if (part.empty() && text.empty()) return out;
  }
  if (text.empty() && part.empty()) return out;
  if (spec_.add_dummy_prefix && !spec_.treat_whitespace_as_suffix) out += space;

  bool after_space = spec_.remove_extra_whitespaces;
  const auto append = [&](std::string_view piece) {
    if (after_space) piece.remove_prefix(std::min(piece.find_first_not_of(' '), piece.size()));
    if (piece.empty()) return;
    for (const char c : piece) c == ' ' ? out += space : out += c;
    after_space = spec_.remove_extra_whitespaces && piece.back() == ' ';
  };
  append(part);
  while (!text.empty()) append(next());

  if (spec_.remove_extra_whitespaces)
    while (out.ends_with(space)) out.erase(out.size() - space.size());
  if (spec_.add_dummy_prefix && spec_.treat_whitespace_as_suffix) out += space;
  return out;
}

std::vector<Segment> SentencePieceModel::segment_bpe(std::string_view text) const {
  std::vector<TextPart> characters;
  for (std::size_t at = 0; at < text.size(); at += characters.back().length) {
    const std::size_t defined = user_defined_.longest_prefix(text.substr(at)).length;
    const std::size_t length =
        defined > 0 ? defined : std::max<std::size_t>(1, first_code_point(text.substr(at)).length);
    characters.push_back({at, length, defined > 0});
  }
  // Remembers how a piece that must not be produced was merged, to split it again.
  std::unordered_map<std::string_view, std::size_t> left_part_of_unused;
  const auto score = [&](std::size_t begin, std::size_t left,
                         std::size_t length) -> std::optional<double> {
    const std::string_view piece = text.substr(begin, length);
    const auto it = by_text_.find(piece);
    if (it == by_text_.end()) return std::nullopt;
    const Piece& found = spec_.pieces[it->second];
    if (found.type == PieceType::kUnused)
      left_part_of_unused[piece] = left;
    else if (found.type != PieceType::kNormal && found.type != PieceType::kUserDefined)
      return std::nullopt;
    return found.score;
  };

  std::vector<Segment> segments;
  for (const TextPart& part : merge_by_score(characters, score)) {
    std::vector<TextPart> pending = {part};
    while (!pending.empty()) {
      const auto [begin, length, frozen] = pending.back();
      pending.pop_back();
      const std::string_view piece = text.substr(begin, length);
      const std::int32_t id = find(piece).value_or(unknown_id_);
      const auto split = spec_.pieces[id].type == PieceType::kUnused
                             ? left_part_of_unused.find(piece)
                             : left_part_of_unused.end();
      if (split == left_part_of_unused.end()) {
        segments.push_back({begin, begin + length, id});
      } else {
        pending.push_back({begin + split->second, length - split->second});
        pending.push_back({begin, split->second});
      }
    }
  }
  return segments;
}

std::vector<Token> SentencePieceModel::tokenize(std::string_view text) const {
  const std::string normal = normalize(text);
  const std::vector<Segment> segments = spec_.algorithm == SentencePieceSpec::Algorithm::kUnigram
                                            ? unigram_.segment(normal)
                                            : segment_bpe(normal);
  std::vector<Token> tokens;
  bool after_unknown = false;
  for (const Segment& segment : segments) {
    const std::string_view piece =
        std::string_view(normal).substr(segment.begin, segment.end - segment.begin);
    const bool unknown = segment.id == unknown_id_;
    if (unknown && spec_.byte_fallback) {
      for (const char byte : piece) {
        std::string name = piece_of_byte(static_cast<unsigned char>(byte));
        const std::int32_t id = by_text_.at(name);
        tokens.push_back({id, std::move(name)});
      }
    } else if (unknown && after_unknown) {
      tokens.back().text += piece;
    } else {
      tokens.push_back({segment.id, std::string(piece)});
    }
    after_unknown = unknown;
  }
  return tokens;
}

std::string SentencePieceModel::decode(std::span<const std::string_view> pieces) const {
  std::string out, bytes;
  const auto flush_bytes = [&] {
    out += replace_invalid(bytes);
    bytes.clear();
  };
  const bool strips_start = spec_.add_dummy_prefix || spec_.remove_extra_whitespaces;
  bool at_start = true, saw_start_space = false;
  for (std::string_view piece : pieces) {
    const std::int32_t id = find(piece).value_or(unknown_id_);
    const Piece& known = spec_.pieces[id];
    if (known.type == PieceType::kByte) {
      bytes += static_cast<char>(byte_of_piece(piece));
      continue;
    }
    flush_bytes();
    if (saw_start_space || !out.empty()) at_start = false;
    saw_start_space = false;
    if (known.type == PieceType::kControl) continue;
    if (known.type == PieceType::kUnknown) {
      out += known.text == piece ? std::string_view(spec_.unk_surface) : piece;
      continue;
    }
    if (at_start && strips_start && piece.starts_with(kSpaceSymbol)) {
      piece.remove_prefix(kSpaceSymbol.size());
      // Where extra spaces are removed, the following pieces lose theirs too.
      saw_start_space = !spec_.remove_extra_whitespaces;
    }
    out += replace_all(piece, kSpaceSymbol, " ");
  }
  flush_bytes();
  return out;
}

std::string SentencePieceModel::decode(const Tokenizer& tokenizer,
                                       std::span<const std::int32_t> ids, bool skip_special) const {
  std::string out;
  std::vector<std::string_view> run;
  const auto flush = [&] {
    out += decode(run);
    run.clear();
  };
  for (const std::int32_t id : ids) {
    const std::string_view text = tokenizer.piece(id);
    if (!tokenizer.is_special(id)) {
      run.push_back(text);
    } else if (!skip_special) {
      flush();
      out += text;
    }
  }
  flush();
  return out;
}

SentencePieceTokenizer::SentencePieceTokenizer(SentencePieceSpec spec, const std::string& where,
                                               Affixes affixes)
    : model_(std::move(spec), where), affixes_(affixes) {
  const auto control = [&](const std::string& name) -> std::optional<std::int32_t> {
    const auto id = model_.find(name);
    return id && model_.spec().pieces[*id].type == PieceType::kControl ? id : std::nullopt;
  };
  special_.bos = control(model_.spec().bos_piece);
  special_.eos = control(model_.spec().eos_piece);
  special_.pad = control(model_.spec().pad_piece);
  special_.unk = model_.unknown_id();
  if ((affixes.bos && !special_.bos) || (affixes.eos && !special_.eos))
    throw ModelError(
        where,
        "lacks the piece '" +
            printable(special_.bos ? model_.spec().eos_piece : model_.spec().bos_piece) +
            "' that the model expects around a text",
        "check that the tokenizer belongs to the model");
  std::vector<std::pair<std::string_view, std::int32_t>> controls;
  for (std::int32_t id = 0; id < model_.size(); ++id)
    if (model_.spec().pieces[id].type == PieceType::kControl)
      controls.emplace_back(model_.spec().pieces[id].text, id);
  specials_ = PieceTrie(std::move(controls));
}

std::string SentencePieceTokenizer::kind() const {
  return model_.spec().algorithm == SentencePieceSpec::Algorithm::kUnigram ? "SentencePiece unigram"
                                                                           : "SentencePiece BPE";
}

std::string_view SentencePieceTokenizer::piece(std::int32_t id) const {
  if (id < 0 || id >= model_.size()) throw unknown_token_id(id, model_.size());
  return model_.spec().pieces[id].text;
}

bool SentencePieceTokenizer::is_special(std::int32_t id) const {
  return id >= 0 && id < model_.size() && model_.spec().pieces[id].type == PieceType::kControl;
}

std::vector<Token> SentencePieceTokenizer::tokenize(std::string_view text,
                                                    const EncodeOptions& options) const {
  std::vector<Token> tokens;
  const auto add = [&](std::int32_t id) { tokens.push_back({id, std::string(piece(id))}); };
  if (options.add_special && affixes_.bos) add(*special_.bos);
  split_at_specials(
      text, options.parse_special ? &specials_ : nullptr,
      [&](std::string_view part) {
        for (Token& token : model_.tokenize(part)) tokens.push_back(std::move(token));
      },
      add);
  if (options.add_special && affixes_.eos) add(*special_.eos);
  return tokens;
}

std::string SentencePieceTokenizer::decode(std::span<const std::int32_t> ids,
                                           bool skip_special) const {
  return model_.decode(*this, ids, skip_special);
}

}  // namespace mulciber
