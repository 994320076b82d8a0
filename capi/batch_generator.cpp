// C functions for continuous batching.
#include "mulciber/c/batch_generator.h"

#include <exception>

#include "capi/completions.h"
#include "capi/generator_report.h"
#include "capi/handles.h"
#include "capi/prompts.h"
#include "capi/result.h"
#include "capi/structures.h"
#include "capi/text_scoring.h"
#include "mulciber/batch_generator.h"

struct MulciberBatchGenerator {
  mulciber::BatchGenerator generator;
  std::shared_ptr<const mulciber::OpenModel> files;
  std::shared_ptr<const void> described = {};  // storage of the last description
};

namespace mulciber::c {
namespace {

/// Makes the last calls of a request.
struct BatchCalls {
  MulciberBatchRequest request;
  std::function<void(std::string_view)> on_text;
  const BatchGenerator* by;

  void end(const Generation& found, std::string_view last) const {
    if (on_text && !last.empty()) on_text(last);
    if (!request.on_end) return;
    const ShownCompletion shown(found, *by);
    request.on_end(request.user, &shown.view());
  }
  /// Is called where the exception is handled.
  void fail() const {
    if (!request.on_error) return;
    MulciberContext told;
    const MulciberStatus status = guarded(&told, [] { throw; });
    request.on_error(request.user, status, told.message.c_str());
  }
};

BatchRequest batch_request(const BatchGenerator& by, const char* prompt,
                           const MulciberGenerateInfo& info, const MulciberBatchRequest& request) {
  GenerateOptions options = generate_options(info, {});
  BatchRequest result;
  result.prompt = prompt_text(prompt, info);
  result.add_special = options.add_special;
  result.parse_special = options.parse_special;
  result.prompt_ids = std::move(options.prompt_ids);
  result.images = std::move(options.images);
  result.sampling = options.sampling;
  result.stream = options.stream;
  result.max_new_tokens = options.max_new_tokens;
  result.stop = std::move(options.stop);
  result.ignore_end = options.ignore_end;
  result.reuse_completions = request.reuse_completions != 0;
  result.logit_bias = std::move(options.logit_bias);
  result.grammar = std::move(options.grammar);
  result.adapters = std::move(options.adapters);
  result.prompt_lookup = options.prompt_lookup;
  result.draft = request.no_draft == 0;
  result.draft_tokens = options.draft_tokens;
  result.log_probabilities = options.log_probabilities;
  result.on_prompt = std::move(options.on_prompt);
  const BatchCalls calls = {request, options.on_text, &by};
  if (options.on_token || options.on_text)
    result.on_token = [on_token = std::move(options.on_token),
                       on_text = std::move(options.on_text)](const BatchToken& token) {
      if (on_token) on_token(token);
      if (on_text && !token.piece.empty()) on_text(token.piece);
    };
  result.on_end = [calls](const Generation& found, std::string_view last) {
    calls.end(found, last);
  };
  result.on_error = [calls](const std::exception&) { calls.fail(); };
  return result;
}

}  // namespace
}  // namespace mulciber::c

using namespace mulciber;
using namespace mulciber::c;

MulciberStatus mulciber_load_batch_generator(MulciberContext* context, MulciberDevice* device,
                                             const MulciberModel* model,
                                             const MulciberLoadInfo* load,
                                             const MulciberBatchInfo* from,
                                             MulciberBatchGenerator** batch) {
  return guarded(context, [&] {
    given_to(batch, "batch") = nullptr;
    const auto info = optional_of_any_version(from, "MulciberBatchInfo");
    BatchGeneratorOptions options;
    options.generator = generator_options(load_info(load));
    options.cache_tokens = info.cache_tokens;
    options.prompt_tokens = info.prompt_tokens;
    if (info.draft) options.draft = info.draft->model;
    options.draft_rows = info.draft_rows;
    options.steps_per_submission = info.steps_per_submission;
    const std::shared_ptr<const OpenModel>& files = given_to(model, "model").model;
    *batch = new MulciberBatchGenerator{
        BatchGenerator(given_to(device, "device").device, files, options), files};
  });
}

