#include "apps/serve/api/endpoints.h"

#include <nlohmann/json.hpp>

#include "apps/serve/api/model_choice.h"
#include "checkpoints/json.h"

namespace mulciber::apps::serve {
namespace {

const char* const kPage =
#include "serve/api/page/page.html.inc"
    ;
const char* const kPageStyle =
#include "serve/api/page/page.css.inc"
    ;
const char* const kPageScript =
#include "serve/api/page/page.js.inc"
    ;

// The page connects to this server alone, and a script within an answer cannot run.
constexpr const char* kPagePolicy =
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

HttpResponse page_file(const char* type, const char* text) {
  return {.type = type, .body = text, .headers = {{"Content-Security-Policy", kPagePolicy}}};
}

Json model_json(const ServedModel& model) {
  Json object = {{"id", model.id},
                 {"object", "model"},
                 {"created", model.created},
                 {"owned_by", "mulciber"},
                 {"does", model.does()}};
  if (model.context > 0) object["context"] = model.context;
  if (model.offers == Capability::kContinueText) {
    object["chat"] = model.chat_template != nullptr;
    object["images"] = model.sees;
    object["pictures"] = model.sees;  // deprecated name
    object["layers"] = model.layers;
    object["heads"] = model.heads;
  }
  return object;
}

/// The entry of a model with one of its adapters, which requests may name as a model.
Json adapter_json(const ServedModel& model, const std::string& adapter) {
  Json object = model_json(model);
  object["id"] = adapted_name(model, adapter);
  object["parent"] = model.id;
  return object;
}

HttpResponse health(const Service& service) {
  if (const auto trouble = service.engine.trouble()) {
    const char* status = service.engine.failed() ? "failed" : "reopening";
    return {.status = 503, .body = json_line({{"status", status}, {"reason", *trouble}}) + "\n"};
  }
  if (const auto closed = service.engine.admission().closed())
    return {.status = 503, .body = json_line({{"status", "stopping"}, {"reason", *closed}}) + "\n"};
  return {.body = "{\"status\":\"ok\"}\n"};
}

}  // namespace

HttpResponse list_models(const Service& service) {
  Json list = Json::array();
  for (const auto& model : service.engine.models()) {
    list.push_back(model_json(*model));
    for (const AdapterFile& adapter : model->adapters)
      list.push_back(adapter_json(*model, adapter.name));
  }
  return {.body = json_line({{"object", "list"}, {"data", std::move(list)}}) + "\n"};
}

HttpResponse show_model(const Service& service, const std::string& id) {
  const ModelChoice choice = find_model(service.engine, id);
  return {.body = json_line(choice.adapter.empty() ? model_json(choice.model)
                                                   : adapter_json(choice.model, choice.adapter)) +
                  "\n"};
}

void add_endpoints(HttpServer& server, Service& service) {
  using Access = HttpServer::Access;
  const auto page = [&server](const char* path, const char* type, const char* text) {
    server.route(
        "GET", path, [type, text](const HttpRequest&) { return page_file(type, text); },
        Access::kOpen);
  };
  page("/", "text/html; charset=utf-8", kPage);
  page("/page.css", "text/css; charset=utf-8", kPageStyle);
  page("/page.js", "text/javascript; charset=utf-8", kPageScript);
  server.route(
      "GET", "/health", [&service](const HttpRequest&) { return health(service); }, Access::kOpen);
  server.route("GET", "/metrics", [&service](const HttpRequest&) {
    return HttpResponse{.type = "text/plain; version=0.0.4; charset=utf-8",
                        .body = service.metrics.text(service.engine.admission().inside(),
                                                     service.engine.trouble().has_value())};
  });
  server.route("GET", "/v1/models",
               [&service](const HttpRequest&) { return list_models(service); });
  server.route("GET", "/v1/models/*", [&service](const HttpRequest& request) {
    return show_model(service, request.path.substr(std::string("/v1/models/").size()));
  });
  server.route("POST", "/v1/chat/completions", [&service](const HttpRequest& request) {
    return create_completion(parse_chat_request(request.body), request, service.engine,
                             service.metrics, service.completions);
  });
  server.route("POST", "/v1/completions", [&service](const HttpRequest& request) {
    return create_completion(parse_completion_request(request.body), request, service.engine,
                             service.metrics, service.completions);
  });
  using Handler = HttpResponse (*)(const Service&, const HttpRequest&);
  const auto add = [&](const char* method, const char* path, Handler handler) {
    server.route(method, path, [&service, handler](const HttpRequest& request) {
      return handler(service, request);
    });
  };
  const auto post = [&](const char* path, Handler handler) { add("POST", path, handler); };
  post("/v1/responses", create_response);
  add("GET", "/v1/responses/*", show_response);
  add("DELETE", "/v1/responses/*", delete_response);
  post("/v1/embeddings", embed_texts);
  post("/v1/audio/transcriptions", transcribe_sound);
  post("/translate", translate_texts);
  post("/attention", show_attention);
  post("/tokenize", tokenize_text);
  post("/detokenize", detokenize_ids);
}

}  // namespace mulciber::apps::serve
