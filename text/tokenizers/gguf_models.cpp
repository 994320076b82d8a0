// SPM, BPE, WordPiece and unigram models of GGUF files; text/tokenizers/gguf.h declares them.
#include <array>
#include <map>

#include "checkpoints/json.h"
#include "mulciber/error.h"
#include "text/tokenizers/bpe.h"
#include "text/tokenizers/gguf.h"
#include "text/tokenizers/gguf_pre.h"
#include "text/tokenizers/merge.h"
#include "text/tokenizers/pipeline.h"
#include "text/tokenizers/text.h"

namespace mulciber {
namespace {

/// Number of bytes that the first byte of a character announces, valid or not.
std::size_t announced_length(char first) {
  const auto byte = static_cast<unsigned char>(first);
  return byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1;
}

class SpmModel : public GgufTextModel {
 public:
  SpmModel(const Vocabulary& vocabulary, std::vector<Piece> pieces, const std::string& where)
      : vocabulary_(vocabulary), pieces_(std::move(pieces)) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const auto id = vocabulary_.find(piece_of_byte(static_cast<unsigned char>(byte)));
      // A vocabulary without byte pieces contains the bytes themselves.
      const auto plain = vocabulary_.find(std::string(1, static_cast<char>(byte)));
      if (!id && !plain)
        throw ModelError(
            where,
            "has a vocabulary without the byte " + piece_of_byte(static_cast<unsigned char>(byte)),
            "the file is damaged: download it again");
      bytes_[byte] = id ? *id : *plain;
    }
  }

  void tokenize(std::string_view text, std::vector<std::int32_t>& ids) const override {
    const std::string escaped = replace_all(text, " ", kSpaceSymbol);
    std::vector<TextPart> characters;
    for (std::size_t at = 0; at < escaped.size(); at += characters.back().length)
      characters.push_back({at, std::min(announced_length(escaped[at]), escaped.size() - at)});
    const auto piece_at = [&](std::size_t begin, std::size_t length) {
      return std::string_view(escaped).substr(begin, length);
    };
    const auto score = [&](std::size_t begin, std::size_t,
                           std::size_t length) -> std::optional<double> {
      const auto id = vocabulary_.find(piece_at(begin, length));
      if (!id) return std::nullopt;
      return pieces_[static_cast<std::size_t>(*id)].score;
    };
    for (const TextPart& part : merge_by_score(characters, score)) {
      const std::string_view piece = piece_at(part.begin, part.length);
      if (const auto id = vocabulary_.find(piece)) {
        ids.push_back(*id);
      } else {
        for (const char byte : piece) ids.push_back(bytes_[static_cast<unsigned char>(byte)]);
      }
    }
  }

  std::string bytes_of_piece(std::string_view piece) const override {
    return replace_all(piece, kSpaceSymbol, " ");
  }

 private:
  const Vocabulary& vocabulary_;
  std::vector<Piece> pieces_;
  std::array<std::int32_t, 256> bytes_{};
};

std::vector<BpeModel::Merge> read_merges(const GgufFile& file) {
  const GgufValue* value = file.find_value("tokenizer.ggml.merges");
  if (value == nullptr || !value->is_array || value->type != GgufType::kString)
    throw ModelError(file.path().string(),
                     "metadata 'tokenizer.ggml.merges' is not a list of merges",
                     "the file is damaged: download it again");
  std::vector<BpeModel::Merge> merges;
  for (const std::string_view line : value->texts()) {
    // A piece may begin with a character that looks like the separator, so the search starts at the
    // second byte.
    const std::size_t space = line.find(' ', 1);
    if (space == line.npos)
      throw ModelError(file.path().string(), "merge '" + printable(line) + "' is not two pieces",
                       "download it again");
    merges.emplace_back(line.substr(0, space), line.substr(space + 1));
  }
  return merges;
}

class ByteLevelBpe : public GgufTextModel {
 public:
  ByteLevelBpe(const Vocabulary& vocabulary, const GgufFile& file, const GgufPreTokenizer& pre)
      : bpe_(vocabulary, read_merges(file), {.ignore_merges = pre.whole_words},
             file.path().string()),
        cutter_(pre, file.path().string()) {}

