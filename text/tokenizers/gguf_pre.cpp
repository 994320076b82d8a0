// The table of pre-tokenizers. Expressions use PCRE2's syntax; characters beyond ASCII are spelled
// \x{...}, because similar characters look alike.
#include "text/tokenizers/gguf_pre.h"

#include <algorithm>

namespace mulciber {
namespace {

using Text = std::string;

// GPT-2's words (Radford et al. 2019).
constexpr const char* kGpt2 =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr const char* kContraction = R"((?i:'s|'t|'re|'ve|'m|'ll|'d))";
constexpr const char* kWord = R"([^\r\n\p{L}\p{N}]?\p{L}+)";
constexpr const char* kDigit = R"(\p{N})";
constexpr const char* kThreeDigits = R"(\p{N}{1,3})";
constexpr const char* kSymbols = R"( ?[^\s\p{L}\p{N}]+[\r\n]*)";
constexpr const char* kSymbolsAndSlashes = R"( ?[^\s\p{L}\p{N}]+[\r\n/]*)";
constexpr const char* kLines = R"(\s*[\r\n]+)";
constexpr const char* kSpaces = R"(\s+(?!\S)|\s+)";
constexpr const char* kNoBreak = R"([^\n]+|\n+)";

// Words and symbols of DeepSeek V3: a symbol before an ASCII word belongs to it, and combining
// marks belong to their letters.
constexpr const char* kSymbolWord = R"([!-/:-@\[-`{-~][A-Za-z]+)";
constexpr const char* kMarkedWord = R"([^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+)";
constexpr const char* kMarkedSymbols = R"( ?[\p{P}\p{S}]+)";

// Everything except white space and the punctuation of several scripts.
constexpr const char* kBloom =
    R"( ?[^(\s|.,!?\x{2026}\x{3002}\x{ff0c}\x{3001}\x{964}\x{6d4}\x{60c})]+)";

constexpr const char* kChineseJapanese = R"([\x{4e00}-\x{9fa5}\x{3040}-\x{30ff}]+)";
constexpr const char* kChineseKorean = R"([\x{800}-\x{9fa5}\x{ac00}-\x{d7ff}]+)";

// Letters with a case, from DeepSeek LLM's tokenizer.json, and its punctuation.
constexpr const char* kDeepSeekLetters =
    R"(\s?[)"
    R"(A-Za-z\x{b5}\x{c0}-\x{d6}\x{d8}-\x{f6}\x{f8}-\x{1ba}\x{1bc}-\x{1bf}\x{1c4}-\x{293})"
    R"(\x{295}-\x{2af}\x{370}-\x{373}\x{376}\x{377}\x{37b}-\x{37d}\x{37f}\x{386})"
    R"(\x{388}-\x{38a}\x{38c}\x{38e}-\x{3a1}\x{3a3}-\x{3f5}\x{3f7}-\x{481}\x{48a}-\x{52f})"
    R"(\x{531}-\x{556}\x{10a0}-\x{10c5}\x{13a0}-\x{13f5}\x{13f8}-\x{13fd})"
    R"(\x{1c90}-\x{1cba}\x{1cbd}-\x{1cbf}\x{1d00}-\x{1d2b}\x{1d6b}-\x{1d77})"
    R"(\x{1d79}-\x{1d9a}\x{1e00}-\x{1f15}\x{1f18}-\x{1f1d}\x{1f20}-\x{1f45})"
    R"(\x{1f48}-\x{1f4d}\x{1f50}-\x{1f57}\x{1f59}\x{1f5b}\x{1f5d}\x{1f5f}-\x{1f7d})"
    R"(\x{1f80}-\x{1fb4}\x{1fb6}-\x{1fbc}\x{1fbe}\x{1fc2}-\x{1fc4}\x{1fc6}-\x{1fcc})"
    R"(\x{1fd0}-\x{1fd3}\x{1fd6}-\x{1fdb}\x{1fe0}-\x{1fec}\x{1ff2}-\x{1ff4})"
    R"(\x{1ff6}-\x{1ffc}\x{2102}\x{2107}\x{210a}-\x{2113}\x{2115}\x{2119}-\x{211d})"
    R"(\x{2124}\x{2126}\x{2128}\x{212a}-\x{212d}\x{212f}-\x{2134}\x{2139})"
    R"(\x{213c}-\x{213f}\x{2145}-\x{2149}\x{214e}\x{2183}\x{2184}\x{2c00}-\x{2c7b})"
    R"(\x{2c7e}-\x{2ce4}\x{2ceb}-\x{2cee}\x{2cf2}\x{2cf3}\x{a640}-\x{a66d})"
    R"(\x{a680}-\x{a69b}\x{a722}-\x{a76f}\x{a771}-\x{a787}\x{a78b}-\x{a78e})"
    R"(\x{ab70}-\x{abbf}\x{fb00}-\x{fb06}\x{fb13}-\x{fb17}\x{ff21}-\x{ff3a})"
    R"(\x{ff41}-\x{ff5a}\x{10400}-\x{1044f}\x{104b0}-\x{104d3}\x{104d8}-\x{104fb})"
    R"(\x{10c80}-\x{10cb2}\x{10cc0}-\x{10cf2}\x{118a0}-\x{118df}\x{1e900}-\x{1e943})"
    R"(]+)";
constexpr const char* kDeepSeekSymbols =
    R"(\s?[!-/:-~\x{ff01}-\x{ff0f}\x{ff1a}-\x{ff5e}\x{2018}-\x{201f}\x{3000}-\x{3002}]+)";

// Scripts that AFMoE separates from their neighbours.
constexpr const char* kAfmoeScripts =
    R"([\x{4e00}-\x{9fff}\x{3400}-\x{4dbf}\x{f900}-\x{faff}\x{3040}-\x{30ff}\x{ff65}-\x{ff9f})"
    R"(\x{2f00}-\x{2fdf}\x{e40}-\x{eff}\x{1780}-\x{17ff}\x{1000}-\x{109f}\x{aa60}-\x{aa7f})"
    R"(\x{a9e0}-\x{a9ff}\x{ac00}-\x{d7af}\x{1100}-\x{11ff}]+)";

// Korean letters, punctuation of Chinese, and Bopomofo.
constexpr const char* kYoutuScripts =
    R"([\x{ac00}-\x{d7a3}\x{3131}-\x{318e}]+|)"
    R"([\x{ff01}\x{2026}\x{201c}\x{201d}\x{2018}\x{2019}\x{2014}\x{ff1a}\x{ff1b}\x{ff0c})"
    R"(\x{3001}-\x{303f}\x{fe30}-\x{fe4f}]+|[\x{3105}-\x{312f}]+)";

// The script property Han, by ranges: \p{Han} differs between versions of PCRE2.
constexpr const char* kHan =
    R"([)"
    R"(\x{2e80}-\x{2e99}\x{2e9b}-\x{2ef3}\x{2f00}-\x{2fd5}\x{3005}\x{3007})"
    R"(\x{3021}-\x{3029}\x{3038}-\x{303b}\x{3400}-\x{4dbf}\x{4e00}-\x{9fff})"
    R"(\x{f900}-\x{fa6d}\x{fa70}-\x{fad9}\x{16fe2}-\x{16fe3}\x{16ff0}-\x{16ff6})"
    R"(\x{20000}-\x{2a6df}\x{2a700}-\x{2b81e}\x{2b820}-\x{2cead}\x{2ceb0}-\x{2ebe0})"
    R"(\x{2ebf0}-\x{2ee5d}\x{2f800}-\x{2fa1d}\x{30000}-\x{3134a}\x{31350}-\x{33479})"
    R"(])";

/// Alternatives, of which the first match counts.
Text any(const std::vector<Text>& alternatives) {
  Text out;
  for (const Text& one : alternatives) out += (out.empty() ? "" : "|") + one;
  return out;
}

/// The words of GPT-4's cl100k_base, which Llama 3, Qwen 2 and many others adopted with their own
/// rule for digits.
Text cl100k(const Text& digits) {
  return any({kContraction, kWord, digits, kSymbols, kLines, kSpaces});
}

/// Runs of letters that are split where lower case changes to upper case, like in GPT-4o's
/// o200k_base. ending: a suffix of the letters; among: a look-ahead for each letter.
Text cased(const Text& ending, const Text& among = "") {
  const Text before = R"([^\r\n\p{L}\p{N}]?)";
  const auto letter = [&](const Text& kind) {
    const Text letters = R"([\p{L)" + kind + R"(}\p{Lm}\p{Lo}\p{M}])";
    return among.empty() ? letters : "(?:" + among + letters + ")";
  };
  const Text small = letter("l"), capital = letter(R"(u}\p{Lt)");
  return any({before + capital + "*" + small + "+" + ending,
              before + capital + "+" + small + "*" + ending});
}
Text o200k(const Text& digits, const Text& ending) {
  return any({cased(ending), digits, kSymbolsAndSlashes, kLines, kSpaces});
}

/// White space of Jais 2: runs whose lengths are powers of two, the longest first.
Text jais2_spaces() {
  std::vector<Text> runs;
  for (int run = 512; run >= 4; run /= 2)
    runs.push_back(R"(\s{)" + std::to_string(run) + R"(}(?!\S))");
  runs.push_back(R"(\s{1,2}(?!\S)|\s)");
  return any(runs);
}

std::vector<GgufPreTokenizer> make_table() {
  const Text contraction = Text(kContraction) + "?";
  const Text llama3 = cl100k(kThreeDigits), qwen2 = cl100k(kDigit);
  const Text gpt4o = o200k(kThreeDigits, contraction);
  const Text deepseek3 =
      any({kSymbolWord, kMarkedWord, Text(kMarkedSymbols) + R"([\r\n]*)", kLines, kSpaces});
  const Text without_han = "(?!" + Text(kHan) + ")";

  return {
      // Files from before names existed have none.
      {.names = {"default"},
       .expressions = {R"([\p{P}$+<=>^~|]+)", kGpt2, R"(\p{N}+)", "[0-9][0-9][0-9]"}},

      {.names = {"gpt-2", "phi-2", "jina-es", "jina-de", "jina-v2-es", "jina-v2-de", "gigachat",
                 "a.x-4.0", "mellum", "modern-bert", "exaone4", "mpt", "olmo", "jais"},
       .expressions = {kGpt2}},
      {.names = {"trillion", "granite-docling"},
       .expressions = {kGpt2},
       .joins_punctuation = false},
      {.names = {"jina-v1-en", "jina-v2-code", "roberta-bpe"},
       .expressions = {kGpt2},
       .add_separator = true},
      {.names = {"falcon"}, .expressions = {R"([\p{P}$+<=>^~|`]+)", kGpt2, "[0-9][0-9][0-9]"}},
      {.names = {"starcoder", "refact", "codeshell", "exaone", "minerva-7b", "mellum2"},
       .expressions = {kDigit, kGpt2}},
      {.names = {"command-r", "smollm"},
       .expressions = {kDigit, kGpt2},
       .joins_punctuation = false},
      {.names = {"chameleon"},
       .expressions = {"<sentinel:[0-9]+>", "IMGIMG[A-I]{1,4}Z", R"([\t\n]| {4}| {2})", kDigit,
                       R"([\p{P}!-/:-@\[-`{-~])", kGpt2},
       .add_bos = true,
       .joins_punctuation = false},

      {.names = {"llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0",
                 "lfm2", "jina-v5-nano"},
       .expressions = {llama3},
       .whole_words = true,
       .add_bos = true},
      {.names = {"dbrx", "smaug-bpe", "glm4", "chatglm-bpe"}, .expressions = {llama3}},
      {.names = {"minicpm5"},
       .expressions = {kThreeDigits, cl100k(R"(\p{N}+)")},
       .whole_words = true},
      {.names = {"jais-2"},
       .expressions = {any({kContraction, kWord, kThreeDigits, kSymbols, kLines, jais2_spaces()})}},
      {.names = {"stablelm2", "megrez"}, .expressions = {qwen2}},
      {.names = {"qwen2", "deepseek-r1-qwen", "kormo", "f2llmv2", "hunyuan", "solar-open",
                 "grok-2"},
       .expressions = {qwen2},
       .joins_punctuation = false},
      {.names = {"qwen35"},
       .expressions = {any({kContraction, R"([^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+)", kDigit,
                            R"( ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*)", kLines, kSpaces})},
       .joins_punctuation = false},
      {.names = {"ufakzeka"},  // no English contractions
       .expressions = {any({kWord, kDigit, kSymbols, kLines, kSpaces})},
       .joins_punctuation = false},
      {.names = {"laguna"}, .expressions = {kNoBreak, qwen2}, .joins_punctuation = false},
      {.names = {"seed-coder"},
       .expressions = {any(
           {kContraction, kWord, kDigit, R"( ?[^\s\p{L}\p{N}]+)", kLines, kSpaces})},
       .joins_punctuation = false},
      {.names = {"bailingmoe", "bailingmoe2", "llada-moe"},
       .expressions = {any({kContraction, R"([^\r\n\p{L}\p{N}]?+\p{L}+)", kDigit,
                            R"( ?[^\s\p{L}\p{N}]++[\r\n]*)", R"(\s*[\r\n])", kSpaces})},
       .joins_punctuation = false},
      {.names = {"exaone-moe"},  // several words, while single spaces separate them
       .expressions = {any({kContraction, R"([^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+)",
                            kDigit, R"( ?[^\s\p{L}\p{N}]+[\r\n/]?)", R"(\s*[\r\n])", kSpaces})}},

      {.names = {"gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"},
       .expressions = {gpt4o},
       .joins_punctuation = false},
      {.names = {"granite-embed-multi-97m"},
       .expressions = {gpt4o},
       .whole_words = true,
       .joins_punctuation = false},
      {.names = {"tekken"},
       .expressions = {o200k(kDigit, "")},
       .whole_words = true,
       .add_bos = true,
       .joins_punctuation = false},
      // Digits in groups of three from the right, unless a letter follows them.
      {.names = {"tiny_aya", "cohere2moe"},
       .expressions = {R"(\p{Nd}{1,3}(?=(?:\p{Nd}{3})*+(?![\p{L}\p{M}\p{N}\p{Pc}])))", gpt4o},
       .joins_punctuation = false},
      {.names = {"kimi-k2"},
       .expressions = {any({Text(kHan) + "+", cased(contraction, without_han), kThreeDigits,
                            kSymbols, kLines, kSpaces})},
       .joins_punctuation = false},
      {.names = {"youtu"},
       .expressions = {any({kYoutuScripts, kChineseJapanese}), o200k(kDigit, contraction)},
       .whole_words = true,
       .joins_punctuation = false},

      {.names = {"deepseek-llm"},
       .expressions = {R"([\r\n])", kDeepSeekLetters, kDeepSeekSymbols, R"(\s+$)", kChineseKorean,
                       R"(\p{N}+)"},
       .joins_punctuation = false},
      {.names = {"deepseek-coder"},
       .expressions = {R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)", kChineseKorean, kDigit},
       .joins_punctuation = false},
      {.names = {"deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"},
       .expressions = {kThreeDigits, kChineseJapanese, deepseek3},
       .joins_punctuation = false},
      {.names = {"spark2_5"},
       .expressions = {kThreeDigits, kChineseJapanese,
                       any({kSymbolWord, kMarkedWord, kMarkedSymbols, R"([\r\n])", kSpaces}),
                       kDigit},
       .joins_punctuation = false},
      // Digits in groups of three from the right.
      {.names = {"afmoe"},
       .expressions = {R"(\p{N}{1,3}(?=(?:\p{N}{3})*+(?!\p{N})))", kAfmoeScripts, deepseek3},
       .joins_punctuation = false},

      {.names = {"bloom", "gpt3-finnish"}, .expressions = {kBloom}},
      {.names = {"poro-chat"}, .expressions = {kBloom}, .joins_punctuation = false},
      {.names = {"viking"}, .expressions = {kBloom, kDigit}, .joins_punctuation = false},
      // Words are merged across spaces; digits fall into groups of three from the right.
      {.names = {"superbpe"},
       .expressions = {R"(\p{N}+)", R"((?=(?:\d{3})++(?!\d)))"},
       .joins_punctuation = false},

      {.names = {"gemma4", "granite-embed-multi-311m"},
       .expressions = {kNoBreak},
       .add_bos = true,
       .raw = true,
       .whole_line_breaks = true},
      {.names = {"sarvam-moe"}, .expressions = {kNoBreak}, .joins_punctuation = false, .raw = true},
  };
}

}  // namespace

const std::vector<GgufPreTokenizer>& gguf_pre_tokenizers() {
  static const std::vector<GgufPreTokenizer> kTable = make_table();
  return kTable;
}

const GgufPreTokenizer* find_gguf_pre_tokenizer(std::string_view name) {
  for (const GgufPreTokenizer& one : gguf_pre_tokenizers())
    if (std::find(one.names.begin(), one.names.end(), name) != one.names.end()) return &one;
  return nullptr;
}

WordCutter::WordCutter(const GgufPreTokenizer& rules, const std::string& where) {
  for (const std::string& expression : rules.expressions)
    expressions_.emplace_back(expression, where);
}

std::vector<std::string_view> WordCutter::cut(std::string_view text) const {
  std::vector<std::string_view> words = {text};
  for (const Regex& expression : expressions_) {
    std::vector<std::string_view> parts;
    const auto add = [&](std::string_view part) {
      if (!part.empty()) parts.push_back(part);
    };
    for (const std::string_view word : words) {
      std::size_t end = 0;
      for (const auto& [from, to] : expression.find_all(word)) {
        add(word.substr(end, from - end));
        add(word.substr(from, to - from));
        end = to;
      }
      add(word.substr(end));
    }
    words = std::move(parts);
  }
  std::erase(words, std::string_view());
  return words;
}

}  // namespace mulciber
