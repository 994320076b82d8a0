// Options and results of completions, for generators and batch generators alike.
#pragma once

#include <deque>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "mulciber/c/completion.h"
#include "mulciber/text_generator.h"

namespace mulciber::c {

/// A field of MulciberGenerateInfo, and whether the caller has set it.
struct GivenField {
  bool given;
  const char* name;
};
/// Throws SettingError that names the first field that is set. function: which has no use for it.
void refuse_fields(std::initializer_list<GivenField> fields, const char* function,
                   const char* remedy);

/// Options that all functions read in one way; each refuses those that it has no use for. adapters:
/// those of a request that selects none.
GenerateOptions generate_options(const MulciberGenerateInfo& info,
                                 const std::optional<std::vector<AdapterScale>>& adapters);

/// The adapters that a request selects: none, those of a list, or else those that the generator
/// has.
std::optional<std::vector<AdapterScale>> selected_adapters(
    MulciberBool none, uint32_t count, const MulciberAdapter* list,
    const std::optional<std::vector<AdapterScale>>& otherwise);

/// The text of a prompt that is no list of ids; empty where it is one.
std::string prompt_text(const char* prompt, const MulciberGenerateInfo& info);

std::vector<const char*> c_strings(const std::vector<std::string>& texts);

/// Attention maps with what MulciberTokenAttention points to.
class ShownAttention {
 public:
  explicit ShownAttention(TokenAttention found);
  ShownAttention(const ShownAttention&) = delete;
  const MulciberTokenAttention& view() const { return view_; }

 private:
  TokenAttention found_;
  std::vector<const char*> tokens_;
  MulciberTokenAttention view_ = {};
};

/// A completion with what MulciberCompletion points to.
class ShownCompletion {
 public:
  /// by: a TextGenerator or BatchGenerator.
  template <typename Generator>
  ShownCompletion(Generation found, const Generator& by) : found_(std::move(found)) {
    for (const uint32_t id : found_.ids) texts_.push_back(by.token_text(id));
    fill();
  }
  ShownCompletion(const ShownCompletion&) = delete;
  const MulciberCompletion& view() const { return view_; }

 private:
  void fill();

  Generation found_;
  std::vector<std::string> texts_;
  std::vector<const char*> tokens_;
  std::vector<float> log_probabilities_, likeliest_log_probabilities_;
  std::vector<uint32_t> likeliest_ids_;
  std::optional<ShownAttention> attention_;
  MulciberCompletion view_ = {};
};

/// Keeps completions for a call's result.
struct ShownCompletions {
  std::deque<ShownCompletion> each;
  std::vector<MulciberCompletion> list;
};

}  // namespace mulciber::c
