// JSON schemas as grammars: for each keyword, texts that are valid and texts that are not.
#include <fmt/format.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "mulciber/error.h"
#include "mulciber/grammar.h"
#include "tests/catch.h"
#include "tests/model_error.h"
#include "text/grammar/matcher.h"

using namespace mulciber;

namespace {

bool accepts(const Grammar& grammar, std::string_view text) {
  Matcher matcher(grammar.automaton());
  Matcher::State state = matcher.start();
  for (const char c : text) {
    state = matcher.next(state, static_cast<uint8_t>(c));
    if (state == Matcher::kDead) return false;
  }
  return matcher.accepts(state);
}

struct Texts {
  std::string schema;
  std::vector<std::string> in, out;
};

void check(const Texts& row) {
  INFO(row.schema);
  const Grammar grammar = Grammar::json_schema(row.schema);
  for (const std::string& text : row.in) {
    INFO("should be accepted: " << text);
    CHECK(accepts(grammar, text));
  }
  for (const std::string& text : row.out) {
    INFO("should be refused: " << text);
    CHECK_FALSE(accepts(grammar, text));
  }
}

}  // namespace

TEST_CASE("schemas of plain values accept what is valid") {
  const Texts rows[] = {
      {"true",
       {"1", "[]", "{\"a\": [1, {\"b\": null}]}", "\"x\"", "-1.5e+3"},
       {"", " 1", "01", "+1"}},
      {"{}", {"null", "[ 1,\n  2 ]"}, {"nul", "[1,]", "[1  ,2]", "{\"a\" :1}"}},
      {R"({"type": "null"})", {"null"}, {"0", "\"null\""}},
      {R"({"type": "boolean"})", {"true", "false"}, {"True", "1"}},
      {R"({"type": ["string", "null"]})", {"\"\"", "null"}, {"1"}},
      {R"({"type": "string"})",
       {R"("")", R"("é😀")", R"("\n\"\\\/\u00e9")", R"("\ud83d\ude00")", "\"\x7f\""},
       {R"("\x")", R"("\ud83d")", R"("\ude00")", "\"\n\"", "\"", "\"\xc3\"", R"("\u12g4")"}},
      {R"({"type": "string", "minLength": 2, "maxLength": 3})",
       {R"("ab")", R"("éß😀")", R"("\n\ud83d\ude00a")"},
       {R"("a")", R"("abcd")"}},
      {R"({"maxLength": 0})", {R"("")"}, {R"("a")"}},
      {R"({"pattern": "^[a-c]+$"})", {R"("abc")"}, {R"("")", R"("d")", R"("xab")"}},
      {R"({"pattern": "^[a-c]+$", "maxLength": 3})",
       {R"("a")", R"("abc")"},
       {R"("")", R"("abca")", R"("d")"}},
      {R"({"pattern": "b", "minLength": 2, "maxLength": 4})",
       {R"("ab")", R"("éb")", R"("b\"\\\n")", R"("aaab")"},
       {R"("b")", R"("ac")", R"("aaaab")", R"("b\"\\\n\n")"}},
      {R"({"pattern": "^(ab|c)*(d{2,3})?$", "minLength": 3})",
       {R"("abc")", R"("cdd")", R"("ddd")", R"("ababababccddd")"},
       {R"("")", R"("dd")", R"("ab")", R"("abd")", R"("dddd")"}},
      {R"({"pattern": "^x{0,3}y{2}(z|)$", "minLength": 2, "maxLength": 4})",
       {R"("yy")", R"("xyyz")", R"("xxyy")"},
       {R"("xxyyz")", R"("xxxyy")", R"("y")"}},
      {R"({"pattern": "^(a*)*$", "maxLength": 2})", {R"("")", R"("aa")"}, {R"("aaa")"}},
      {R"({"format": "email", "maxLength": 8})", {R"("a@b.cd")"}, {R"("abcd@b.cd")"}},
      {R"({"pattern": "b"})", {R"("b")", R"("abc")", R"("b\"\\")"}, {R"("ac")", R"("")"}},
      {R"({"pattern": "^[\"\\\\\n]$"})", {R"("\"")", R"("\\")", R"("\n")"}, {"\"\n\"", R"("a")"}},
      {R"({"format": "date"})",
       {R"("2024-02-28")", R"("1999-12-31")", R"("2000-04-30")"},
       {R"("2024-02-30")", R"("2024-13-01")", R"("2024-04-31")", R"("24-01-01")"}},
      {R"({"format": "time"})", {R"("23:59:59Z")", R"("00:00:00.123+01:30")"}, {R"("24:00:00Z")"}},
      {R"({"format": "date-time"})", {R"("2024-05-06T07:08:09Z")"}, {R"("2024-05-06 07:08:09Z")"}},
      {R"({"format": "uuid"})",
       {R"("123e4567-e89b-12d3-a456-426614174000")"},
       {R"("123e4567e89b12d3a456426614174000")"}},
      {R"({"format": "duration"})",
       {R"("P1D")", R"("P3Y6M4DT12H30M5S")", R"("PT36H")", R"("P2W")", R"("P1M")", R"("PT5S")"},
       {R"("P")", R"("PT")", R"("P1DT")", R"("1D")", R"("P1Y2D")", R"("P1W2D")", R"("PT1H5S")"}},
      {R"({"format": "hostname"})",
       {R"("localhost")", R"("a-b.example.org")", R"("x1.y2")"},
       {R"("")", R"("-a.org")", R"("a-.org")", R"("a..b")", R"("a_b")", R"("a.org.")"}},
      {R"({"format": "email"})",
       {R"("a@example.org")", R"("first.last+tag@a-b.example.org")"},
       {R"("a")", R"("@a.org")", R"("a@")", R"("a@b")", R"("a.@b.org")", R"("a@b@c.org")"}},
      {R"({"format": "ipv4"})",
       {R"("0.0.0.0")", R"("192.168.1.20")", R"("255.255.255.255")"},
       {R"("256.1.1.1")", R"("1.2.3")", R"("1.2.3.4.5")", R"("01.2.3.4")"}},
      {R"({"format": "ipv6"})",
       {R"("::")", R"("::1")", R"("2001:db8::8a2e:370:7334")", R"("1:2:3:4:5:6:7:8")",
        R"("fe80::")", R"("1:2:3:4:5:6:7::")", R"("::2:3:4:5:6:7:8")"},
       {R"(":")", R"("1:2:3:4:5:6:7")", R"("1::2::3")", R"("12345::")", R"("1:2:3:4:5:6:7:8:9")",
        R"("1:2:3:4:5:6:7::8")", R"("g::")"}},
      {R"({"format": "uri"})",
       {R"("https://example.org")", R"("http://localhost:8080/a/b?x=1&y=2#z")"},
       {R"("example.org")", R"("https://")", R"("https://a b")", R"("ftp:")"}},
      {R"({"type": "number"})",
       {"0", "-1", "1.5", "2e10", "-0.5E-3", "9999999999999999"},
       {"1.", ".5", "01", "1e", "--1", "99999999999999999", "1e999"}},
      {R"({"type": "integer"})", {"0", "-12", "42"}, {"1.0", "-", "00", "-0"}},
      {R"({"type": "integer", "minimum": 3, "maximum": 128})",
       {"3", "9", "10", "99", "100", "128"},
       {"2", "0", "-3", "129", "1280", "03", "30.5"}},
      {R"({"type": "integer", "minimum": -15, "exclusiveMaximum": 5})",
       {"-15", "-9", "-1", "0", "4"},
       {"-16", "5", "-0", "15"}},
      {R"({"type": "integer", "minimum": 0})", {"0", "7", "123456"}, {"-1"}},
      {R"({"type": "integer", "maximum": -100})", {"-100", "-101", "-99999"}, {"-99", "100", "0"}},
      {R"({"type": "integer", "exclusiveMinimum": 1.5, "maximum": 2.5})", {"2"}, {"1", "3"}},
      {R"({"type": "number", "minimum": 0, "maximum": 1})",
       {"0", "0.0", "0.75", "1"},
       {"-0.1", "1.1", "2", "-0", "1.5"}},
      {R"({"type": "number", "exclusiveMinimum": 0})",
       {"0.001", "1", "17.5"},
       {"0", "0.0", "-1", "0.000"}},
      {R"({"type": "number", "minimum": -2, "exclusiveMaximum": 3})",
       {"-2", "-1.99", "-0.5", "0", "2.999"},
       {"-2.1", "3", "-0.0"}},
      {R"({"enum": ["a", 1, null, {"b": [true]}, "\"q\""]})",
       {"\"a\"", "1", "null", "{\"b\":[true]}", R"("\"q\"")"},
       {"a", "\"1\"", "true", "{}"}},
      {R"({"enum": ["a", 1, 2.5], "type": "number"})", {"1", "2.5"}, {"\"a\""}},
      {R"({"const": "x"})", {"\"x\""}, {"\"y\""}},
  };
  for (const Texts& row : rows) check(row);
}

