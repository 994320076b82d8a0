// Vectors of texts that are given as token ids.
#include "models/loading/open_files.h"
#include "mulciber/text_encoder.h"
#include "tests/catch.h"
#include "tests/device.h"
#include "tests/model_error.h"
#include "tests/support.h"

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("Ids of tokens have the vector of their text") {
  const std::filesystem::path folder = data_dir() / "roberta_cls";
  const std::vector<std::string> lines = {"Why did the smith melt 42 crucibles?",
                                          "The red hammer strikes the anvil.", "", "iron",
                                          "The anvil, the hammer and the forge."};
  TextEncoder encoder(shared_handle(), folder.string());
  const std::shared_ptr<const Tokenizer> tokenizer = open_files(folder).tokenizer();
  std::vector<std::vector<uint32_t>> ids;
  for (const std::string& line : lines) {
    const std::vector<int32_t> read = tokenizer->encode(line);
    ids.emplace_back(read.begin(), read.end());
  }
  const std::vector<TextVector> by_text = encoder.embed(lines), by_ids = encoder.embed_ids(ids);
  REQUIRE(by_ids.size() == lines.size());
  for (size_t i = 0; i < lines.size(); ++i) {
    INFO(lines[i]);
    CHECK(by_ids[i].values == by_text[i].values);
    CHECK(by_ids[i].tokens == by_text[i].tokens);
    CHECK(by_ids[i].complete);
  }
  const auto refused = [&](std::vector<uint32_t> one, const EmbedOptions& options = {}) {
    return model_error([&] { encoder.embed_ids({&one, 1}, options); }).value_or("no error");
  };
  CHECK_THAT(refused({}), ContainsSubstring("text 1 of 1: has no tokens"));
  CHECK_THAT(refused({5, 1u << 30}), ContainsSubstring("has the token id 1073741824"));
  const std::vector<uint32_t> many(60, ids[3][1]);
  EmbedOptions whole;
  whole.batch.truncate = false;
  CHECK_THAT(refused(many, whole), ContainsSubstring("the model takes at most 48"));
  const TextVector cut = encoder.embed_ids({&many, 1}).front();
  CHECK((cut.truncated && cut.tokens == 48));
}
