// Endpoints that do not continue texts (endpoints.h): vectors, tokens, translations.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>

#include "apps/cli/base64.h"
#include "apps/serve/api/endpoints.h"
#include "apps/serve/api/model_choice.h"
#include "apps/serve/api/requests/request_fields.h"
#include "checkpoints/json.h"
#include "mulciber/error.h"
#include "text/token_stream.h"

namespace mulciber::apps::serve {
namespace {

constexpr size_t kMostTexts = 2048;  // in one request, OpenAI's limit
constexpr size_t kMostTokenIds = 1u << 20;
constexpr uint64_t kMostBeams = 32;

/// The model that the field "model" names; without the field, the only one with a tokenizer.
const ServedModel& model_with_tokenizer(const Engine& engine, RequestFields& fields) {
  const std::string asked = fields.text("model").value_or("");
  const ServedModel* chosen = asked.empty() ? nullptr : &find_model(engine, asked).model;
  for (const auto& model : engine.models()) {
    if (!asked.empty() || !model->tokenizer) continue;
    if (chosen) refuse("model", "several models have a tokenizer: say which");
    chosen = model.get();
  }
  if (!chosen)
    throw ApiError(404, "no model is served that reads texts", "model", "model_not_found");
  if (!chosen->tokenizer)
    refuse("model", fmt::format("the model '{}' reads no texts", chosen->id), "wrong_model");
  return *chosen;
}

/// Runs `work`, whose error names the text that is too long.
template <typename Work>
void naming_texts(const std::string& field, Work&& work) {
  try {
    work();
  } catch (const ModelError& error) {
    if (error.where().starts_with("text ")) refuse(field, error.what(), "context_length_exceeded");
    throw;
  }
}

}  // namespace

HttpResponse embed_texts(const Service& service, const HttpRequest& request) {
  RequestFields fields(request.body);
  ServedModel& model =
      choose_model(service.engine, fields.text("model").value_or(""), Capability::kEncodeText)
          .model;
  fields.needed("input");
  const std::vector<TextOrIds> inputs = fields.texts_or_ids("input", kMostTexts);
  if (inputs.empty()) refuse("input", "input is an empty list");
  std::vector<std::string> texts;
  std::vector<std::vector<uint32_t>> ids;
  for (const TextOrIds& one : inputs) {
    if (one.text.empty() && one.ids.empty()) refuse("input", "input holds an empty text");
    if (one.ids.empty()) {
      texts.push_back(one.text);
    } else {
      check_ids(model, "input", one.ids);
      ids.push_back(one.ids);
    }
  }
  const std::string format = fields.text("encoding_format").value_or("float");
  if (format != "float" && format != "base64")
    refuse("encoding_format", "encoding_format must be float or base64");
  if (const auto width = fields.whole("dimensions", 1, 1u << 20); width && *width != model.width)
    refuse("dimensions",
           fmt::format("the vectors of '{}' have {} dimensions", model.id, model.width),
           "unsupported_parameter");
  EmbedOptions options;
  options.prompt_name = fields.text("prompt_name").value_or("");
  options.batch.truncate = fields.flag("truncate").value_or(false);
  // Other requests get a step between batches.
  constexpr uint32_t kBatchTokens = 512;
  options.batch.batch_tokens = kBatchTokens;
  options.batch.progress = [&](size_t, size_t) { service.engine.go_on(); };
  if (!ids.empty() && !options.prompt_name.empty())
    refuse("prompt_name", "prompt_name stands before texts, and input holds ids of tokens");
  fields.ignore("user");
  fields.finish();

  std::vector<TextVector> vectors;
  naming_texts("input", [&] {
    service.engine.call(
        [&](const std::atomic<bool>& cancel) {
          options.batch.cancel = &cancel;
          vectors = ids.empty() ? model.encoder->embed(texts, options)
                                : model.encoder->embed_ids(ids, options);
        },
        request.gone);
  });
  Json data = Json::array();
  size_t tokens = 0;
  for (size_t i = 0; i < vectors.size(); ++i) {
    const std::vector<float>& values = vectors[i].values;
    tokens += vectors[i].tokens;
    data.push_back(
        {{"object", "embedding"},
         {"index", i},
         {"embedding", format == "float"
                           ? Json(values)
                           : Json(base64(std::as_bytes(std::span<const float>(values))))}});
  }
  return {.body = json_line({{"object", "list"},
                             {"data", std::move(data)},
                             {"model", model.id},
                             {"usage", {{"prompt_tokens", tokens}, {"total_tokens", tokens}}}}) +
                  "\n"};
}

HttpResponse tokenize_text(const Service& service, const HttpRequest& request) {
  RequestFields fields(request.body);
  const ServedModel& model = model_with_tokenizer(service.engine, fields);
  const std::string text = fields.needed_text("text");
  const EncodeOptions options = {.add_special = fields.flag("add_special").value_or(true),
                                 .parse_special = fields.flag("parse_special").value_or(true)};
  fields.finish();
  Json ids = Json::array(), pieces = Json::array();
  for (const Token& token : model.tokenizer->tokenize(text, options)) {
    ids.push_back(token.id);
    pieces.push_back(token.text);
  }
  const size_t count = ids.size();
  return {
      .body =
          json_line({{"tokens", std::move(ids)}, {"pieces", std::move(pieces)}, {"count", count}}) +
          "\n"};
}

HttpResponse detokenize_ids(const Service& service, const HttpRequest& request) {
  RequestFields fields(request.body);
  const ServedModel& model = model_with_tokenizer(service.engine, fields);
  const Json* tokens = fields.find("tokens");
  const bool skip = fields.flag("skip_special").value_or(false);
  fields.finish();
  if (!tokens || !tokens->is_array() || tokens->size() > kMostTokenIds)
    refuse("tokens", fmt::format("tokens must be a list of at most {} ids", kMostTokenIds));
  const auto known = static_cast<uint32_t>(model.tokenizer->vocab_size());
  const uint64_t vocabulary = std::max(known, model.vocabulary);
  std::vector<int32_t> ids;
  for (const Json& id : *tokens) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() >= vocabulary)
      refuse("tokens", fmt::format("tokens must be ids below {}", vocabulary));
    ids.push_back(id.get<int32_t>());
  }
  return {.body = json_line({{"text", written_text(*model.tokenizer, ids, skip)}}) + "\n"};
}