TEST_CASE("schemas of lists and objects accept what is valid") {
  const Texts rows[] = {
      {R"({"type": "array"})", {"[]", "[1, \"a\", []]", "[\n1\n]"}, {"[", "[,1]", "[1 2]"}},
      {R"({"items": {"type": "integer"}})", {"[]", "[1]", "[1,2, 3]"}, {"[\"a\"]"}},
      {R"({"items": {"type": "integer"}, "minItems": 2, "maxItems": 3})",
       {"[1,2]", "[1,2,3]"},
       {"[]", "[1]", "[1,2,3,4]"}},
      {R"({"type": "array", "maxItems": 0})", {"[]"}, {"[1]", "[ ]"}},
      {R"({"prefixItems": [{"type": "integer"}, {"type": "string"}]})",
       {"[]", "[1]", "[1, \"a\"]"},
       {"[\"a\"]", "[1,2]", "[1,\"a\",3]"}},
      {R"({"prefixItems": [{"const": 1}, {"const": 2}], "items": {"const": 3}, "minItems": 2,
           "maxItems": 4})",
       {"[1,2]", "[1,2,3,3]"},
       {"[1]", "[1,2,4]", "[1,2,3,3,3]"}},
      {R"({"prefixItems": [{"const": 1}, {"const": 2}], "items": false, "minItems": 1})",
       {"[1]", "[1,2]"},
       {"[]", "[1,2,3]"}},
      {R"({"type": "object"})", {"{}", "{\"a\":1}", "{ \"\": {}, \"b\": [] }"}, {"{,}", "{\"a\"}"}},
      {R"({"properties": {"b": {"type": "integer"}, "a": {"type": "string"}}, "required": ["b"]})",
       {"{\"b\":1}", "{\"b\": 1, \"a\": \"x\"}", "{\n  \"b\": 1\n}"},
       {"{}", "{\"a\":\"x\"}", "{\"a\":\"x\",\"b\":1}", "{\"b\":1,\"c\":2}", "{\"b\":1,}"}},
      {R"({"properties": {"a": {"const": 1}, "b": {"const": 2}, "c": {"const": 3}}})",
       {"{}", "{\"a\":1}", "{\"c\":3}", "{\"a\":1,\"c\":3}", "{\"b\":2,\"c\":3}"},
       {"{\"c\":3,\"a\":1}", "{,\"a\":1}", "{\"a\":1\"c\":3}"}},
      {R"({"properties": {"id": {"const": 1}, "if": {"const": 2}}, "required": ["id"],
           "additionalProperties": {"type": "boolean"}})",
       {"{\"id\":1}", "{\"id\":1,\"if\":2,\"i\":true}", "{\"id\":1,\"idx\":false,\"\":true}"},
       {"{\"id\":1,\"if\":true}", "{\"id\":1,\"x\":3}", "{\"x\":true}", "{\"id\":1,\"id\":true}"}},
      {R"({"required": ["k"]})", {"{\"k\":[1]}"}, {"{}"}},
      {R"({"additionalProperties": {"type": "integer"}})",
       {"{}", "{\"x\":1,\"y\":2}"},
       {"{\"x\":\"\"}"}},
      {R"({"properties": {"a\"\n": {"const": 1}}, "additionalProperties": false})",
       {R"({"a\"\n":1})", "{}"},
       {"{\"b\":1}"}},
  };
  for (const Texts& row : rows) check(row);
}

