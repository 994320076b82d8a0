// GGUF tokenizers against vectors that llama.cpp made, both ways.
#include <fstream>
#include <iterator>
#include <sstream>

#include <nlohmann/json.hpp>

#include "tests/catch.h"
#include "tests/support.h"
#include "text/tokenizers/gguf.h"

using namespace mulciber;
using nlohmann::json;

namespace {

std::string from_hex(const std::string& text) {
  std::string bytes;
  for (size_t i = 0; i + 1 < text.size(); i += 2)
    bytes += static_cast<char>(std::stoi(text.substr(i, 2), nullptr, 16));
  return bytes;
}

std::string read(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("GGUF tokenizers give the recorded ids and bytes") {
  const auto root = tests::fixtures_dir();
  if (root.empty()) MULCIBER_SKIP("no reference data: set MULCIBER_FIXTURES");
  for (const std::string name : {"llama-spm", "gpt-2", "bert-bge"}) {
    DYNAMIC_SECTION(name) {
      const auto folder = root / "tokenizers";
      const GgufTokenizer tokenizer{GgufFile(folder / ("ggml-vocab-" + name + ".gguf"))};
      const json vectors = json::parse(read(folder / ("extra-" + name + ".json")));
      CHECK(vectors["cases"].size() > 50);
      for (const json& entry : vectors["cases"]) {
        const std::string text = from_hex(entry["hex"]);
        INFO(entry["hex"].get<std::string>().substr(0, 400));
        const auto ids = entry["ids"].get<std::vector<int32_t>>();
        CHECK(tokenizer.encode(text, {false, false}) == ids);
        CHECK(tokenizer.encode(text, {true, false}) ==
              entry["ids_add_special"].get<std::vector<int32_t>>());
        CHECK(tokenizer.encode(text, {false, true}) ==
              entry["ids_parse_special"].get<std::vector<int32_t>>());
        CHECK(tokenizer.decode(ids, false) == from_hex(entry["detokenized_hex"]));
      }

      const std::string inputs = read(folder / ("ggml-vocab-" + name + ".gguf.inp"));
      std::istringstream outputs(read(folder / ("ggml-vocab-" + name + ".gguf.out")));
      const std::string separator = "\n__ggml_vocab_test__\n";
      size_t begin = 0, compared = 0;
      for (std::string line; std::getline(outputs, line);) {
        const size_t end = std::min(inputs.find(separator, begin), inputs.size());
        std::istringstream numbers(line);
        const std::vector<int32_t> expected{std::istream_iterator<int32_t>(numbers), {}};
        INFO("text " << compared << " of the .inp file");
        CHECK(tokenizer.encode(inputs.substr(begin, end - begin), {false, false}) == expected);
        begin = end + separator.size();
        ++compared;
      }
      CHECK(compared > 30);
    }
  }
}