HttpResponse translate_texts(const Service& service, const HttpRequest& request) {
  RequestFields fields(request.body);
  ServedModel& model =
      choose_model(service.engine, fields.text("model").value_or(""), Capability::kTranslate).model;
  const bool single = fields.find("text") && fields.find("text")->is_string();
  const std::vector<std::string> texts = fields.texts("text", kMostTexts);
  if (texts.empty()) refuse("text", "text is missing: a string or a list of strings");
  TranslateOptions options;
  options.source_language = fields.text("source_language").value_or("");
  options.target_language = fields.text("target_language").value_or("");
  if (const auto beams = fields.whole("beams", 1, kMostBeams))
    options.beams = static_cast<uint32_t>(*beams);
  if (const auto most = fields.whole("max_tokens", 1, 1u << 20))
    options.max_new_tokens = static_cast<uint32_t>(*most);
  fields.finish();

  std::vector<Translation> made;
  naming_texts("text",
               [&] { made = service.engine.translate(model, texts, options, request.gone); });
  Json translations = Json::array();
  size_t read = 0, written = 0;
  for (const Translation& translation : made) {
    read += translation.source_ids.size();
    written += translation.ids.size();
    translations.push_back({{"text", translation.text}, {"score", translation.score}});
  }
  Json object = {{"model", model.id},
                 {"translations", std::move(translations)},
                 {"usage",
                  {{"prompt_tokens", read},
                   {"completion_tokens", written},
                   {"total_tokens", read + written}}}};
  if (single) object["text"] = made.front().text;
  return {.body = json_line(object) + "\n"};
}

}  // namespace mulciber::apps::serve
