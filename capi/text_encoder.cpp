// C functions for text embeddings.
#include "mulciber/c/text_encoder.h"

#include <algorithm>

#include "capi/handles.h"
#include "capi/structures.h"

namespace mulciber::c {
namespace {

MulciberTask* task_of(std::unique_ptr<EmbeddingTask> made) {
  EmbeddingTask* embedding = made.get();
  return new MulciberTask{.task = std::move(made), .embedding = embedding};
}

}  // namespace
}  // namespace mulciber::c

using namespace mulciber;
using namespace mulciber::c;

MulciberStatus mulciber_load_text_encoder(MulciberContext* context, MulciberDevice* device,
                                          const MulciberModel* model, const MulciberLoadInfo* info,
                                          MulciberTextEncoder** encoder) {
  return guarded(context, [&] {
    given_to(encoder, "encoder") = nullptr;
    *encoder = new MulciberTextEncoder{TextEncoder(given_to(device, "device").device,
                                                   given_to(model, "model").model,
                                                   load_options(load_info(info)))};
  });
}

void mulciber_destroy_text_encoder(MulciberTextEncoder* encoder) { delete encoder; }

uint32_t mulciber_vector_width(const MulciberTextEncoder* encoder) {
  return encoder ? encoder->encoder.width() : 0;
}

uint32_t mulciber_embedding_width(const MulciberTextEncoder* encoder) {
  return encoder ? encoder->encoder.embedding_width() : 0;
}

MulciberStatus mulciber_embed(MulciberContext* context, MulciberTextEncoder* encoder,
                              uint32_t count, const char* const* texts,
                              const MulciberEmbedInfo* info, float* vectors) {
  return guarded(context, [&] {
    TextEncoder& by = given_to(encoder, "encoder").encoder;
    if (optional_of_any_version(info, "MulciberEmbedInfo").embeddings)
      throw SettingError("embeddings", "are given beside texts", "begin a task with them");
    if (count == 0) return;
    given_to(texts, "texts");
    given_to(vectors, "vectors");
    std::vector<std::string> copies;
    for (uint32_t i = 0; i < count; ++i) copies.emplace_back(&given_to(texts[i], "texts"));
    for (const TextVector& vector : by.embed(copies, embed_options(info)))
      vectors = std::copy(vector.values.begin(), vector.values.end(), vectors);
  });
}

MulciberStatus mulciber_begin_embedding(MulciberContext* context, MulciberTextEncoder* encoder,
                                        const char* text, const MulciberEmbedInfo* from,
                                        MulciberTask** task) {
  return guarded(context, [&] {
    given_to(task, "task") = nullptr;
    TextEncoder& by = given_to(encoder, "encoder").encoder;
    const auto info = optional_of_any_version(from, "MulciberEmbedInfo");
    if (text && info.embeddings)
      throw SettingError("text", "is given beside embeddings", "give NULL for one of them");
    if (info.embeddings)
      *task = task_of(std::make_unique<EmbeddingTask>(by, application_buffer(info.embeddings),
                                                      info.tokens, embed_options(from)));
    else
      *task = task_of(std::make_unique<EmbeddingTask>(by, std::string(&given_to(text, "text")),
                                                      embed_options(from)));
  });
}

uint32_t mulciber_embedding_tokens(const MulciberTask* task) {
  return task && task->embedding ? task->embedding->tokens() : 0;
}

// Deprecated names of version 0.1.

MulciberStatus mulciber_begin_embedding_of_rows(MulciberContext* context,
                                                MulciberTextEncoder* encoder,
                                                const MulciberApplicationBuffer* rows,
                                                uint32_t tokens, const MulciberEmbedInfo* from,
                                                MulciberTask** task) {
  MulciberEmbedInfo info = {};
  const MulciberStatus status = guarded(context, [&] {
    given_to(task, "task") = nullptr;
    given_to(rows, "rows");
    info = optional_of_any_version(from, "MulciberEmbedInfo");
  });
  if (status != MULCIBER_OK) return status;
  info.size = sizeof(info);
  info.embeddings = rows;
  info.tokens = tokens;
  return mulciber_begin_embedding(context, encoder, nullptr, &info, task);
}
