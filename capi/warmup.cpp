// C functions for pipelines that are compiled ahead.
#include "mulciber/c/warmup.h"

#include "capi/embed_options.h"
#include "capi/handles.h"
#include "capi/structures.h"
#include "capi/translate_options.h"
#include "mulciber/model_loader.h"

struct MulciberWarmup {
  mulciber::PipelineWarmup warmup;
};

using namespace mulciber;
using namespace mulciber::c;

MulciberStatus mulciber_warm_translator(MulciberContext* context,
                                        const MulciberTranslator* translator,
                                        const MulciberTranslateInfo* info, uint32_t source_tokens,
                                        MulciberWarmup** warmup) {
  return guarded(context, [&] {
    given_to(warmup, "warmup") = nullptr;
    *warmup = new MulciberWarmup{PipelineWarmup(
        given_to(translator, "translator").translator,
        search_options(optional_of_any_version(info, "MulciberTranslateInfo")), source_tokens)};
  });
}

MulciberStatus mulciber_warm_generator(MulciberContext* context, const MulciberGenerator* generator,
                                       MulciberWarmup** warmup) {
  return guarded(context, [&] {
    given_to(warmup, "warmup") = nullptr;
    *warmup = new MulciberWarmup{PipelineWarmup(given_to(generator, "generator").generator)};
  });
}

MulciberStatus mulciber_warm_text_encoder(MulciberContext* context,
                                          const MulciberTextEncoder* encoder,
                                          const MulciberEmbedInfo* info, uint32_t tokens,
                                          MulciberWarmup** warmup) {
  return guarded(context, [&] {
    given_to(warmup, "warmup") = nullptr;
    *warmup = new MulciberWarmup{PipelineWarmup(
        given_to(encoder, "encoder").encoder,
        embedding_task_options(optional_of_any_version(info, "MulciberEmbedInfo")), tokens)};
  });
}

MulciberStatus mulciber_warm_attention(MulciberContext* context,
                                       const MulciberTranslator* translator,
                                       const MulciberGenerator* generator, uint32_t source_room,
                                       uint32_t room, MulciberWarmup** warmup) {
  return guarded(context, [&] {
    given_to(warmup, "warmup") = nullptr;
    *warmup = new MulciberWarmup{
        translator ? PipelineWarmup::of_attention(translator->translator, source_room, room)
                   : PipelineWarmup::of_attention(
                         given_to(generator, "translator or generator").generator, room)};
  });
}

MulciberStatus mulciber_prewarm(MulciberContext* context, MulciberWarmup* warmup, uint32_t count,
                                uint32_t* left) {
  return guarded(context, [&] {
    const size_t still = given_to(warmup, "warmup").warmup.prewarm(count);
    if (left) *left = static_cast<uint32_t>(still);
  });
}

void mulciber_destroy_warmup(MulciberWarmup* warmup) { delete warmup; }
