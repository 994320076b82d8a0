// C functions for text embeddings.
#include "mulciber/c/text_encoder.h"

#include <algorithm>

#include "capi/embed_options.h"
#include "capi/handles.h"
#include "capi/result.h"
#include "capi/structures.h"
#include "capi/text_batches.h"
#include "capi/texts_and_ids.h"

namespace mulciber::c {
namespace {

struct DescribedTextEncoder {
  std::map<std::string, std::string> texts;
  std::string default_prompt;
  std::vector<MulciberPrompt> prompts;
};

struct ShownVectors {
  std::vector<TextVector> found;
  std::vector<MulciberTextVector> list;
};
struct ShownTextStates {
  std::vector<TextStates> found;
  std::vector<MulciberTextVector> list;
};

MulciberEmbedInfo embed_info(const MulciberEmbedInfo* from) {
  return optional_of_any_version(from, "MulciberEmbedInfo");
}

MulciberTask* task_of(std::unique_ptr<EmbeddingTask> made) {
  EmbeddingTask* embedding = made.get();
  return new MulciberTask{.task = std::move(made), .embedding = embedding};
}

std::vector<TextVector> embedded(TextEncoder& by, uint32_t count, const char* const* texts,
                                 const MulciberEmbedInfo& info) {
  const EmbedOptions options = embed_options(info);
  if (!info.ids) return by.embed(listed_texts(count, texts, "texts"), options);
  if (texts) throw SettingError("texts", "are given beside ids", "give NULL for one of them");
  return by.embed_ids(listed_sequences(count, info.ids, "ids"), options);
}

/// Refuses ids for a function that takes texts alone.
void refuse_ids(const MulciberEmbedInfo& info) {
  if (info.ids)
    throw SettingError("MulciberEmbedInfo::ids", "are given, where embeddings alone take them",
                       "give texts");
}

/// The values of a text, which stand in the result: in rows, or none if it is not complete.
template <typename Found>
MulciberTextVector shown_values(const Found& found, uint32_t rows) {
  MulciberTextVector to = {};
  to.size = sizeof(to);
  to.complete = found.complete;
  to.truncated = found.truncated;
  to.tokens = found.tokens;
  if (!found.complete || rows == 0) return to;
  to.rows = rows;
  to.columns = static_cast<uint32_t>(found.values.size() / rows);
  to.values = found.values.data();
  return to;
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

MulciberStatus mulciber_describe_text_encoder(MulciberContext* context,
                                              const MulciberTextEncoder* encoder,
                                              MulciberTextEncoderReport* report) {
  return guarded(context, [&] {
    give(report, "MulciberTextEncoderReport", [&](MulciberTextEncoderReport& to) {
      const MulciberTextEncoder& of = given_to(encoder, "encoder");
      auto described = std::make_shared<DescribedTextEncoder>();
      described->texts = of.encoder.prompts();
      described->default_prompt = of.encoder.default_prompt();
      for (const auto& [name, text] : described->texts)
        described->prompts.push_back({sizeof(MulciberPrompt), name.c_str(), text.c_str()});
      to.vector_width = of.encoder.width();
      to.embedding_width = of.encoder.embedding_width();
      to.state_width = of.encoder.state_width();
      to.max_tokens = of.encoder.max_tokens();
      to.pooling = shown_pooling(of.encoder.pooling());
      to.normalize = of.encoder.normalizes();
      to.prompt_count = static_cast<uint32_t>(described->prompts.size());
      to.prompts = described->prompts.data();
      if (!described->default_prompt.empty()) to.default_prompt = described->default_prompt.c_str();
      of.described = std::move(described);
    });
  });
}

MulciberStatus mulciber_text_encoder_statistics(MulciberContext* context,
                                                const MulciberTextEncoder* encoder,
                                                MulciberEncoderStatistics* statistics) {
  return guarded(context, [&] {
    give(statistics, "MulciberEncoderStatistics", [&](MulciberEncoderStatistics& to) {
      write_statistics(given_to(encoder, "encoder").encoder.statistics(), to);
    });
  });
}

MulciberStatus mulciber_trim_text_encoder(MulciberContext* context, MulciberTextEncoder* encoder,
                                          uint64_t* bytes) {
  return guarded(context, [&] {
    if (bytes) *bytes = 0;
    const uint64_t freed = given_to(encoder, "encoder").encoder.trim();
    if (bytes) *bytes = freed;
  });
}

MulciberStatus mulciber_embed_texts(MulciberContext* context, MulciberTextEncoder* encoder,
                                    uint32_t count, const char* const* texts,
                                    const MulciberEmbedInfo* info, MulciberResult** result,
                                    const MulciberTextVector** vectors) {
  return guarded(context, [&] {
    given_to(result, "result") = nullptr;
    given_to(vectors, "vectors") = nullptr;
    TextEncoder& by = given_to(encoder, "encoder").encoder;
    auto shown = std::make_shared<ShownVectors>();
    shown->found = embedded(by, count, texts, embed_info(info));
    for (const TextVector& vector : shown->found) shown->list.push_back(shown_values(vector, 1));
    *result = new MulciberResult{shown};
    *vectors = shown->list.data();
  });
}

MulciberStatus mulciber_embed(MulciberContext* context, MulciberTextEncoder* encoder,
                              uint32_t count, const char* const* texts,
                              const MulciberEmbedInfo* from, float* vectors) {
  return guarded(context, [&] {
    TextEncoder& by = given_to(encoder, "encoder").encoder;
    const MulciberEmbedInfo info = embed_info(from);
    if (info.cancel)
      throw SettingError("MulciberEmbedInfo::cancel",
                         "is given to mulciber_embed(), which cannot say what is complete",
                         "call mulciber_embed_texts()");
    if (count > 0) given_to(vectors, "vectors");
    for (const TextVector& vector : embedded(by, count, texts, info))
      vectors = std::copy(vector.values.begin(), vector.values.end(), vectors);
  });
}

MulciberStatus mulciber_text_states(MulciberContext* context, MulciberTextEncoder* encoder,
                                    uint32_t count, const char* const* texts,
                                    const MulciberEmbedInfo* from, MulciberResult** result,
                                    const MulciberTextVector** states) {
  return guarded(context, [&] {
    given_to(result, "result") = nullptr;
    given_to(states, "states") = nullptr;
    TextEncoder& by = given_to(encoder, "encoder").encoder;
    const MulciberEmbedInfo info = embed_info(from);
    refuse_ids(info);
    auto shown = std::make_shared<ShownTextStates>();
    shown->found = by.states(listed_texts(count, texts, "texts"), embed_options(info));
    for (const TextStates& found : shown->found)
      shown->list.push_back(shown_values(found, found.tokens));
    *result = new MulciberResult{shown};
    *states = shown->list.data();
  });
}

MulciberStatus mulciber_count_embedding_tokens(MulciberContext* context,
                                               const MulciberTextEncoder* encoder, uint32_t count,
                                               const char* const* texts,
                                               const MulciberEmbedInfo* from, uint32_t* counts) {
  return guarded(context, [&] {
    const TextEncoder& by = given_to(encoder, "encoder").encoder;
    const MulciberEmbedInfo info = embed_info(from);
    refuse_ids(info);
    const EmbedOptions options = embed_options(info);
    const std::vector<std::string> copies = listed_texts(count, texts, "texts");
    if (count > 0) given_to(counts, "counts");
    std::vector<uint32_t> found;
    for (const std::string& text : copies)
      found.push_back(static_cast<uint32_t>(by.token_ids(text, options).size()));
    std::copy(found.begin(), found.end(), counts);
  });
}

MulciberStatus mulciber_begin_embedding(MulciberContext* context, MulciberTextEncoder* encoder,
                                        const char* text, const MulciberEmbedInfo* from,
                                        MulciberTask** task) {
  return guarded(context, [&] {
    given_to(task, "task") = nullptr;
    TextEncoder& by = given_to(encoder, "encoder").encoder;
    const MulciberEmbedInfo info = embed_info(from);
    if (text && info.embeddings)
      throw SettingError("text", "is given beside embeddings", "give NULL for one of them");
    const EmbedOptions options = embedding_task_options(info);
    if (info.embeddings)
      *task = task_of(std::make_unique<EmbeddingTask>(by, application_buffer(info.embeddings),
                                                      info.tokens, options));
    else
      *task = task_of(
          std::make_unique<EmbeddingTask>(by, std::string(&given_to(text, "text")), options));
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
    info = embed_info(from);
  });
  if (status != MULCIBER_OK) return status;
  info.size = sizeof(info);
  info.embeddings = rows;
  info.tokens = tokens;
  return mulciber_begin_embedding(context, encoder, nullptr, &info, task);
}
