// Attention maps as an interactive page and as JSON, and the files that hold them.
#include "apps/attention/page.h"

#include <sys/resource.h>

#include <cmath>
#include <csignal>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "mulciber/error.h"
#include "tests/attention_maps.h"
#include "tests/catch.h"
#include "tests/support.h"

namespace fs = std::filesystem;
using namespace mulciber::tests;
using nlohmann::json;

namespace {

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The page's data, found as a browser finds it: up to the first "</script".
json page_data(const std::string& page) {
  const std::string start = "<script type=\"application/json\" id=\"data\">";
  const std::size_t from = page.find(start) + start.size();
  return json::parse(page.substr(from, page.find("</script", from) - from));
}

std::vector<unsigned> unpack(const std::string& packed) {
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  for (std::size_t i = 0; i < packed.size(); i += 4) {
    unsigned group = 0, padding = 0;
    for (std::size_t j = i; j < i + 4; ++j) {
      padding += packed[j] == '=';
      group = group << 6 | (packed[j] == '=' ? 0u : static_cast<unsigned>(digits.find(packed[j])));
    }
    for (unsigned k = 0; k < 3 - padding; ++k) bytes += static_cast<char>(group >> (16 - 8 * k));
  }
  std::vector<unsigned> values;
  for (std::size_t i = 0; i < bytes.size(); i += 2)
    values.push_back(static_cast<unsigned char>(bytes[i]) |
                     static_cast<unsigned>(static_cast<unsigned char>(bytes[i + 1])) << 8);
  return values;
}

}  // namespace

TEST_CASE("attention JSON holds every token and weight") {
  const SentenceMaps maps = example();
  const json document = json::parse(mulciber::apps::to_json({maps, maps}));
  CHECK(document["schema"] == "mulciber.attention");
  CHECK(document["version"] == 1);
  REQUIRE(document["sentences"].size() == 2);
  const json& sentence = document["sentences"][1];
  CHECK(sentence["model"] == maps.model);
  CHECK(sentence["device"] == maps.device);
  CHECK(sentence["source"]["text"] == maps.source_text);
  CHECK(sentence["source"]["tokens"] == maps.source_tokens);
  CHECK(sentence["target"]["tokens"] == maps.target_tokens);
  CHECK(sentence["target"]["decoder_input"] == maps.decoder_input_tokens);
  REQUIRE(sentence["attention"].size() == maps.kinds.size());
  for (std::size_t n = 0; n < maps.kinds.size(); ++n) {
    const SentenceMaps::Kind& kind = maps.kinds[n];
    const json& written = sentence["attention"][n];
    CHECK(written["kind"] == kind.name);
    CHECK(written["keys"] == kind.keys);
    REQUIRE(written["weights"].size() == kind.layers);
    std::size_t i = 0;
    for (const json& layer : written["weights"]) {
      REQUIRE(layer.size() == kind.heads);
      for (const json& head : layer) {
        REQUIRE(head.size() == kind.queries);
        for (const json& query : head) {
          REQUIRE(query.size() == kind.keys);
          for (const json& weight : query) {
            CHECK(std::abs(weight.get<double>() - kind.weights[i]) <= 5e-5 * kind.weights[i]);
            ++i;
          }
        }
      }
    }
    for (const char* member : {"entropy", "max_weight"}) {
      REQUIRE(written[member].size() == kind.layers);
      for (const json& layer : written[member]) REQUIRE(layer.size() == kind.heads);
    }
  }
}

TEST_CASE("attention JSON writes missing weights as null and odd text as UTF-8") {
  SentenceMaps maps = hostile();
  maps.kinds[2].weights[0] = NAN;
  maps.kinds[2].weights[1] = INFINITY;
  maps.kinds[2].weights[2] = 1e-12f;
  const json document = json::parse(mulciber::apps::to_json(maps));
  const json& row = document["sentences"][0]["attention"][2]["weights"][0][0][0];
  CHECK(row[0].is_null());
  CHECK(row[1].is_null());
  CHECK(std::abs(row[2].get<double>() - 1e-12) < 1e-17);
  const json& tokens = document["sentences"][0]["source"]["tokens"];
  for (std::size_t i = 0; i < kHostile.size(); ++i) {
    if (kHostile[i] == "\xff\xc3" || kHostile[i] == "\xed\xa0\x80") {
      CHECK_THAT(tokens[i].get<std::string>(), Catch::Matchers::ContainsSubstring("\ufffd"));
    } else {
      CHECK(tokens[i] == kHostile[i]);
    }
  }
}

