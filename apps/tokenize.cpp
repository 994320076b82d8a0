// `mulciber tokenize`: turns text into ids and back, a line at a time.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "apps/cli/command.h"
#include "checkpoints/json.h"
#include "models/loading/open_files.h"
#include "mulciber/error.h"

namespace mulciber::apps {
namespace {

struct TokenizeOptions {
  std::string model;
  bool add_special = false, parse_special = false, hex = false, decode = false, json = false;
};

[[noreturn]] void refuse(size_t line, const std::string& problem, const char* remedy) {
  throw ModelError(fmt::format("line {}", line), problem, remedy);
}

std::string from_hex(const std::string& text, size_t line) {
  std::string bytes;
  if (text.size() % 2 != 0)
    refuse(line, "holds an odd number of hexadecimal digits", "give two for each byte");
  for (size_t i = 0; i < text.size(); i += 2) {
    unsigned value = 0;
    const auto [end, error] = std::from_chars(text.data() + i, text.data() + i + 2, value, 16);
    if (error != std::errc() || end != text.data() + i + 2)
      refuse(line,
             fmt::format("holds '{}', not a byte in hexadecimal", printable(text.substr(i, 2))),
             "give digits alone");
    bytes += static_cast<char>(value);
  }
  return bytes;
}

std::string to_hex(const std::string& bytes) {
  std::string text;
  for (const char byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

std::vector<int32_t> parse_ids(const std::string& text, size_t line) {
  std::vector<int32_t> ids;
  const char *at = text.data(), *end = text.data() + text.size();
  while (true) {
    while (at < end && (*at == ' ' || *at == ',' || *at == '\t' || *at == '[' || *at == ']')) ++at;
    if (at == end) return ids;
    int32_t id = 0;
    const auto [next, error] = std::from_chars(at, end, id);
    if (error != std::errc())
      refuse(line, "holds something that is not a token id", "give numbers with spaces between");
    ids.push_back(id);
    at = next;
  }
}

void run(const TokenizeOptions& options) {
  // Only the tokenizer is needed, so a folder without weights suffices.
  const OpenModel opened = open_files(options.model, Checkpoint::Contents::kText);
  const std::shared_ptr<const Tokenizer>& tokenizer = opened.tokenizer();
  const EncodeOptions encode{options.add_special, options.parse_special};
  std::string line;
  for (size_t number = 1; std::getline(std::cin, line); ++number) {
    if (interrupted()) return;
    if (options.decode) {
      const std::vector<int32_t> ids = parse_ids(line, number);
      const std::string text = tokenizer->decode(ids, false);
      if (options.json) {
        // JSON holds no bytes that are not UTF-8; --hex shows them.
        const nlohmann::json object = {{"ids", ids}, {"text", options.hex ? to_hex(text) : text}};
        fmt::print("{}\n", json_line(object));
      } else {
        fmt::print("{}\n", options.hex ? to_hex(text) : text);
      }
    } else {
      const std::string text = options.hex ? from_hex(line, number) : line;
      const std::vector<Token> tokens = tokenizer->tokenize(text, encode);
      std::vector<int32_t> ids;
      std::vector<std::string> pieces;
      for (const Token& token : tokens) {
        ids.push_back(token.id);
        pieces.push_back(token.text);
      }
      if (options.json) {
        const nlohmann::json object = {{"ids", ids}, {"tokens", pieces}};
        fmt::print("{}\n", json_line(object));
      } else {
        fmt::print("{}\n", fmt::join(ids, " "));
      }
    }
    flush_output();
  }
}

}  // namespace

void add_tokenize(Command& app, int& code) {
  auto options = std::make_shared<TokenizeOptions>();
  Command command =
      app.add_subcommand("tokenize", "Text to token ids and back, one a line on standard input");
  command.add_option("-m,--model", options->model, "GGUF file, or folder with a tokenizer")
      .type_name("FILE|DIR")
      .required();
  command.add_flag("--add-special", options->add_special,
                   "add what the model expects around a text (<s>, [CLS] ...)");
  command.add_flag("--parse-special", options->parse_special,
                   "special tokens spelled out in the text count as such");
  command.add_flag("--hex", options->hex,
                   "bytes of a text as hexadecimal digits, in or (with --decode) out");
  command.add_flag("--decode", options->decode, "ids in, text out; special tokens are shown");
  command.add_flag("--json", options->json, "an object a line: ids and tokens, or ids and text");
  command.footer(
      "An empty line is an empty text. Bytes that are not UTF-8 are taken as the tokenizer takes "
      "them.\n\n"
      "Example: echo 'A dog runs.' | mulciber tokenize -m assets/en-de");
  command.callback([options, &code] {
    interrupted();
    run(*options);
    code = interrupted() ? kInterrupted : kSuccess;
  });
}

}  // namespace mulciber::apps
