// Stages after the model: special tokens around the ids, and pieces back into text.
#include <algorithm>
#include <initializer_list>
#include <nlohmann/json.hpp>

#include "mulciber/error.h"
#include "text/tokenizers/pipeline.h"
#include "text/tokenizers/text.h"

namespace mulciber {
namespace {

using Item = Template::Item;

std::vector<Item> read_items(const ConfigReader& reader, const char* key, std::int64_t vocab_size) {
  std::vector<Item> items;
  for (const Json& entry : reader.list(key)) {
    const ConfigReader item(entry, reader.where() + " " + key, reader.remedy());
    if (item.has("Sequence")) {
      const ConfigReader sequence = item.object("Sequence");
      const std::string id = sequence.text("id");
      if (id != "A" && id != "B") sequence.fail("id", "is neither A nor B");
      items.push_back({id == "A" ? Item::Kind::kFirst : Item::Kind::kSecond,
                       static_cast<std::int32_t>(sequence.integer_or("type_id", 0, 0, 255)),
                       {}});
    } else {
      const ConfigReader special = item.object("SpecialToken");
      const ConfigReader token = reader.object("special_tokens").object(special.text("id").c_str());
      items.push_back({Item::Kind::kSpecial,
                       static_cast<std::int32_t>(special.integer_or("type_id", 0, 0, 255)),
                       token.ids("ids", vocab_size)});
    }
  }
  return items;
}

std::int32_t read_named_id(const ConfigReader& reader, const char* key, std::int64_t vocab_size) {
  const Json& pair = reader.list(key);  // [text, id]
  if (pair.size() != 2) reader.fail(key, "is not a pair of text and id");
  const Json wrapped = {{key, pair[1]}};
  return static_cast<std::int32_t>(
      ConfigReader(wrapped, reader.where(), reader.remedy()).integer(key, 0, vocab_size - 1));
}

/// [CLS] A [SEP] B [SEP] and its relatives.
Template classifier_template(const ConfigReader& reader, std::int64_t vocab_size, bool roberta) {
  const Item cls = {Item::Kind::kSpecial, 0, {read_named_id(reader, "cls", vocab_size)}};
  const Item sep = {Item::Kind::kSpecial, 0, {read_named_id(reader, "sep", vocab_size)}};
  const Item a = {Item::Kind::kFirst, 0, {}};
  Item b = {Item::Kind::kSecond, 0, {}}, last = sep;
  if (roberta) return {{cls, a, sep}, {cls, a, sep, sep, b, sep}};
  b.type_id = last.type_id = 1;
  return {{cls, a, sep}, {cls, a, sep, b, last}};
}

/// Source: the English detokenization rules of Hugging Face's WordPiece decoder.
std::string clean_up(std::string text) {
  constexpr std::pair<std::string_view, std::string_view> kRules[] = {
      {" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
      {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
      {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [from, to] : kRules) text = replace_all(text, from, to);
  return text;
}

Decoder word_piece(const ConfigReader& reader) {
  const std::string prefix = reader.text_or("prefix", "##");
  const bool cleanup = reader.boolean_or("cleanup", true);
  return [=](std::vector<std::string>& pieces) {
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      if (i > 0) {
        if (!prefix.empty() && pieces[i].starts_with(prefix)) {
          pieces[i].erase(0, prefix.size());
        } else {
          pieces[i].insert(0, " ");
        }
      }
      if (cleanup) pieces[i] = clean_up(std::move(pieces[i]));
    }
  };
}

void byte_fallback(std::vector<std::string>& pieces) {
  std::vector<std::string> out;
  std::string bytes;
  const auto flush = [&] {
    if (is_valid_utf8(bytes)) {
      if (!bytes.empty()) out.push_back(bytes);
    } else {
      out.insert(out.end(), bytes.size(), std::string(kReplacementCharacter));
    }
    bytes.clear();
  };
  for (std::string& piece : pieces) {
    if (const int byte = byte_of_piece(piece); byte >= 0) {
      bytes += static_cast<char>(byte);
    } else {
      flush();
      out.push_back(std::move(piece));
    }
  }
  flush();
  pieces = std::move(out);
}

void fuse(std::vector<std::string>& pieces) {
  std::string all;
  for (const std::string& piece : pieces) all += piece;
  pieces.clear();
  pieces.push_back(std::move(all));
}

Decoder metaspace_decoder(const ConfigReader& reader) {
  const std::string space = reader.text_or("replacement", std::string(kSpaceSymbol));
  if (count_code_points(space) != 1) reader.fail("replacement", "is not one character");
  const bool adds =
      reader.text_or("prepend_scheme",
                     reader.boolean_or("add_prefix_space", true) ? "always" : "never") != "never";
  return [=](std::vector<std::string>& pieces) {
    for (std::size_t i = 0; i < pieces.size(); ++i)
      pieces[i] = replace_all(pieces[i], space, i == 0 && adds ? "" : " ");
  };
}

Decoder strip_decoder(const ConfigReader& reader) {
  const std::string content = reader.text_or("content", " ");
  if (content.empty()) reader.fail("content", "is empty");
  const auto start = reader.integer_or("start", 0, 0, 1 << 20),
             stop = reader.integer_or("stop", 0, 0, 1 << 20);
  return [=](std::vector<std::string>& pieces) {
    for (std::string& piece : pieces) {
      for (std::int64_t n = 0; n < start && piece.starts_with(content); ++n)
        piece.erase(0, content.size());
      for (std::int64_t n = 0; n < stop && piece.ends_with(content); ++n)
        piece.erase(piece.size() - content.size());
    }
  };
}

}  // namespace

Template read_post_processor(const Json& component, const ConfigReader& file,
                             std::int64_t vocab_size) {
  if (component.is_null()) return {};
  const ConfigReader reader = component_reader(component, file, "post_processor");
  const std::string type = reader.text("type");
  if (type == "ByteLevel") return {};  // it changes only offsets
  if (type == "TemplateProcessing")
    return {read_items(reader, "single", vocab_size), read_items(reader, "pair", vocab_size)};
  if (type == "BertProcessing") return classifier_template(reader, vocab_size, false);
  if (type == "RobertaProcessing") return classifier_template(reader, vocab_size, true);
  if (type == "Sequence") {
    Template result;
    for (const Json& step : reader.list("processors")) {
      Template next = read_post_processor(step, file, vocab_size);
      if (next.single.empty() && next.pair.empty()) continue;
      if (!result.single.empty())
        reader.fail("processors", "add special tokens twice, which is not supported");
      result = std::move(next);
    }
    return result;
  }
  reader.fail("type", "is '" + printable(type) + "', which is not supported");
}

Decoder read_decoder(const Json& component, const ConfigReader& file) {
  if (component.is_null()) return {};
  const ConfigReader reader = component_reader(component, file, "decoder");
  const std::string type = reader.text("type");
  if (type == "Sequence") {
    std::vector<Decoder> steps;
    for (const Json& step : reader.list("decoders"))
      if (Decoder decoder = read_decoder(step, file)) steps.push_back(std::move(decoder));
    return [steps](std::vector<std::string>& pieces) {
      for (const Decoder& step : steps) step(pieces);
    };
  }
  if (type == "ByteLevel")
    return [](std::vector<std::string>& pieces) {
      std::string bytes;
      for (const std::string& piece : pieces) bytes += characters_to_bytes(piece);
      pieces.assign(1, decode_lossy(bytes));
    };
  if (type == "Metaspace") return metaspace_decoder(reader);
  if (type == "WordPiece") return word_piece(reader);
  if (type == "ByteFallback") return byte_fallback;
  if (type == "Fuse") return fuse;
  if (type == "Strip") return strip_decoder(reader);
  if (type == "Replace") {
    const Pattern pattern(reader.value("pattern"), reader);
    return [pattern, content = reader.text("content")](std::vector<std::string>& pieces) {
      for (std::string& piece : pieces) piece = pattern.replace_all(piece, content);
    };
  }
  if (type == "BPEDecoder") {
    const std::string suffix = reader.text_or("suffix", "</w>");
    if (suffix.empty()) reader.fail("suffix", "is empty");
    return [suffix](std::vector<std::string>& pieces) {
      for (std::size_t i = 0; i < pieces.size(); ++i)
        pieces[i] = replace_all(pieces[i], suffix, i + 1 < pieces.size() ? " " : "");
    };
  }
  reader.fail("type", "is '" + printable(type) + "', which is not supported");
}

}  // namespace mulciber
