// C functions for completions that are computed at once.
#include "mulciber/c/completion.h"

#include <span>

#include <fmt/format.h>

#include "capi/completions.h"
#include "capi/handles.h"
#include "capi/prompts.h"
#include "capi/result.h"
#include "capi/structures.h"

namespace mulciber::c {
namespace {

static_assert(MULCIBER_COMPLETION_CANCELLED == static_cast<int>(GenerateEnd::kCancelled));

Sampling sampling_of(const MulciberGenerateInfo& info) {
  const Sampling usual;
  return {.temperature = info.temperature,
          .top_k = info.top_k,
          .top_p = info.top_p != 0 ? info.top_p : 1,
          .min_p = info.min_p,
          .typical_p = info.typical_p != 0 ? info.typical_p : 1,
          .repetition_penalty = info.repetition_penalty != 0 ? info.repetition_penalty : 1,
          .presence_penalty = info.presence_penalty,
          .frequency_penalty = info.frequency_penalty,
          .penalty_window = info.penalty_window > 0 ? info.penalty_window : usual.penalty_window,
          .seed = info.seed};
}

/// Calls a C function with each token.
std::function<void(const BatchToken&)> token_call(const MulciberGenerateInfo& info) {
  if (!info.on_token) return {};
  return [call = info.on_token, user = info.user](const BatchToken& token) {
    std::vector<uint32_t> ids;
    std::vector<float> log_probabilities;
    for (const TokenProbability& one : token.likeliest) {
      ids.push_back(one.id);
      log_probabilities.push_back(one.log_probability);
    }
    const MulciberToken shown = {.size = sizeof(shown),
                                 .id = token.id,
                                 .piece = token.piece.data(),
                                 .piece_bytes = token.piece.size(),
                                 .log_probability = token.log_probability.value_or(0),
                                 .likeliest_count = static_cast<uint32_t>(ids.size()),
                                 .likeliest_ids = ids.data(),
                                 .likeliest_log_probabilities = log_probabilities.data()};
    call(user, &shown);
  };
}

/// Refuses what belongs to tasks.
void refuse_task_fields(const MulciberGenerateInfo& info, const char* function) {
  refuse_fields({{info.part_count > 0, "parts"}, {info.outputs != nullptr, "outputs"}}, function,
                "begin a task, or leave it out");
}

void refuse_single_fields(const MulciberGenerateInfo& info, const char* function) {
  refuse_task_fields(info, function);
  refuse_fields({{info.image_count > 0, "images"},
                 {info.shift != 0, "shift"},
                 {info.keep > 0, "keep"},
                 {info.prompt_lookup > 0, "prompt_lookup"},
                 {info.draft != nullptr, "draft"},
                 {info.draft_tokens > 0, "draft_tokens"},
                 {info.on_text != nullptr, "on_text"},
                 {info.on_prompt != nullptr, "on_prompt"},
                 {info.on_token != nullptr, "on_token"}},
                function, "call mulciber_generate for each prompt, or leave it out");
  refuse_fields({{info.prompt_id_count > 0, "prompt_ids"}}, function,
                "give ids to mulciber_generate_all_ids");
}

/// Continues prompts by `generate`, and gives the completions.
template <typename Generate>
void give_completions(const MulciberGenerator& by, MulciberResult** result,
                      const MulciberCompletion** completions, const Generate& generate) {
  auto shown = std::make_shared<ShownCompletions>();
  for (Generation& found : generate())
    shown->list.push_back(shown->each.emplace_back(std::move(found), by.generator).view());
  const MulciberCompletion* const list = shown->list.data();
  *result = new MulciberResult{std::move(shown)};
  *completions = list;
}

}  // namespace

void refuse_fields(std::initializer_list<GivenField> fields, const char* function,
                   const char* remedy) {
  for (const GivenField& field : fields)
    if (field.given)
      throw SettingError(fmt::format("MulciberGenerateInfo::{}", field.name),
                         fmt::format("is given to {}", function), remedy);
}

std::vector<const char*> c_strings(const std::vector<std::string>& texts) {
  std::vector<const char*> result;
  for (const std::string& text : texts) result.push_back(text.c_str());
  return result;
}

std::optional<std::vector<AdapterScale>> selected_adapters(
    MulciberBool none, uint32_t count, const MulciberAdapter* list,
    const std::optional<std::vector<AdapterScale>>& otherwise) {
  if (none && count > 0)
    throw SettingError("adapters", "are given beside no_adapters", "leave one of them out");
  if (!none && count == 0) return otherwise;
  std::vector<AdapterScale> selected;
  for_each_adapter(count, list, [&](const MulciberAdapter& adapter) {
    selected.push_back({&given_to(adapter.name, "name"), adapter.scale});
  });
  return selected;
}

std::string prompt_text(const char* prompt, const MulciberGenerateInfo& info) {
  if (info.prompt_id_count == 0) return &given_to(prompt, "prompt");
  if (prompt)
    throw SettingError("prompt", "is given beside prompt_ids", "give NULL for one of them");
  return {};
}

GenerateOptions generate_options(const MulciberGenerateInfo& info,
                                 const std::optional<std::vector<AdapterScale>>& adapters) {
  GenerateOptions options;
  if (info.sample) options.sampling = sampling_of(info);
  options.stream = info.stream;
  options.max_new_tokens = info.max_new_tokens;
  for (uint32_t i = 0; i < info.stop_count; ++i)
    options.stop.emplace_back(&given_to(element_of(info.stops, i, "stops"), "stops"));
  options.add_special = info.no_special == 0;
  options.parse_special = info.literal_special == 0;
  for (uint32_t i = 0; i < info.prompt_id_count; ++i)
    options.prompt_ids.push_back(element_of(info.prompt_ids, i, "prompt_ids"));
  for (uint32_t i = 0; i < info.image_count; ++i)
    options.images.push_back(given_to(element_of(info.images, i, "images"), "images").image);
  options.ignore_end = info.ignore_end != 0;
  for (uint32_t i = 0; i < info.bias_count; ++i) {
    const uint32_t id = element_of(info.bias_ids, i, "bias_ids");
    options.logit_bias.emplace_back(id, element_of(info.biases, i, "biases"));
  }
  if (info.log_probabilities || info.likeliest > 0) options.log_probabilities = info.likeliest;
  if (info.grammar) options.grammar = info.grammar->grammar;
  options.adapters =
      selected_adapters(info.no_adapters, info.adapter_count, info.adapters, adapters);
  options.attention = info.attention != 0;
  options.shift = info.shift != 0;
  options.keep = info.keep;
  options.steps_per_submission = info.steps_per_submission;
  options.prompt_lookup = info.prompt_lookup;
  if (info.draft) options.draft = &info.draft->generator;
  options.draft_tokens = info.draft_tokens;
  options.cancel = cancel_flag(info.cancel);
  if (info.on_prompt)
    options.on_prompt = [call = info.on_prompt, user = info.user](size_t done, size_t total) {
      call(user, static_cast<uint32_t>(done), static_cast<uint32_t>(total));
    };
  options.on_token = token_call(info);
  if (info.on_text)
    options.on_text = [call = info.on_text, user = info.user](std::string_view piece) {
      call(user, piece.data(), piece.size());
    };
  return options;
}

ShownAttention::ShownAttention(TokenAttention found)
    : found_(std::move(found)), tokens_(c_strings(found_.tokens)) {
  view_ = {.size = sizeof(view_),
           .layers = found_.layers,
           .heads = found_.heads,
           .length = found_.length,
           .weights = found_.weights.data(),
           .windows = found_.windows.data(),
           .tokens = tokens_.data()};
}

void ShownCompletion::fill() {
  tokens_ = c_strings(texts_);
  const bool known = !found_.log_probabilities.empty();
  for (const TokenProbabilities& token : found_.log_probabilities) {
    log_probabilities_.push_back(token.chosen);
    for (const TokenProbability& one : token.likeliest) {
      likeliest_ids_.push_back(one.id);
      likeliest_log_probabilities_.push_back(one.log_probability);
    }
  }
  if (found_.attention) attention_.emplace(std::move(*found_.attention));
  const size_t likeliest = known ? found_.log_probabilities.front().likeliest.size() : 0;
  view_ = {.size = sizeof(view_),
           .end = static_cast<MulciberCompletionEnd>(found_.end),
           .text = found_.text.c_str(),
           .id_count = static_cast<uint32_t>(found_.ids.size()),
           .prompt_count = static_cast<uint32_t>(found_.prompt_ids.size()),
           .ids = found_.ids.data(),
           .tokens = tokens_.data(),
           .prompt_ids = found_.prompt_ids.data(),
           .log_probabilities = known ? log_probabilities_.data() : nullptr,
           .likeliest = static_cast<uint32_t>(likeliest),
           .likeliest_ids = known ? likeliest_ids_.data() : nullptr,
           .likeliest_log_probabilities = known ? likeliest_log_probabilities_.data() : nullptr,
           .attention = attention_ ? &attention_->view() : nullptr,
           .left_out = found_.left_out,
           .reused_tokens = found_.reused_tokens,
           .draft_tokens = found_.draft_tokens,
           .accepted_tokens = found_.accepted_tokens};
}

}  // namespace mulciber::c