TEST_CASE("schemas combine and refer to one another") {
  const Texts rows[] = {
      {R"({"anyOf": [{"type": "integer"}, {"type": "null"}]})", {"1", "null"}, {"\"\""}},
      {R"({"oneOf": [{"const": 1}, {"const": 2}], "title": "t"})", {"1", "2"}, {"3"}},
      {R"({"type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}},
           "anyOf": [{"properties": {"b": {"const": 1}}, "required": ["b"]},
                     {"properties": {"c": {"const": 2}}, "required": ["c"]}]})",
       {"{\"a\":1,\"b\":1}", "{\"a\":1,\"c\":2}"},
       {"{\"a\":1}", "{\"b\":1}"}},
      {R"({"allOf": [{"properties": {"a": {"type": "integer"}}, "required": ["a"]},
                     {"properties": {"b": {"type": "null"}, "a": {"minimum": 5}}}]})",
       {"{\"a\":5}", "{\"a\":12,\"b\":null}"},
       {"{\"a\":4}", "{\"b\":null}"}},
      {R"({"allOf": [{"type": ["integer", "string"]}, {"type": "number", "maximum": 9}]})",
       {"9"},
       {"10", "\"a\""}},
      {R"({"$defs": {"node": {"type": "object", "properties": {"v": {"type": "integer"},
           "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}},
           "required": ["v", "next"]}}, "$ref": "#/$defs/node"})",
       {"{\"v\":1,\"next\":null}", "{\"v\":1,\"next\":{\"v\":2,\"next\":null}}"},
       {"{\"v\":1}", "{\"v\":1,\"next\":{\"v\":2}}"}},
      {R"({"type": "array", "items": {"$ref": "#"}})", {"[]", "[[],[[]]]"}, {"[1]"}},
      {R"({"properties": {"properties": {"properties": {"z": {"const": 1}, "b": {"const": 2}}},
           "enum": {"enum": [{"properties": {"q": [1, "]"]}}]}, "a": {"$ref": "#/properties/enum"}}})",
       {R"({"properties":{"z":1,"b":2},"enum":{"properties":{"q":[1,"]"]}}})",
        R"({"a":{"properties":{"q":[1,"]"]}}})"},
       {R"({"properties":{"b":2,"z":1}})"}},
      {R"({"definitions": {"a/b~c": {"const": 7}}, "$ref": "#/definitions/a~1b~0c"})",
       {"7"},
       {"8"}},
      {R"({"$defs": {"s": {"type": "string"}}, "properties": {"x": {"$ref": "#/$defs/s",
           "maxLength": 1}}})",
       {"{\"x\":\"a\"}"},
       {"{\"x\":\"ab\"}"}},
  };
  for (const Texts& row : rows) check(row);
}