  void tokenize(std::string_view text, std::vector<std::int32_t>& ids) const override {
    // Halves of surrogate pairs keep their bytes; expressions see a character without properties
    // instead.
    const std::string valid = replace_invalid(hide_surrogates(text));
    for (const std::string_view word : cutter_.cut(valid)) {
      const std::string bytes =
          word.find(kHidden) == word.npos ? std::string(word) : show_surrogates(word);
      bpe_.tokenize(bytes_to_characters(bytes), ids);
    }
  }

  std::string bytes_of_piece(std::string_view piece) const override {
    return characters_to_bytes(piece);
  }

 private:
  // A surrogate is replaced by the last code point of all, which no text contains, and a private
  // one that encodes its bytes.
  static constexpr std::string_view kHidden = "\xF4\x8F\xBF\xBF";

  static std::string hide_surrogates(std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
      const auto byte = [&](std::size_t at) {
        return at < text.size() ? static_cast<unsigned char>(text[at]) : 0u;
      };
      if (byte(i) == 0xED && byte(i + 1) >= 0xA0 && byte(i + 1) <= 0xBF && byte(i + 2) >= 0x80 &&
          byte(i + 2) <= 0xBF) {
        out += kHidden;
        append_utf8(out, static_cast<std::int32_t>(0x100000 + (byte(i + 1) << 8) + byte(i + 2)));
        i += 2;
      } else {
        out += text[i];
      }
    }
    return out;
  }

  static std::string show_surrogates(std::string_view word) {
    std::string out;
    while (!word.empty()) {
      if (!word.starts_with(kHidden)) {
        out += word[0];
        word.remove_prefix(1);
        continue;
      }
      word.remove_prefix(kHidden.size());
      const CodePoint c = first_code_point(word);
      word.remove_prefix(c.length);
      out += '\xED';
      out += static_cast<char>(c.value >> 8);
      out += static_cast<char>(c.value);
    }
    return out;
  }

  BpeModel bpe_;
  WordCutter cutter_;
};

/// Ranked merges over characters, with U+2581 for spaces; text that no piece covers becomes byte
/// pieces.
class RawBpe : public GgufTextModel {
 public:
  RawBpe(const Vocabulary& vocabulary, const GgufFile& file, const GgufPreTokenizer& pre)
      : vocabulary_(vocabulary),
        bpe_(vocabulary, read_merges(file),
             {.byte_fallback = true, .ignore_merges = pre.whole_words}, file.path().string()),
        cutter_(pre, file.path().string()),
        whole_line_breaks_(pre.whole_line_breaks) {}

  void tokenize(std::string_view text, std::vector<std::int32_t>& ids) const override {
    const std::string escaped = replace_all(replace_invalid(text), " ", kSpaceSymbol);
    for (const std::string_view word : cutter_.cut(escaped)) {
      const auto id = whole_line_breaks_ && word.find_first_not_of('\n') == word.npos
                          ? vocabulary_.find(word)
                          : std::nullopt;
      if (id) {
        ids.push_back(*id);
      } else {
        bpe_.tokenize(word, ids);
      }
    }
  }

  std::string bytes_of_piece(std::string_view piece) const override {
    return replace_all(piece, kSpaceSymbol, " ");
  }

 private:
  const Vocabulary& vocabulary_;
  BpeModel bpe_;
  WordCutter cutter_;
  bool whole_line_breaks_;
};

class MarkedWordPiece : public GgufTextModel {
 public:
  MarkedWordPiece(const Vocabulary& vocabulary, std::int32_t unknown_id, WordPieceCase changes)
      : vocabulary_(vocabulary), unknown_id_(unknown_id), changes_(changes) {
    for (std::int32_t id = 0; id < vocabulary.size(); ++id)
      longest_ = std::max(longest_, vocabulary.piece(id).size());
  }

  void tokenize(std::string_view text, std::vector<std::int32_t>& ids) const override {
    for (const std::string& word : words_of(text)) {
      const std::string marked = std::string(kSpaceSymbol) + word;
      const std::size_t first = ids.size();
      for (std::size_t at = 0; at < marked.size();) {
        std::size_t end = std::min(marked.size(), at + longest_);
        std::optional<std::int32_t> id;
        for (; end > at && !(id = vocabulary_.find(std::string_view(marked).substr(at, end - at)));
             --end) {
        }
        if (!id) {
          ids.resize(first);
          break;
        }
        ids.push_back(*id);
        at = end;
      }
      if (ids.size() == first) ids.push_back(unknown_id_);
    }
  }

