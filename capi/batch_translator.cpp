// C functions for continuous batching of translations.
#include "mulciber/c/batch_translator.h"

#include "capi/handles.h"
#include "capi/shown_translations.h"
#include "capi/structures.h"
#include "capi/texts_and_ids.h"
#include "capi/translate_options.h"
#include "mulciber/batch_translator.h"

struct MulciberBatchTranslator {
  mulciber::BatchTranslator batch;
};

namespace mulciber::c {
namespace {

/// The request in C++. number: what its callbacks are told, known once the request is accepted.
TranslationRequest translation_request(const MulciberTranslationRequest& from,
                                       const std::shared_ptr<const uint64_t>& number) {
  const auto info = optional_of_any_version(from.info, "MulciberTranslateInfo");
  TranslationRequest request;
  request.options = search_options(info);
  if (info.source_ids) {
    require_no_text(from.text, "text");
    request.source_ids = listed_sequences(1, info.source_ids, "source_ids").front();
  } else {
    request.text = &given_to(from.text, "text");
  }
  if (from.on_end)
    request.on_end = [call = from.on_end, user = from.user, number](const Translation& ended) {
      const ShownTranslations shown({ended});
      call(user, *number, shown.list());
    };
  if (from.on_error)
    request.on_error = [call = from.on_error, user = from.user, number](const std::exception&) {
      MulciberContext told;
      const MulciberStatus status = guarded(&told, [] { throw; });  // it is being handled
      call(user, *number, status, told.message.c_str());
    };
  return request;
}

}  // namespace
}  // namespace mulciber::c

using namespace mulciber;
using namespace mulciber::c;

MulciberStatus mulciber_create_batch_translator(MulciberContext* context,
                                                MulciberTranslator* translator,
                                                const MulciberBatchTranslatorInfo* from,
                                                MulciberBatchTranslator** batch) {
  return guarded(context, [&] {
    given_to(batch, "batch") = nullptr;
    const auto info = optional_of_any_version(from, "MulciberBatchTranslatorInfo");
    BatchTranslatorOptions options;
    if (info.slots > 0) options.slots = info.slots;
    *batch = new MulciberBatchTranslator{
        BatchTranslator(given_to(translator, "translator").translator, options)};
  });
}

void mulciber_destroy_batch_translator(MulciberBatchTranslator* batch) { delete batch; }

MulciberStatus mulciber_submit_translation(MulciberContext* context, MulciberBatchTranslator* batch,
                                           const MulciberTranslationRequest* request,
                                           uint64_t* number) {
  return guarded(context, [&] {
    if (number) *number = 0;
    BatchTranslator& to = given_to(batch, "batch").batch;
    const auto told = std::make_shared<uint64_t>(0);
    *told =
        to.submit(translation_request(of_any_version(request, "MulciberTranslationRequest"), told));
    if (number) *number = *told;
  });
}

void mulciber_cancel_translation(MulciberBatchTranslator* batch, uint64_t number) {
  if (batch) batch->batch.cancel(number);
}

MulciberStatus mulciber_step_translations(MulciberContext* context, MulciberBatchTranslator* batch,
                                          MulciberBool* busy) {
  return guarded(context, [&] {
    given_to(busy, "busy") = 0;
    *busy = given_to(batch, "batch").batch.step();
  });
}

MulciberStatus mulciber_batch_translator_statistics(MulciberContext* context,
                                                    const MulciberBatchTranslator* batch,
                                                    MulciberBatchTranslatorStatistics* statistics) {
  return guarded(context, [&] {
    give(statistics, "MulciberBatchTranslatorStatistics",
         [&](MulciberBatchTranslatorStatistics& to) {
           const BatchTranslator& of = given_to(batch, "batch").batch;
           const BatchTranslatorStatistics& from = of.statistics();
           to.running = static_cast<uint32_t>(of.running());
           to.waiting = static_cast<uint32_t>(of.waiting());
           to.requests = from.requests;
           to.ended = from.ended;
           to.cancelled = from.cancelled;
           to.source_tokens = from.source_tokens;
           to.target_tokens = from.target_tokens;
           to.steps = from.steps;
           to.sequence_steps = from.sequence_steps;
           to.row_steps = from.row_steps;
           to.needed_row_steps = from.needed_row_steps;
           to.refills = from.refills;
           to.encode_seconds = from.encode_seconds;
           to.decode_seconds = from.decode_seconds;
         });
  });
}