TEST_CASE("schemas of multiples accept those within their bounds and no others") {
  struct Bounds {
    const char* schema;
    int least, most;
  };
  const Bounds rows[] = {{"", -9999, 9999},
                         {R"(, "minimum": -37, "maximum": 1234)", -37, 1234},
                         {R"(, "exclusiveMinimum": 99, "maximum": 7205)", 100, 7205},
                         {R"(, "maximum": -8)", -9999, -8}};
  for (const int divisor : {1, 2, 3, 7, 10, 12, 60, 97, 128, 251, 1000, 4000}) {
    for (const Bounds& bounds : rows) {
      const std::string schema =
          fmt::format(R"({{"type": "integer", "multipleOf": {}{}}})", divisor, bounds.schema);
      const Grammar grammar = Grammar::json_schema(schema);
      std::vector<int> wrong;
      for (int value = -9999; value <= 9999; ++value) {
        // All numbers would take minutes in a build with sanitizers.
        const bool multiple = divisor > 6 && value % divisor == 0;
        if (std::abs(value) > 300 && std::abs(value) < 9900 && value % 11 != 0 && !multiple &&
            std::abs(value - bounds.most) > 20)
          continue;
        const bool in = value % divisor == 0 && value >= bounds.least && value <= bounds.most;
        if (accepts(grammar, std::to_string(value)) != in) wrong.push_back(value);
      }
      INFO(schema << ": " << wrong.size() << " wrong, the first "
                  << (wrong.empty() ? 0 : wrong[0]));
      CHECK(wrong.empty());
    }
  }
  const Texts more[] = {
      {R"({"multipleOf": 7})",
       {"0", "-14", "6999999999999993"},
       {"-0", "07", "7.0", "7e1", "", "-"}},
      {R"({"type": "number", "multipleOf": 5.0, "minimum": 2.5})", {"5", "10"}, {"0", "7", "5.0"}},
      {R"({"type": ["integer", "null"], "multipleOf": 1000000})",
       {"null", "0", "3000000", "-12000000"},
       {"1000", "3000001"}}};
  for (const Texts& row : more) check(row);
}