TEST_CASE("attention page survives every text and fetches nothing") {
  const std::string plain = mulciber::apps::to_html(example()),
                    page = mulciber::apps::to_html(hostile());
  CHECK(count(page, "<script") == 2);
  CHECK(count(page, "</script") == 2);
  CHECK(count(page, "<!--") == count(plain, "<!--"));
  CHECK(count(page, "\xE2\x80\xA8") == 0);
  CHECK(count(page, "default-src 'none'") == 1);
  CHECK(count(page, "://") == 1);  // the SVG namespace, which is a name and not an address
  CHECK(count(page, "http://www.w3.org/2000/svg") == 1);

  const json data = page_data(page);
  REQUIRE(data.size() == 1);
  CHECK(data[0]["source"]["tokens"][0] == kHostile[0]);
  CHECK(data[0]["source"]["tokens"][8] == "\u2028");
  CHECK(page_data(mulciber::apps::to_html({example(), hostile()})).size() == 2);
}

TEST_CASE("attention page holds weights to five decimals") {
  SentenceMaps maps = example();
  maps.kinds[0].weights[4] = NAN;
  maps.kinds[0].weights[5] = 0;
  maps.kinds[0].weights[6] = 1.0000001f;
  const json data = page_data(mulciber::apps::to_html(maps));
  for (std::size_t n = 0; n < maps.kinds.size(); ++n) {
    const std::vector<unsigned> fixed = unpack(data[0]["attention"][n]["packed"]);
    REQUIRE(fixed.size() == maps.kinds[n].weights.size());
    for (std::size_t i = 0; i < fixed.size(); ++i) {
      if (n == 0 && i == 4) {
        CHECK(fixed[i] == 65535);
      } else {
        CHECK(std::abs(fixed[i] / 65534.0 - maps.kinds[n].weights[i]) < 1e-5);
      }
    }
  }
}

TEST_CASE("attention page keeps causal maps as triangles") {
  SentenceMaps maps = causal();
  std::vector<float>& weights = maps.kinds[0].weights;
  const auto kind_in = [](const SentenceMaps& shown) {
    return page_data(mulciber::apps::to_html(shown))[0]["attention"][0];
  };
  const json kind = kind_in(maps);
  CHECK(kind["triangle"] == true);
  CHECK(kind["windows"] == json::array({2, 0}));
  const std::vector<unsigned> fixed = unpack(kind["packed"]);
  const std::size_t kept[] = {0, 3, 4, 6, 7, 8, 9, 12, 13, 15, 16, 17};
  REQUIRE(fixed.size() == 12);
  for (std::size_t i = 0; i < 12; ++i)
    CHECK(std::abs(fixed[i] / 65534.0 - weights[kept[i]]) < 1e-5);
  CHECK(page_data(mulciber::apps::to_html(maps))[0]["prompt_tokens"] == 2);

  weights[10] = 0.1f;
  CHECK(kind_in(maps).count("triangle") == 0);
  maps.kinds[0].windows.pop_back();
  CHECK_THROWS_AS(mulciber::apps::to_html(maps), mulciber::ShapeError);
  maps.kinds[0].windows.clear();
  maps.prompt_tokens = 4;
  CHECK_THROWS_AS(mulciber::apps::to_html(maps), mulciber::ShapeError);
}