using namespace mulciber;
using namespace mulciber::c;

MulciberStatus mulciber_generate(MulciberContext* context, MulciberGenerator* generator,
                                 const char* prompt, const MulciberGenerateInfo* from,
                                 MulciberResult** result, const MulciberCompletion** completion) {
  return guarded(context, [&] {
    given_to(result, "result") = nullptr;
    given_to(completion, "completion") = nullptr;
    const auto info = optional_of_any_version(from, "MulciberGenerateInfo");
    refuse_task_fields(info, "mulciber_generate");
    MulciberGenerator& by = given_to(generator, "generator");
    auto shown = std::make_shared<ShownCompletion>(
        by.generator.generate(prompt_text(prompt, info), generate_options(info, by.adapters)),
        by.generator);
    const MulciberCompletion* const view = &shown->view();
    *result = new MulciberResult{std::move(shown)};
    *completion = view;
  });
}

MulciberStatus mulciber_generate_all(MulciberContext* context, MulciberGenerator* generator,
                                     uint32_t count, const char* const* prompts,
                                     const MulciberGenerateInfo* from, MulciberResult** result,
                                     const MulciberCompletion** completions) {
  return guarded(context, [&] {
    given_to(result, "result") = nullptr;
    given_to(completions, "completions") = nullptr;
    const auto info = optional_of_any_version(from, "MulciberGenerateInfo");
    refuse_single_fields(info, "mulciber_generate_all");
    MulciberGenerator& by = given_to(generator, "generator");
    std::vector<std::string> texts;
    for (uint32_t i = 0; i < count; ++i)
      texts.emplace_back(&given_to(element_of(prompts, i, "prompts"), "prompts"));
    give_completions(by, result, completions, [&] {
      return by.generator.generate_all(texts, generate_options(info, by.adapters));
    });
  });
}