TEST_CASE("schemas of multiples of fractions accept those within their bounds and no others") {
  struct Bounds {
    const char* schema;
    double least, most;
    bool above = false;
  };
  const Bounds rows[] = {{"", -1e9, 1e9},
                         {R"(, "minimum": -3, "maximum": 12)", -3, 12},
                         {R"(, "exclusiveMinimum": 0, "maximum": 5)", 0, 5, true}};
  struct Fraction {
    const char* text;
    int thousandths;
  };
  for (const Fraction& fraction : {Fraction{"0.01", 10},
                                   {"0.5", 500},
                                   {"0.25", 250},
                                   {"0.125", 125},
                                   {"0.02", 20},
                                   {"0.1", 100},
                                   {"1e-3", 1}}) {
    for (const Bounds& bounds : rows) {
      const std::string schema =
          fmt::format(R"({{"type": "number", "multipleOf": {}{}}})", fraction.text, bounds.schema);
      const Grammar grammar = Grammar::json_schema(schema);
      std::vector<std::string> wrong;
      for (int value = -20000; value <= 20000; value += value % 500 == 0 ? 1 : 3) {
        const int size = std::abs(value);
        std::string text =
            fmt::format("{}{}.{:03}", value < 0 ? "-" : "", size / 1000, size % 1000);
        const double number = value / 1000.0;
        // A bound itself is written without a decimal point.
        if (number == bounds.least || number == bounds.most) continue;
        const bool in = value % fraction.thousandths == 0 && number <= bounds.most &&
                        (bounds.above ? number > bounds.least : number >= bounds.least);
        // Each number is tried with as few digits as it needs, and with each zero that may follow.
        const size_t decimals =
            std::string(fraction.text) == "1e-3" ? 3 : std::string(fraction.text).size() - 2;
        for (size_t shown = 3; shown > 0; --shown) {
          if (accepts(grammar, text) != (in && shown <= decimals)) wrong.push_back(text);
          if (text.back() != '0') break;
          text.pop_back();
        }
      }
      INFO(schema << ": " << wrong.size() << " wrong, the first "
                  << (wrong.empty() ? "" : wrong[0]));
      CHECK(wrong.empty());
    }
  }
  const Texts more[] = {
      {R"({"multipleOf": 0.01})",
       {"0", "-14", "3.5", "3.50", "0.07", "-0.01", "6999999999999993.25"},
       {"-0", "-0.00", "07", "7.001", "7e1", "7.", ".5", ""}},
      {R"({"multipleOf": 0.25, "minimum": -3, "exclusiveMaximum": 12})",
       {"-3", "11.75", "11.50", "0"},
       {"-3.25", "12", "12.25", "11.7"}},
      {R"({"type": "integer", "multipleOf": 0.5})", {"0", "-3", "12"}, {"0.5", "1.0"}}};
  for (const Texts& row : more) check(row);
}