  std::string bytes_of_piece(std::string_view piece) const override {
    return replace_all(piece, kSpaceSymbol, " ");
  }

 private:
  /// Splits into words without control characters, in lower case for models that know no other;
  /// punctuation and ideographs are words of their own. Where accents are removed, only the first
  /// code point of a character's decomposition is kept; most of a Hangul syllable is lost like
  /// this, in llama.cpp too.
  std::vector<std::string> words_of(std::string_view text) const {
    const std::string valid = replace_invalid(text);
    std::vector<std::string> words(1);
    const auto next = [&] {
      if (!words.back().empty()) words.emplace_back();
    };
    for (std::string_view rest = valid; !rest.empty();) {
      std::string decomposed(rest.substr(0, first_code_point(rest).length));
      if (changes_.strip_accents) decomposed = normalize(decomposed, NormalForm::kNfd);
      rest.remove_prefix(first_code_point(rest).length);
      const CodePoint c = first_code_point(decomposed);
      const std::string_view character = std::string_view(decomposed).substr(0, c.length);
      if (is_white_space(c.value)) {
        next();
        continue;
      }
      if (c.value == 0 || c.value == 0xFFFD || is_control(c.value)) continue;
      if (changes_.strip_accents && is_mark(c.value)) continue;
      const std::string written = changes_.lower ? lower_case(character) : std::string(character);
      if (is_bert_punctuation(c.value) || is_ideograph(c.value)) {
        next();
        words.back() = written;
        next();
      } else {
        words.back() += written;
      }
    }
    if (words.back().empty()) words.pop_back();
    return words;
  }

  static bool is_ideograph(std::int32_t c) {
    constexpr std::pair<std::int32_t, std::int32_t> kRanges[] = {
        {0x4E00, 0x9FFF},   {0x3400, 0x4DBF},   {0x20000, 0x2A6DF}, {0x2A700, 0x2B73F},
        {0x2B740, 0x2B81F}, {0x2B920, 0x2CEAF}, {0xF900, 0xFAFF},   {0x2F800, 0x2FA1F}};
    for (const auto& [from, to] : kRanges)
      if (c >= from && c <= to) return true;
    return false;
  }

  const Vocabulary& vocabulary_;
  std::int32_t unknown_id_;
  WordPieceCase changes_;
  std::size_t longest_ = 0;
};

class Unigram : public GgufTextModel {
 public:
  Unigram(SentencePieceSpec spec, const std::string& where) : model_(std::move(spec), where) {}

  void tokenize(std::string_view text, std::vector<std::int32_t>& ids) const override {
    for (const Token& token : model_.tokenize(text)) ids.push_back(token.id);
  }
  std::string bytes_of_piece(std::string_view piece) const override {
    return replace_all(piece, kSpaceSymbol, " ");
  }

 private:
  SentencePieceModel model_;
};

}  // namespace

std::unique_ptr<GgufTextModel> make_gguf_spm(const Vocabulary& vocabulary,
                                             std::vector<Piece> pieces, const std::string& where) {
  return std::make_unique<SpmModel>(vocabulary, std::move(pieces), where);
}

std::unique_ptr<GgufTextModel> make_gguf_bpe(const Vocabulary& vocabulary, const GgufFile& file,
                                             const GgufPreTokenizer& pre) {
  if (pre.raw) return std::make_unique<RawBpe>(vocabulary, file, pre);
  return std::make_unique<ByteLevelBpe>(vocabulary, file, pre);
}

std::unique_ptr<GgufTextModel> make_gguf_word_piece(const Vocabulary& vocabulary,
                                                    std::int32_t unknown_id,
                                                    WordPieceCase changes) {
  return std::make_unique<MarkedWordPiece>(vocabulary, unknown_id, changes);
}

std::unique_ptr<GgufTextModel> make_gguf_unigram(SentencePieceSpec spec, const std::string& where) {
  return std::make_unique<Unigram>(std::move(spec), where);
}

}  // namespace mulciber
