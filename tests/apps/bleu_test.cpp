// BLEU against values of sacreBLEU 2 (corpus_bleu, lowercase=True, tokenize="13a").
#include "apps/heads/bleu.h"
#include "mulciber/error.h"
#include "tests/catch.h"

using mulciber::apps::corpus_bleu;
using mulciber::apps::tokenize_13a;
using Texts = std::vector<std::string>;

TEST_CASE("BLEU equals sacreBLEU's") {
  const auto equals = [](double expected, const Texts& translations, const Texts& references) {
    INFO(translations[0]);
    CHECK(std::abs(corpus_bleu(translations, references) - expected) < 1e-9);
  };
  equals(48.892302243490086, {"Ein Hund rennt durch den Schnee."},
         {"Ein Hund läuft durch den Schnee."});
  equals(34.839064145998975, {"Zwei Männer, die 3,5 Meter hohe Leitern tragen.", "ÄRGER im Büro!"},
         {"Zwei Männer tragen 3,5 Meter hohe Leitern.", "ärger im Büro."});
  equals(43.487832811974066, {"a b c d e f", "x y"}, {"a b c d x f g", "x y z"});
  equals(0, {"one two three four"}, {"five six seven eight"});
  equals(0, {"one two"}, {"one two"});
  equals(88.35482188474234,
         {"Er kostet $1,000.50 (10-20%)... \"gut\" & schön; it's 5- Uhr <skipped> end-of-line",
          "1990-2000, u.s.a. don't."},
         {"Er kostet $1,000.50 (10-20%). \"gut\" &amp; schön; it's 5- Uhr end-of-line",
          "1990-2000, U.S.A. don't"});
  equals(31.926390069584293, {"the the the the", "a cat sat on a mat today"},
         {"the cat", "a cat sat on the mat"});
  CHECK(corpus_bleu({}, {}) == 0);
  CHECK_THROWS_AS(corpus_bleu(Texts{"a"}, Texts{}), mulciber::ShapeError);
}

TEST_CASE("Tokens are those of mteval-v13a") {
  CHECK(tokenize_13a("..., 1.5.,2 -a.") ==
        Texts{".", ".", ".", ",", "1.5", ".", ",", "2", "-a", "."});
  CHECK(tokenize_13a("Preis:3.-4,x&quot;y") ==
        Texts{"Preis", ":", "3", ".", "-4", ",", "x", "\"", "y"});
  CHECK(tokenize_13a("1990-2000, u.s.a. don't.") ==
        Texts{"1990", "-", "2000", ",", "u", ".", "s", ".", "a", ".", "don't", "."});
  CHECK(tokenize_13a(" \t ").empty());
}