TEST_CASE("what a schema cannot mean here is refused by name") {
  const std::pair<std::string, std::string> rows[] = {
      {"{", "JSON schema"},
      {"1", "is no schema"},
      {R"({"type": "strin"})", "unknown type \"strin\""},
      {R"({"not": {}})", "keyword 'not'"},
      {R"({"properties": {"x": {"multipleOf": 0.3}}})",
       "at #/properties/x: multipleOf is 0.3, only whole numbers"},
      {R"({"multipleOf": 1.5})", "fractions of at most 8 digits that go into 1"},
      {R"({"multipleOf": 1e-9})", "only whole numbers"},
      {R"({"type": "number", "multipleOf": 0.01, "minimum": 0.5})", "whole bounds"},
      {R"({"multipleOf": 0})", "no number above 0"},
      {R"({"multipleOf": "2"})", "no number above 0"},
      {R"({"multipleOf": 997})", "multipleOf is 997, whose multiples take"},
      {R"({"multipleOf": 1e300})", "only whole numbers"},
      {R"({"type": "integer", "multipleOf": 10, "minimum": 1, "maximum": 9})", "matches no text"},
      {R"({"patternProperties": {}})", "'patternProperties'"},
      {R"({"uniqueItems": true})", "'uniqueItems'"},
      {R"({"if": {}, "then": {}})", "keyword 'if'"},
      {R"({"format": "iri"})", "format 'iri'"},
      {R"s({"pattern": "(?=a)"})s", "look-around"},
      {R"({"pattern": "a", "format": "date"})", "both a pattern and a format"},
      {R"({"pattern": "^a$", "minLength": 2})", "matches no text"},
      {R"s({"pattern": "((a{0,100}){0,100})", "maxLength": 100})s", "5000 characters"},
      {R"({"pattern": "((){0,100000}){0,100000}", "maxLength": 100000})", "5000 characters"},
      {R"({"type": "number", "minimum": 0.5})", "whole bounds"},
      {R"({"minimum": 3, "maximum": 2})", "minimum above"},
      {R"({"minItems": 3, "maxItems": 2})", "minItems is above maxItems"},
      {R"({"minLength": -1})", "minLength is no whole number"},
      {R"({"$ref": "#/$defs/x"})", "refers to '#/$defs/x'"},
      {R"({"$ref": "http://example.org/s"})", "not in the schema"},
      {R"({"$ref": "#"})", "matches no text"},
      {R"({"anyOf": [{"$ref": "#"}, {"const": 1}]})", "may begin with itself"},
      {R"({"properties": {"a": {"$ref": "#"}}, "required": ["a"]})", "matches no text"},
      {R"({"allOf": [{"$ref": "#"}]})", "made of itself"},
      {R"({"enum": []})", "matches no text"},
      {R"({"properties": [["a", {}]]})", "properties is no object"},
      {R"({"$ref": "#/default", "default": {"properties": [1]}})", "properties is no object"},
      {R"({"$ref": "#/enum/0", "enum": [{"properties": {"a": 1}}]})", ""},
      {R"({"enum": [1], "minimum": 0})", "together with 'minimum'"},
      {R"({"allOf": [{"const": 1}, {"const": 2}]})", "says 'const' twice"},
      {R"({"allOf": [{"properties": {"a": {}}, "additionalProperties": false},
                     {"properties": {"b": {}}}]})",
       "additionalProperties in a part of allOf"},
      {R"({"type": "string", "maxLength": 1000000000})", "repeats something 1000000000 times"},
      {R"({"items": {"items": {"items": {"maxLength": 90000}, "maxItems": 90000},
           "maxItems": 90000}})",
       "200000 states"},
      {R"({"a": 1, "a": 2})", "JSON schema"},
  };
  for (const auto& [schema, problem] : rows) {
    INFO(schema);
    CHECK_THAT(
        tests::model_error([&schema = schema] { Grammar::json_schema(schema); }).value_or(""),
        Catch::Matchers::ContainsSubstring(problem));
  }
  std::string deep = "1";
  for (int i = 0; i < 70; ++i) deep = R"({"items": )" + deep + "}";
  CHECK_THAT(tests::model_error([&] { Grammar::json_schema(deep); }).value_or(""),
             Catch::Matchers::ContainsSubstring("64 schemas"));
  // References double the schema's size with every step.
  std::string doubled = fmt::format(R"({{"$defs": {{"a0": {{"type": "object", "title": "{}"}})",
                                    std::string(1000, 'x'));
  for (int i = 1; i < 15; ++i)
    doubled += fmt::format(
        R"(, "a{0}": {{"allOf": [{{"$ref": "#/$defs/a{1}"}}, {{"$ref": "#/$defs/a{1}"}}]}})", i,
        i - 1);
  doubled += R"(}, "allOf": [{"$ref": "#/$defs/a14"}]})";
  CHECK_THAT(tests::model_error([&] { Grammar::json_schema(doubled); }).value_or(""),
             Catch::Matchers::ContainsSubstring("combines schemas of more than 8 MiB"));
}

TEST_CASE("a large enumeration is one tree") {
  std::string schema = R"({"enum": [)";
  for (int i = 0; i < 20000; ++i) schema += fmt::format("{}\"value {}\"", i ? "," : "", i);
  const Grammar grammar = Grammar::json_schema(schema + "]}");
  CHECK(accepts(grammar, "\"value 19999\""));
  CHECK_FALSE(accepts(grammar, "\"value 20000\""));
}