void mulciber_destroy_batch_generator(MulciberBatchGenerator* batch) { delete batch; }

MulciberStatus mulciber_submit_generation(MulciberContext* context, MulciberBatchGenerator* batch,
                                          const char* prompt, const MulciberGenerateInfo* from,
                                          const MulciberBatchRequest* request, uint64_t* number) {
  return guarded(context, [&] {
    if (number) *number = 0;
    const auto info = optional_of_any_version(from, "MulciberGenerateInfo");
    refuse_fields({{info.part_count > 0, "parts"},
                   {info.outputs != nullptr, "outputs"},
                   {info.attention != 0, "attention"},
                   {info.shift != 0, "shift"},
                   {info.keep > 0, "keep"},
                   {info.draft != nullptr, "draft"},
                   {info.steps_per_submission > 0, "steps_per_submission"},
                   {info.cancel != nullptr, "cancel"}},
                  "mulciber_submit_generation", "leave it out");
    BatchGenerator& by = given_to(batch, "batch").generator;
    const uint64_t found = by.submit(
        batch_request(by, prompt, info, optional_of_any_version(request, "MulciberBatchRequest")));
    if (number) *number = found;
  });
}

MulciberStatus mulciber_cancel_generation(MulciberContext* context, MulciberBatchGenerator* batch,
                                          uint64_t number) {
  return guarded(context, [&] { given_to(batch, "batch").generator.cancel(number); });
}

MulciberStatus mulciber_step_generations(MulciberContext* context, MulciberBatchGenerator* batch,
                                         MulciberBool* worked) {
  return guarded(context, [&] {
    given_to(worked, "worked") = 0;
    *worked = given_to(batch, "batch").generator.step();
  });
}

MulciberStatus mulciber_batch_statistics(MulciberContext* context,
                                         const MulciberBatchGenerator* batch,
                                         MulciberBatchGeneratorStatistics* statistics) {
  return guarded(context, [&] {
    give(statistics, "MulciberBatchGeneratorStatistics", [&](MulciberBatchGeneratorStatistics& to) {
      const BatchGenerator& of = given_to(batch, "batch").generator;
      const BatchGeneratorStatistics& from = of.statistics();
      to.running = static_cast<uint32_t>(of.running());
      to.waiting = static_cast<uint32_t>(of.waiting());
      to.requests = from.requests;
      to.ended = from.ended;
      to.cancelled = from.cancelled;
      to.prompt_tokens = from.prompt_tokens;
      to.reused_tokens = from.reused_tokens;
      to.new_tokens = from.new_tokens;
      to.images = from.images;
      to.preemptions = from.preemptions;
      to.pages = from.pages;
      to.page_tokens = from.page_tokens;
      to.pages_used = from.pages_used;
      to.steps = from.steps;
      to.row_steps = from.row_steps;
      to.draft_tokens = from.draft_tokens;
      to.accepted_tokens = from.accepted_tokens;
      to.load_seconds = from.load_seconds;
      to.image_seconds = from.image_seconds;
      to.prefill_seconds = from.prefill_seconds;
      to.decode_seconds = from.decode_seconds;
      to.build_seconds = from.build_seconds;
      to.weight_bytes = from.weight_bytes;
      to.predicted_device_bytes = from.predicted_device_bytes;
      to.peak_device_bytes = from.peak_device_bytes;
    });
  });
}

MulciberStatus mulciber_batch_describe(MulciberContext* context, MulciberBatchGenerator* batch,
                                       MulciberGeneratorReport* report) {
  return guarded(context, [&] {
    give(report, "MulciberGeneratorReport", [&](MulciberGeneratorReport& to) {
      MulciberBatchGenerator& of = given_to(batch, "batch");
      of.described = fill_report(of.generator.describe(), to);
    });
  });
}

MulciberStatus mulciber_batch_trim(MulciberContext* context, MulciberBatchGenerator* batch,
                                   uint64_t* freed) {
  return guarded(context, [&] {
    if (freed) *freed = 0;
    const uint64_t bytes = given_to(batch, "batch").generator.trim();
    if (freed) *freed = bytes;
  });
}

