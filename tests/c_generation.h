// Generators of the C interface beside those of C++, and comparisons of what both give.
#pragma once

#include <string>
#include <vector>

#include "capi/handles.h"
#include "mulciber/c/completion.h"
#include "mulciber/text_generator.h"
#include "tests/c_session.h"
#include "tests/catch.h"
#include "tests/device.h"

namespace mulciber::tests {

/// A result of a call in C.
struct CResult {
  MulciberResult* handle = nullptr;
  CResult() = default;
  CResult(const CResult&) = delete;
  ~CResult() { mulciber_destroy_result(handle); }
};

/// A context, and an open model on the device that tests share: one that is lent through C would
/// compile all pipelines anew.
struct SharedSession {
  Context context;
  MulciberContext* c = context.handle;
  MulciberDevice device{shared_handle()};
  MulciberModel* model = nullptr;

  explicit SharedSession(const std::string& path) {
    REQUIRE(mulciber_open_model(c, path.c_str(), &model) == MULCIBER_OK);
  }
  SharedSession(const SharedSession&) = delete;
  ~SharedSession() { mulciber_destroy_model(model); }
  /// The message of a call that must have failed so.
  std::string failed(MulciberStatus found, MulciberStatus expected) const {
    CHECK(found == expected);
    return found == MULCIBER_OK ? "" : context.message();
  }
  std::string refused(MulciberStatus status) const {
    return failed(status, MULCIBER_ERROR_SETTING);
  }
};

/// A generator in C, and one in C++ that is loaded alike.
struct TwinGenerators : SharedSession {
  TextGenerator same;
  MulciberGenerator* generator = nullptr;

  TwinGenerators(const std::string& path, const MulciberLoadInfo& load,
                 const GeneratorOptions& options)
      : SharedSession(path), same(shared_handle(), path, options) {
    REQUIRE(mulciber_load_generator(c, &device, model, &load, &generator) == MULCIBER_OK);
  }
  ~TwinGenerators() { mulciber_destroy_generator(generator); }
};

inline MulciberLoadInfo load_with_context(uint32_t context, uint32_t sequences = 1) {
  MulciberLoadInfo load = {sizeof(load)};
  load.context = context;
  load.sequences = sequences;
  return load;
}

/// A completion of so many tokens, whatever they are.
inline MulciberGenerateInfo short_info(uint32_t tokens) {
  MulciberGenerateInfo info = {sizeof(info)};
  info.max_new_tokens = tokens;
  info.ignore_end = 1;
  return info;
}

template <typename T>
std::vector<T> list_of(const T* first, size_t count) {
  return count > 0 ? std::vector<T>(first, first + count) : std::vector<T>();
}

inline void check_same_attention(const MulciberTokenAttention& found,
                                 const TokenAttention& expected) {
  REQUIRE(found.size == sizeof(found));
  CHECK(found.layers == expected.layers);
  CHECK(found.heads == expected.heads);
  REQUIRE(found.length == expected.length);
  CHECK(list_of(found.weights, expected.weights.size()) == expected.weights);
  CHECK(list_of(found.windows, expected.windows.size()) == expected.windows);
  for (uint32_t i = 0; i < found.length; ++i) CHECK(found.tokens[i] == expected.tokens[i]);
}

/// Checks that a completion in C has what that in C++ has, bit for bit.
template <typename Generator>
void check_same_completion(const MulciberCompletion* shown, const Generation& expected,
                           const Generator& by) {
  REQUIRE(shown);
  const MulciberCompletion& found = *shown;
  REQUIRE(found.size == sizeof(found));
  CHECK(static_cast<int>(found.end) == static_cast<int>(expected.end));
  CHECK(found.text == expected.text);
  REQUIRE(list_of(found.ids, found.id_count) == expected.ids);
  for (uint32_t i = 0; i < found.id_count; ++i)
    CHECK(found.tokens[i] == by.token_text(expected.ids[i]));
  CHECK(list_of(found.prompt_ids, found.prompt_count) == expected.prompt_ids);
  CHECK(found.left_out == expected.left_out);
  CHECK(found.reused_tokens == expected.reused_tokens);
  CHECK(found.draft_tokens == expected.draft_tokens);
  CHECK(found.accepted_tokens == expected.accepted_tokens);
  CHECK((found.log_probabilities != nullptr) == !expected.log_probabilities.empty());
  for (size_t i = 0; i < expected.log_probabilities.size(); ++i) {
    const TokenProbabilities& token = expected.log_probabilities[i];
    CHECK(found.log_probabilities[i] == token.chosen);
    REQUIRE(found.likeliest == token.likeliest.size());
    for (size_t rank = 0; rank < token.likeliest.size(); ++rank) {
      const size_t at = i * found.likeliest + rank;
      CHECK(found.likeliest_ids[at] == token.likeliest[rank].id);
      CHECK(found.likeliest_log_probabilities[at] == token.likeliest[rank].log_probability);
    }
  }
  REQUIRE((found.attention != nullptr) == expected.attention.has_value());
  if (found.attention) check_same_attention(*found.attention, *expected.attention);
}

}  // namespace mulciber::tests
