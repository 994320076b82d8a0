#include "apps/attention/measures.h"
#include "apps/attention/page.h"

#include <sys/resource.h>

#include <cmath>
#include <csignal>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/attention/text.h"
#include "mulciber/error.h"
#include "tests/catch.h"
#include "tests/support.h"

namespace fs = std::filesystem;
using mulciber::apps::SentenceMaps;
using nlohmann::json;

namespace {

// A kind whose weights are all different, so that a transposed or shifted index shows.
SentenceMaps::Kind kind_of(const std::string& name, std::size_t layers, std::size_t heads,
                           std::size_t queries, std::size_t keys) {
  SentenceMaps::Kind kind{name, layers, heads, queries, keys, {}};
  const std::size_t count = layers * heads * queries * keys;
  for (std::size_t i = 0; i < count; ++i)
    kind.weights.push_back(static_cast<float>(i + 1) / static_cast<float>(count));
  return kind;
}

SentenceMaps example() {
  SentenceMaps maps;
  maps.source_tokens = {"\u2581two", "\u2581dog", "s", ".", "</s>"};
  maps.target_tokens = {"\u2581zwei", "\u2581Hunde", "</s>"};
  maps.decoder_input_tokens = {"<pad>", "\u2581zwei", "\u2581Hunde"};
  maps.source_text = "two dogs.";
  maps.target_text = "zwei Hunde";
  maps.model = "en-de";
  maps.device = "test device";
  maps.kinds = {kind_of("encoder", 2, 3, 5, 5), kind_of("decoder", 2, 3, 3, 3),
                kind_of("cross", 2, 3, 3, 5)};
  return maps;
}

// Text that breaks writers which escape too little, and bytes that are not UTF-8.
const std::vector<std::string> kHostile = {"</script><script>alert(1)</script>",
                                           "<!--",
                                           "]]>",
                                           "\"q' & &amp;",
                                           "\\u0041\\",
                                           "${x}`",
                                           "\u05e9\u05dc\u05d5\u05dd",
                                           "\U0001F469\u200D\U0001F680",
                                           "\u2028",
                                           "\u2029",
                                           std::string("\0\x01\x1b", 3),
                                           "\xff\xc3",
                                           "\xed\xa0\x80",
                                           "\uffff",
                                           "\u2581",
                                           "",
                                           " ",
                                           "\u200b",
                                           "[/*maps*/]"};

SentenceMaps hostile() {
  SentenceMaps maps;
  maps.source_tokens = kHostile;
  maps.target_tokens = {kHostile.rbegin(), kHostile.rend()};
  for (const std::string& token : kHostile) maps.source_text += token;
  maps.target_text = maps.model = maps.device = maps.source_text;
  const std::size_t n = kHostile.size();
  maps.kinds = {kind_of("encoder", 1, 1, n, n), kind_of("decoder", 1, 2, n, n),
                kind_of("cross", 2, 1, n, n)};
  return maps;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Enough of XML 1.0 to find what a browser would reject in a file of elements, attributes and text:
// empty when `text` is well-formed, else what is wrong.
std::string xml_fault(const std::string& text) {
  const auto bad_text = [](std::string_view part) -> std::string {
    for (std::size_t i = 0; i < part.size(); ++i) {
      const auto byte = static_cast<unsigned char>(part[i]);
      if (byte < 0x20 && byte != '\n' && byte != '\t') return "control character";
      if (byte == '<') return "stray <";
      if (part.substr(i, 3) == "]]>") return "]]> in text";
      if (byte == '&') {
        const std::string_view name = part.substr(i + 1, part.find(';', i) - i - 1);
        const bool number = name.size() > 1 && name[0] == '#' &&
                            name.find_first_not_of("0123456789", 1) == std::string_view::npos;
        if (!number && name != "amp" && name != "lt" && name != "gt" && name != "quot")
          return "bad entity";
      }
    }
    return {};
  };
  std::vector<std::string> open;
  std::size_t at = text.find("?>") + 2;  // past the declaration
  bool had_root = false;
  while (true) {
    const std::size_t tag = text.find('<', at);
    const std::string between = text.substr(at, tag - at);
    if (const std::string fault = bad_text(between); !fault.empty()) return fault;
    if (open.empty() && between.find_first_not_of(" \n") != std::string::npos)
      return "text outside the root";
    if (tag == std::string::npos) break;
    const std::size_t end = text.find('>', tag);
    if (end == std::string::npos) return "tag without end";
    std::string inside = text.substr(tag + 1, end - tag - 1);
    at = end + 1;
    if (inside[0] == '/') {
      if (open.empty() || open.back() != inside.substr(1)) return "closes " + inside;
      open.pop_back();
      continue;
    }
    if (open.empty() && had_root) return "second root";
    had_root = true;
    const bool empty = inside.back() == '/';
    if (empty) inside.pop_back();
    std::size_t i = inside.find(' ');
    const std::string name = inside.substr(0, i);
    while (i != std::string::npos && i + 1 < inside.size()) {
      const std::size_t equals = inside.find("='", i);
      const std::size_t close = inside.find('\'', equals + 2);
      if (equals == std::string::npos || close == std::string::npos)
        return "attribute in " + inside;
      if (!bad_text(inside.substr(equals + 2, close - equals - 2)).empty())
        return "attribute text in " + inside;
      i = close + 1;
      if (i < inside.size() && inside[i] != ' ') return "attributes run together in " + inside;
    }
    if (!empty) open.push_back(name);
  }
  return open.empty() && had_root ? "" : "unclosed element";
}

// The page's data, found the way a browser finds it: up to the first "</script".
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
  SentenceMaps maps;
  maps.target_tokens = {"<s>", "\u2581a", "\n"};
  maps.prompt_tokens = 2;
  maps.source_text = "a";
  maps.kinds = {kind_of("decoder", 2, 1, 3, 3)};
  std::vector<float>& weights = maps.kinds[0].weights;
  for (const std::size_t above : {1, 2, 5, 10, 11, 14}) weights[above] = 0;
  maps.kinds[0].windows = {2, 0};
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

  const std::string figure = mulciber::apps::to_svg(maps);
  CHECK(xml_fault(figure) == "");
  CHECK(count(figure, "Self-attention, layer 2 of 2") == 2);
  CHECK(count(figure, ">\u21b5</text>") == 2);
  CHECK(count(figure, "stroke-dasharray") == 1);

  weights[10] = 0.1f;
  CHECK(kind_in(maps).count("triangle") == 0);
  maps.kinds[0].windows.pop_back();
  CHECK_THROWS_AS(mulciber::apps::to_html(maps), mulciber::ShapeError);
  maps.kinds[0].windows.clear();
  maps.prompt_tokens = 4;
  CHECK_THROWS_AS(mulciber::apps::to_html(maps), mulciber::ShapeError);
}

TEST_CASE("attention figure is well-formed XML for every text") {
  REQUIRE_FALSE(xml_fault("<?xml?><a><b></a></b>").empty());
  REQUIRE_FALSE(xml_fault("<?xml?><a b='<'/>").empty());
  REQUIRE_FALSE(xml_fault("<?xml?><a>&nbsp;</a>").empty());
  for (const SentenceMaps& maps : {example(), hostile()}) {
    for (const char* kind : {"encoder", "decoder", "cross"}) {
      CHECK(xml_fault(mulciber::apps::to_svg(maps, {kind, {}, {}})) == "");
      CHECK(xml_fault(mulciber::apps::to_svg(maps, {kind, {0}, {0, 0}})) == "");
    }
  }
}

TEST_CASE("attention figure shows what was asked for") {
  SentenceMaps maps = example();
  SentenceMaps::Kind& cross = maps.kinds[2];
  cross.weights.assign(cross.weights.size(), 0.f);
  const std::size_t map = 3 * 5;
  cross.weights[(1 * 3 + 0) * map + 7] = 0.9f;  // last layer, query 1, key 2; the mean is 0.31
  cross.weights[(1 * 3 + 2) * map + 7] = 0.03f;
  cross.weights[0] = 0.77f;  // first layer, first head

  const std::string mean = mulciber::apps::to_svg(maps);
  CHECK(count(mean, "Cross-attention, layer 2 of 2, mean of 3 heads") == 2);
  CHECK(count(mean, ">0.31</text>") == 1);
  CHECK(count(mean, ">0.77</text>") == 0);
  CHECK(count(mean, ">zwei</text>") == 1);
  CHECK(count(mean, ">&lt;/s&gt;</text>") == 2);
  CHECK(count(mean, "en-de \u00b7 test device") == 1);

  const std::string head = mulciber::apps::to_svg(maps, {"cross", {0}, {0}});
  CHECK(count(head, ">0.77</text>") == 1);
  CHECK(count(head, ">0.31</text>") == 0);

  const std::string grid = mulciber::apps::to_svg(maps, {"cross", {0, 1}, {0, 1, 2}});
  for (const char* caption : {"layer 1, head 1", "layer 1, head 3", "layer 2, head 2"})
    CHECK(count(grid, caption) == 1);

  const std::string decoder = mulciber::apps::to_svg(maps, {"decoder", {}, {}});
  CHECK(count(decoder, ">&lt;pad&gt;</text>") == 1);
  maps.kinds.pop_back();
  CHECK(count(mulciber::apps::to_svg(maps), "Decoder self-attention") > 0);
}

TEST_CASE("attention figure marks missing weights") {
  SentenceMaps maps = example();
  CHECK(count(mulciber::apps::to_svg(maps), ">missing<") == 0);
  maps.kinds[2].weights.back() = NAN;  // one head only: the mean of that cell is missing too
  CHECK(count(mulciber::apps::to_svg(maps), ">missing<") == 1);
  CHECK(count(mulciber::apps::to_svg(maps, {"cross", {0}, {}}), ">missing<") == 0);
  maps.kinds[2].weights.assign(maps.kinds[2].weights.size(), NAN);
  CHECK(xml_fault(mulciber::apps::to_svg(maps)) == "");
  CHECK(count(mulciber::apps::to_svg(maps), "nan") == 0);
}

TEST_CASE("attention measures are entropy in bits and the largest weight") {
  using mulciber::apps::measure_map;
  const std::vector<float> map = {0.5f, 0.5f, 0, 0, 0, 1, 0.25f, 0.25f, 0.5f};
  CHECK(std::abs(measure_map(map, 3).entropy - (1 + 0 + 1.5) / 3) < 1e-6);
  CHECK(std::abs(measure_map(map, 3).largest - (0.5 + 1 + 0.5) / 3) < 1e-6);
  const std::vector<float> missing = {
      NAN, 1, 0, 0, 0, 1};  // a row that is missing, one that is masked, one that counts
  CHECK(measure_map(missing, 2).entropy == 0);
  CHECK(measure_map(missing, 2).largest == 1);
  CHECK(std::isnan(measure_map(std::vector<float>(4, 0.f), 2).entropy));
}

TEST_CASE("attention rollout is the product of the layers, half of each its own input") {
  SentenceMaps maps;
  maps.source_tokens = {"a", "b"};
  maps.target_tokens = {"c", "d"};
  // Two heads whose mean is ((1, 0), (0.5, 0.5)), then one layer that swaps.
  maps.kinds = {{"encoder", 2, 2, 2, 2, {1, 0, 1, 0, 1, 0, 0, 1, 0, 1, 1, 0, 0, 1, 1, 0}},
                {"decoder", 1, 1, 2, 2, {1, 0, 0.5f, 0.5f}},
                {"cross", 1, 1, 2, 2, {0, 1, 1, 0}}};
  const std::vector<SentenceMaps::Kind> kinds = mulciber::apps::attention_rollout(maps);
  REQUIRE(kinds.size() == 3);
  CHECK(kinds[0].name == "encoder_rollout");
  CHECK(kinds[0].heads == 1);
  // (I + A1) / 2 = ((1, 0), (.25, .75)); (I + A2) / 2 = ((.5, .5), (.5, .5)); their product has
  // rows (.625, .375).
  CHECK(kinds[0].weights == std::vector<float>{1, 0, 0.25f, 0.75f, 0.625f, 0.375f, 0.625f, 0.375f});
  CHECK(kinds[1].name == "decoder_rollout");
  CHECK(kinds[1].weights == std::vector<float>{0.5f, 0, 0.125f, 0.375f});
  CHECK(kinds[2].name == "cross_rollout");
  CHECK(kinds[2].weights == std::vector<float>{0.3125f, 0.1875f, 0.3125f, 0.1875f});
  maps.kinds.insert(maps.kinds.end(), kinds.begin(), kinds.end());
  CHECK(xml_fault(mulciber::apps::to_svg(maps, {"encoder_rollout", {0, 1}, {}})) == "");
  CHECK(count(mulciber::apps::to_html(maps), "\"kind\":\"cross_rollout\"") == 1);
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

  // A limit on the size of files stands in for a full disk: the write stops part of the way.
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

TEST_CASE("pieces become labels") {
  CHECK(mulciber::apps::piece_label("\u2581Haus", 16) == "Haus");
  CHECK(mulciber::apps::piece_label("s", 16) == "s");
  CHECK(mulciber::apps::piece_label("\u2581", 16) == "\u2423");
  CHECK(mulciber::apps::piece_label("a\u2581b c", 16) == "a\u2423b\u2423c");
  CHECK(mulciber::apps::piece_label("", 16) == "\u2423");
  CHECK(mulciber::apps::piece_label("\u200b", 16) == "U+200B");
  CHECK(mulciber::apps::piece_label("exactly8", 8) == "exactly8");
  CHECK(mulciber::apps::piece_label("one more!", 8) == "one\u2423mor\u2026");
  CHECK(mulciber::apps::piece_label("\u6f22\u5b57\u6f22\u5b57\u6f22", 8) ==
        "\u6f22\u5b57\u6f22\u2026");
  CHECK(mulciber::apps::piece_label("\xff", 8) == "\ufffd");
  CHECK(mulciber::apps::continues_word("ing"));
  CHECK_FALSE(mulciber::apps::continues_word("\u2581ing"));
  CHECK_FALSE(mulciber::apps::continues_word("."));
  CHECK_FALSE(mulciber::apps::continues_word("</s>"));
  CHECK(mulciber::apps::xml_escape("<a & 'b'>\x01\"") == "&lt;a &amp; &#39;b&#39;&gt;&quot;");
}