MulciberStatus mulciber_batch_chat_prompt(MulciberContext* context,
                                          const MulciberBatchGenerator* batch, uint32_t count,
                                          const MulciberChatMessage* messages,
                                          MulciberResult** result, const char** prompt) {
  return guarded(context, [&] {
    clear_text(result, prompt, "prompt");
    const BatchGenerator& by = given_to(batch, "batch").generator;
    give_text(result, prompt, by.chat_prompt(chat_messages(count, messages)));
  });
}

MulciberStatus mulciber_batch_tokenize(MulciberContext* context,
                                       const MulciberBatchGenerator* batch, const char* prompt,
                                       const MulciberGenerateInfo* from, MulciberResult** result,
                                       uint32_t* count, const uint32_t** ids) {
  return guarded(context, [&] {
    clear_ids(result, count, ids);
    const MulciberBatchGenerator& by = given_to(batch, "batch");
    given_to(prompt, "prompt");
    const auto info = optional_of_any_version(from, "MulciberGenerateInfo");
    refuse_fields({{info.prompt_id_count > 0, "prompt_ids"}}, "mulciber_batch_tokenize",
                  "leave it out");
    const GenerateOptions options = generate_options(info, {});
    give_ids(result, count, ids,
             by.generator.tokens(expand_prompt(*by.files, prompt, options.images),
                                 options.add_special, options.parse_special));
  });
}

MulciberStatus mulciber_batch_detokenize(MulciberContext* context,
                                         const MulciberBatchGenerator* batch, uint32_t count,
                                         const uint32_t* ids, MulciberResult** result,
                                         const char** text) {
  return guarded(context, [&] {
    clear_text(result, text, "text");
    const BatchGenerator& by = given_to(batch, "batch").generator;
    give_text(result, text, by.text(given_ids(count, ids)));
  });
}

MulciberStatus mulciber_batch_token_text(MulciberContext* context,
                                         const MulciberBatchGenerator* batch, uint32_t id,
                                         MulciberResult** result, const char** text) {
  return guarded(context, [&] {
    clear_text(result, text, "text");
    give_text(result, text, given_to(batch, "batch").generator.token_text(id));
  });
}

MulciberStatus mulciber_batch_score(MulciberContext* context, MulciberBatchGenerator* batch,
                                    uint32_t count, const MulciberScoreInput* inputs,
                                    const MulciberScoreInfo* info, MulciberResult** result,
                                    const MulciberTextScore** scores,
                                    MulciberScoreStatistics* statistics) {
  return guarded(context, [&] {
    given_to(result, "result") = nullptr;
    given_to(scores, "scores") = nullptr;
    score_texts(given_to(batch, "batch").generator, {}, count, inputs,
                optional_of_any_version(info, "MulciberScoreInfo"), result, scores, statistics);
  });
}

MulciberStatus mulciber_batch_attention(MulciberContext* context, MulciberBatchGenerator* batch,
                                        uint32_t count, const uint32_t* ids,
                                        const MulciberBatchAttentionInfo* from,
                                        MulciberResult** result,
                                        const MulciberTokenAttention** attention) {
  return guarded(context, [&] {
    given_to(result, "result") = nullptr;
    given_to(attention, "attention") = nullptr;
    BatchGenerator& by = given_to(batch, "batch").generator;
    const auto info = optional_of_any_version(from, "MulciberBatchAttentionInfo");
    BatchAttentionOptions options = {
        .layer = {},
        .mean = info.mean != 0,
        .adapters = selected_adapters(info.no_adapters, info.adapter_count, info.adapters, {}),
        .cancel = cancel_flag(info.cancel),
        .between = {}};
    if (info.one_layer) options.layer = info.layer;
    if (info.between) options.between = [call = info.between, user = info.user] { call(user); };
    std::optional<TokenAttention> found = by.attention(given_ids(count, ids), options);
    if (!found) return;
    auto shown = std::make_shared<ShownAttention>(std::move(*found));
    const MulciberTokenAttention* const view = &shown->view();
    *result = new MulciberResult{std::move(shown)};
    *attention = view;
  });
}
