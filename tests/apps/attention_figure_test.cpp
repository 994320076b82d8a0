// The figure of attention maps, the measures and the rollout shown in it, and its labels.
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "apps/attention/measures.h"
#include "apps/attention/page.h"
#include "apps/attention/text.h"
#include "tests/attention_maps.h"
#include "tests/catch.h"

using namespace mulciber::tests;

namespace {

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

}  // namespace

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

TEST_CASE("attention figure takes causal maps") {
  const std::string figure = mulciber::apps::to_svg(causal());
  CHECK(xml_fault(figure) == "");
  CHECK(count(figure, "Self-attention, layer 2 of 2") == 2);
  CHECK(count(figure, ">\u21b5</text>") == 2);
  CHECK(count(figure, "stroke-dasharray") == 1);
}

TEST_CASE("attention figure marks missing weights") {
  SentenceMaps maps = example();
  CHECK(count(mulciber::apps::to_svg(maps), ">missing<") == 0);
  maps.kinds[2].weights.back() = NAN;  // NaN in one head makes the mean of that cell missing too
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
  const std::vector<float> missing = {NAN, 1, 0,
                                      0,   0, 1};  // a missing row, a masked row, a row that counts
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
