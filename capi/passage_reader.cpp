// C functions for extractive question answering.
#include "mulciber/c/passage_reader.h"

#include "capi/handles.h"
#include "capi/result.h"
#include "capi/structures.h"
#include "capi/text_batches.h"

struct MulciberPassageReader {
  mulciber::PassageReader reader;
};

namespace mulciber::c {
namespace {

struct ShownAnswers {
  std::vector<PassageAnswer> found;
  std::vector<MulciberPassageAnswer> list;
};

AnswerOptions answer_options(const MulciberAnswerInfo* from) {
  const auto info = optional_of_any_version(from, "MulciberAnswerInfo");
  AnswerOptions options;
  if (info.best > 0) options.best = info.best;
  if (info.longest_tokens > 0) options.longest_tokens = info.longest_tokens;
  if (info.set_overlap_tokens) options.overlap_tokens = info.overlap_tokens;
  options.may_be_none = info.may_be_none != 0;
  options.batch = text_batch_options(info);
  return options;
}

}  // namespace
}  // namespace mulciber::c

using namespace mulciber;
using namespace mulciber::c;

MulciberStatus mulciber_load_passage_reader(MulciberContext* context, MulciberDevice* device,
                                            const MulciberModel* model,
                                            const MulciberLoadInfo* info,
                                            MulciberPassageReader** reader) {
  return guarded(context, [&] {
    given_to(reader, "reader") = nullptr;
    *reader = new MulciberPassageReader{PassageReader(given_to(device, "device").device,
                                                      given_to(model, "model").model,
                                                      load_options(load_info(info)))};
  });
}

void mulciber_destroy_passage_reader(MulciberPassageReader* reader) { delete reader; }

MulciberStatus mulciber_answer_question(MulciberContext* context, MulciberPassageReader* reader,
                                        const char* question, const char* passage,
                                        const MulciberAnswerInfo* info, MulciberResult** result,
                                        uint32_t* count, const MulciberPassageAnswer** answers) {
  return guarded(context, [&] {
    given_to(result, "result") = nullptr;
    given_to(count, "count") = 0;
    given_to(answers, "answers") = nullptr;
    PassageReader& by = given_to(reader, "reader").reader;
    auto shown = std::make_shared<ShownAnswers>();
    shown->found = by.answer(&given_to(question, "question"), &given_to(passage, "passage"),
                             answer_options(info));
    for (const PassageAnswer& answer : shown->found)
      shown->list.push_back({.size = sizeof(MulciberPassageAnswer),
                             .score = answer.score,
                             .text = answer.text.c_str(),
                             .begin = answer.begin,
                             .end = answer.end});
    *result = new MulciberResult{shown};
    *count = static_cast<uint32_t>(shown->list.size());
    *answers = shown->list.data();
  });
}

MulciberStatus mulciber_passage_reader_statistics(MulciberContext* context,
                                                  const MulciberPassageReader* reader,
                                                  MulciberEncoderStatistics* statistics) {
  return guarded(context, [&] {
    give(statistics, "MulciberEncoderStatistics", [&](MulciberEncoderStatistics& to) {
      write_statistics(given_to(reader, "reader").reader.statistics(), to);
    });
  });
}

MulciberStatus mulciber_trim_passage_reader(MulciberContext* context, MulciberPassageReader* reader,
                                            uint64_t* bytes) {
  return guarded(context, [&] {
    if (bytes) *bytes = 0;
    const uint64_t freed = given_to(reader, "reader").reader.trim();
    if (bytes) *bytes = freed;
  });
}