MulciberStatus mulciber_generate_all_ids(MulciberContext* context, MulciberGenerator* generator,
                                         uint32_t count, const uint32_t* lengths,
                                         const uint32_t* ids, const MulciberGenerateInfo* from,
                                         MulciberResult** result,
                                         const MulciberCompletion** completions) {
  return guarded(context, [&] {
    given_to(result, "result") = nullptr;
    given_to(completions, "completions") = nullptr;
    const auto info = optional_of_any_version(from, "MulciberGenerateInfo");
    refuse_single_fields(info, "mulciber_generate_all_ids");
    MulciberGenerator& by = given_to(generator, "generator");
    std::vector<std::vector<uint32_t>> prompts;
    const uint32_t* at = ids;
    for (uint32_t i = 0; i < count; ++i) {
      const std::span<const uint32_t> given = given_ids(element_of(lengths, i, "lengths"), at);
      prompts.emplace_back(given.begin(), given.end());
      at += given.size();
    }
    give_completions(by, result, completions, [&] {
      return by.generator.generate_all(prompts, generate_options(info, by.adapters));
    });
  });
}

MulciberStatus mulciber_generator_statistics(MulciberContext* context,
                                             const MulciberGenerator* generator,
                                             MulciberGeneratorStatistics* statistics) {
  return guarded(context, [&] {
    give(statistics, "MulciberGeneratorStatistics", [&](MulciberGeneratorStatistics& to) {
      const GenerateStatistics& from = given_to(generator, "generator").generator.statistics();
      to.decode_steps = from.decode_steps;
      to.prompt_tokens = from.prompt_tokens;
      to.reused_tokens = from.reused_tokens;
      to.new_tokens = from.new_tokens;
      to.draft_tokens = from.draft_tokens;
      to.accepted_tokens = from.accepted_tokens;
      to.images = from.images;
      to.load_seconds = from.load_seconds;
      to.image_seconds = from.image_seconds;
      to.build_seconds = from.build_seconds;
      to.prefill_seconds = from.prefill_seconds;
      to.decode_seconds = from.decode_seconds;
      to.attention_seconds = from.attention_seconds;
      to.first_token_seconds = from.first_token_seconds;
      to.weight_bytes = from.weight_bytes;
      to.predicted_device_bytes = from.predicted_device_bytes;
      to.peak_device_bytes = from.peak_device_bytes;
      to.step_bytes = from.step_bytes;
    });
  });
}
