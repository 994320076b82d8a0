// GGUF files of encoders (tools/fixtures/gguf_encoders.py) compared with the folders they were made
// from: ids of texts and pairs, vectors, labels, and what is refused.
#include <cmath>

#include "models/loading/open_files.h"
#include "mulciber/text_encoder.h"
#include "tests/catch.h"
#include "tests/device.h"
#include "tests/gguf_bytes.h"
#include "tests/model_error.h"
#include "tests/support.h"
#include "text/tokenizers/gguf.h"

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;
namespace fs = std::filesystem;

namespace {

const std::vector<std::string> kGgufLines = {"Why did the smith melt 42 crucibles?",
                                             "The red hammer strikes the anvil.", "", "iron",
                                             "The anvil,  the hammer and the forge."};
const std::vector<ClassifierInput> kPairs = {{"the hammer", "the anvil and iron"}, {"red", {}}};

fs::path file(const std::string& name) { return data_dir() / "gguf_encoders" / (name + ".gguf"); }

void check_same_ids(const OpenModel& gguf, const OpenModel& folder) {
  for (const std::string& line : kGgufLines) {
    INFO(line);
    CHECK(gguf.tokenizer()->encode(line) == folder.tokenizer()->encode(line));
    const Encoding pair = gguf.tokenizer()->encode_pair(line, kGgufLines[1]);
    const Encoding expected = folder.tokenizer()->encode_pair(line, kGgufLines[1]);
    CHECK(pair.ids == expected.ids);
    CHECK(pair.type_ids == expected.type_ids);
  }
}

double largest_vector_difference(std::span<const float> a, std::span<const float> b) {
  REQUIRE(a.size() == b.size());
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i)
    largest = std::max(largest, std::abs(double{a[i]} - double{b[i]}));
  return largest;
}

/// pooling: the file's own, where it names one.
void check_same_vectors(const fs::path& gguf, const fs::path& folder, Pooling pooling,
                        double bound) {
  const std::vector<TextVector> found =
      TextEncoder(shared_handle(), gguf.string()).embed(kGgufLines);
  EmbedOptions options;
  options.pooling = pooling;
  options.normalize = true;
  const std::vector<TextVector> expected =
      TextEncoder(shared_handle(), folder.string()).embed(kGgufLines, options);
  for (size_t i = 0; i < kGgufLines.size(); ++i) {
    INFO(kGgufLines[i]);
    CHECK(largest_vector_difference(found[i].values, expected[i].values) < bound);
  }
}

void check_same_labels(const fs::path& gguf, const fs::path& folder, double bound) {
  Classifier found(shared_handle(), gguf.string()), expected(shared_handle(), folder.string());
  CHECK(found.labels() == expected.labels());
  CHECK(found.several_labels() == expected.several_labels());
  const auto labels = found.classify(kPairs), wanted = expected.classify(kPairs);
  for (size_t i = 0; i < kPairs.size(); ++i)
    CHECK(largest_vector_difference(labels[i].logits, wanted[i].logits) < bound);
}

/// A copy of a file with other bytes at `offset` from the start of `text`.
std::string changed(const TemporaryFolder& folder, const std::string& name, const std::string& text,
                    size_t offset, const std::string& bytes) {
  std::string whole = read_file(file(name));
  const size_t at = whole.find(text);
  REQUIRE(at != whole.npos);
  whole.replace(at + offset, bytes.size(), bytes);
  const fs::path path = folder.path() / "changed.gguf";
  write_file(path, whole);
  return path.string();
}

}  // namespace

TEST_CASE("A GGUF file of RoBERTa in f32 is the classifier of its folder") {
  const fs::path folder = data_dir() / "roberta_cls", gguf = file("roberta_cls");
  check_same_ids(open_files(gguf), open_files(folder));
  check_same_vectors(gguf, folder, Pooling::kFirst, 1e-6);
  check_same_labels(gguf, folder, 1e-6);
}

TEST_CASE("GGUF files of encoders in f16 and blocks are the models of their folders") {
  if (fixtures_dir().empty()) MULCIBER_SKIP("the reference models are not here");
  const auto [folder, pooling, bound] = GENERATE(
      table<std::string, Pooling, double>({{"models/bert", Pooling::kMean, 1e-3},
                                           {"models2/xlm_roberta_cls", Pooling::kFirst, 1e-3},
                                           {"models2/modernbert_cls", Pooling::kFirst, 1e-3},
                                           {"models2/nomic_bert", Pooling::kMean, 1e-2}}));
  INFO(folder);
  const fs::path reference = fixtures_dir() / folder, gguf = file(reference.filename().string());
  check_same_ids(open_files(gguf), open_files(reference));
  check_same_vectors(gguf, reference, pooling, bound);
  if (folder.ends_with("_cls")) check_same_labels(gguf, reference, 1e-2);
}

TEST_CASE("What a GGUF file of an encoder says wrong is refused by its key") {
  const TemporaryFolder folder;
  const auto embedding = [&](const std::string& path) {
    return model_error([&] { TextEncoder(shared_handle(), path); }).value_or("no error");
  };
  // A key is followed by its type (four bytes) and its value.
  const std::string causal = "bert.attention.causal", pooling = "bert.pooling_type";
  CHECK_THAT(embedding(changed(folder, "roberta_cls", causal, causal.size() + 4, {"\1", 1})),
             ContainsSubstring("metadata 'bert.attention.causal' is true"));
  CHECK_THAT(embedding(changed(folder, "roberta_cls", pooling, pooling.size() + 4, {"\7", 1})),
             ContainsSubstring("metadata 'bert.pooling_type' is none of the known numbers"));
  CHECK(embedding(file("roberta_cls").string()) == "no error");

  const auto classifying = [&](const std::string& path) {
    return model_error([&] { Classifier(shared_handle(), path); }).value_or("no error");
  };
  CHECK_THAT(classifying(changed(folder, "roberta_cls", "cls.weight", 0, "CLS.weight")),
             ContainsSubstring("without the pooler before them"));
  CHECK_THAT(classifying(file("nomic_bert").string()), ContainsSubstring("has no head"));
}

TEST_CASE("A GGUF file's WordPiece keeps letters as they are where its key says so") {
  const auto ids = [](std::optional<bool> lower) {
    GgufBytes bytes;
    bytes.counts(0, lower ? 5 : 4);
    bytes.key("tokenizer.ggml.model", GgufType::kString).text("bert");
    bytes.key("tokenizer.ggml.tokens", GgufType::kArray)
        .number(static_cast<std::uint32_t>(GgufType::kString))
        .number<std::uint64_t>(5);
    for (const char* piece : {"[UNK]", "[SEP]", "\u2581a", "\u2581\u00c4", "\u2581A"})
      bytes.text(piece);
    bytes.key("tokenizer.ggml.unknown_token_id", GgufType::kU32).number<std::uint32_t>(0);
    bytes.key("tokenizer.ggml.seperator_token_id", GgufType::kU32).number<std::uint32_t>(1);
    if (lower)
      bytes.key("tokenizer.ggml.normalizer.lowercase", GgufType::kBool)
          .number<std::uint8_t>(*lower ? 1 : 0);
    bytes.align();
    return GgufTokenizer(GgufFile(bytes.write())).encode("\u00c4 A a", {false, false});
  };
  using Ids = std::vector<std::int32_t>;
  CHECK(ids(std::nullopt) == Ids{2, 2, 2});
  CHECK(ids(true) == Ids{2, 2, 2});
  CHECK(ids(false) == Ids{3, 4, 2});
}