TEST_CASE("attention maps that do not fit are refused") {
  using Catch::Matchers::ContainsSubstring;
  const auto refusal = [](SentenceMaps maps) -> std::string {
    try {
      mulciber::apps::to_html(maps);
    } catch (const mulciber::ShapeError& error) {
      return error.what();
    }
    return "accepted";
  };
  SentenceMaps maps = example();
  maps.kinds[2].weights.pop_back();
  CHECK_THAT(refusal(maps), ContainsSubstring("\"cross\"") && ContainsSubstring("89 weights"));
  maps = example();
  maps.source_tokens.pop_back();
  CHECK_THAT(refusal(maps), ContainsSubstring("5 queries, but there are 4 source tokens"));
  maps = example();
  maps.decoder_input_tokens.pop_back();
  CHECK_THAT(refusal(maps), ContainsSubstring("2 decoder input tokens"));
  maps = example();
  maps.kinds[0].name = "sideways";
  CHECK_THAT(refusal(maps), ContainsSubstring("none of encoder, decoder and cross"));
  maps = example();
  maps.kinds[1] = maps.kinds[0];
  CHECK_THAT(refusal(maps), ContainsSubstring("comes twice"));
  maps = example();
  maps.kinds[0].heads = 0;
  CHECK_THAT(refusal(maps), ContainsSubstring("nothing to show"));
  maps = example();
  maps.kinds[0].layers = std::size_t{1} << 63;  // times heads 2 wraps round to 0
  maps.kinds[0].heads = 2;
  CHECK_THAT(refusal(maps), ContainsSubstring("another number"));
  maps.kinds.clear();
  CHECK_THAT(refusal(maps), ContainsSubstring("no attention weights"));

  CHECK_THROWS_AS(mulciber::apps::to_json(std::vector<SentenceMaps>{}), mulciber::ShapeError);
  CHECK_THROWS_AS(mulciber::apps::to_json(maps), mulciber::ShapeError);
  CHECK_THROWS_AS(mulciber::apps::to_svg(maps), mulciber::ShapeError);
  CHECK_THROWS_AS(mulciber::apps::to_svg(example(), {"cross", {2}, {}}), mulciber::ShapeError);
  CHECK_THROWS_AS(mulciber::apps::to_svg(example(), {"cross", {}, {3}}), mulciber::ShapeError);
  CHECK_THROWS_AS(mulciber::apps::to_svg(example(), {"sideways", {}, {}}), mulciber::ShapeError);
}

TEST_CASE("attention maps are written in the format that the name asks for") {
  const mulciber::tests::TemporaryFolder folder;
  const SentenceMaps maps = example();
  for (const char* name : {"a.html", "a.JSON", "a.svg", "a.htm"}) {
    const fs::path path = folder.path() / name;
    CHECK(mulciber::apps::write_attention(path, {maps}) == std::vector<fs::path>{path});
  }
  CHECK(read(folder.path() / "a.html") == mulciber::apps::to_html(maps));
  CHECK(read(folder.path() / "a.JSON") == mulciber::apps::to_json(maps));
  CHECK(read(folder.path() / "a.svg") == mulciber::apps::to_svg(maps));

  const auto written =
      mulciber::apps::write_attention(folder.path() / "two.svg", {maps, hostile()});
  CHECK(written == std::vector<fs::path>{folder.path() / "two-1.svg", folder.path() / "two-2.svg"});
  CHECK(read(written[1]) == mulciber::apps::to_svg(hostile()));

  for (const char* name : {"map.png", "map", ".svg"}) {
    try {
      mulciber::apps::attention_format(name);
      FAIL("accepted " << name);
    } catch (const mulciber::Error& error) {
      CHECK_THAT(error.what(), Catch::Matchers::ContainsSubstring(".html"));
      CHECK(error.where() == name);
    }
  }
}

TEST_CASE("attention files appear whole or not at all") {
  const mulciber::tests::TemporaryFolder folder;
  const fs::path path = folder.path() / "map.json";
  const auto entries = [&] {
    return std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator());
  };
  mulciber::apps::write_attention(path, {example()});
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
  const std::string before = read(path);

  // A limit on the size of files stands in for a full disk: the write stops partway.
  rlimit old{};
  getrlimit(RLIMIT_FSIZE, &old);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{100, old.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  std::string message = "accepted";
  try {
    mulciber::apps::write_attention(path, {hostile()});
  } catch (const mulciber::Error& error) {
    message = error.what();
  }
  setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, old_handler);
  CHECK_THAT(message, Catch::Matchers::ContainsSubstring(path.string()) &&
                          Catch::Matchers::ContainsSubstring("too large"));
  CHECK(read(path) == before);
  CHECK(entries() == 1);

  mulciber::apps::write_attention(path, {hostile()});
  CHECK(read(path) == mulciber::apps::to_json(hostile()));
  CHECK(entries() == 1);
  CHECK((fs::status(path).permissions() & fs::perms::group_read) == fs::perms::none);

  fs::create_symlink(path, folder.path() / "link.json");
  mulciber::apps::write_attention(folder.path() / "link.json", {example()});
  CHECK(fs::is_symlink(folder.path() / "link.json"));
  CHECK(read(path) == before);

  fs::create_directory(folder.path() / "folder.svg");
  CHECK_THROWS_AS(mulciber::apps::write_attention(folder.path() / "folder.svg", {example()}),
                  mulciber::Error);
  CHECK_THROWS_AS(mulciber::apps::write_attention(folder.path() / "none" / "map.svg", {example()}),
                  mulciber::Error);
  CHECK(entries() == 3);
}
