// Comparison of translations in C with those in C++, and a small translator in both.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "runtime/device.h"
#include "tests/c_session.h"
#include "tests/catch.h"

#include "mulciber/embedding.h"
#include "mulciber/mulciber_c.h"

namespace mulciber::tests {

/// A translator in C, and a twin in C++ on the same device.
struct TranslatorTwins : Session {
  MulciberTranslator* translator = nullptr;
  Translator twin;

  explicit TranslatorTwins(const std::string& path)
      : Session(path), twin(adopt_device(application.lent()), path) {
    REQUIRE(mulciber_load_translator(c, device, model, nullptr, &translator) == MULCIBER_OK);
  }
  ~TranslatorTwins() { mulciber_destroy_translator(translator); }
};

inline void check_tokens(uint32_t count, const uint32_t* ids, const char* const* tokens,
                         const std::vector<uint32_t>& expected_ids,
                         const std::vector<std::string>& expected_tokens) {
  CHECK(std::vector(ids, ids + count) == expected_ids);
  CHECK(std::vector<std::string>(tokens, tokens + count) == expected_tokens);
}

inline void check_translation(const MulciberTranslation& found, const Translation& expected) {
  CHECK(found.size == sizeof(found));
  CHECK((found.complete != 0) == expected.complete);
  CHECK(found.text == expected.text);
  CHECK(found.score == expected.score);
  check_tokens(found.id_count, found.ids, found.tokens, expected.ids, expected.tokens);
  check_tokens(found.source_count, found.source_ids, found.source_tokens, expected.source_ids,
               expected.source_tokens);
  REQUIRE(found.alternative_count == expected.alternatives.size());
  for (uint32_t i = 0; i < found.alternative_count; ++i) {
    const MulciberAlternative& one = found.alternatives[i];
    const Alternative& other = expected.alternatives[i];
    CHECK(one.size == sizeof(one));
    CHECK(one.text == other.text);
    CHECK(one.score == other.score);
    check_tokens(one.id_count, one.ids, one.tokens, other.ids, other.tokens);
  }
}

}  // namespace mulciber::tests
