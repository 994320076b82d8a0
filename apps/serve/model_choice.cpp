#include "apps/serve/model_choice.h"

#include <fmt/format.h>

#include "apps/serve/api_error.h"
#include "checkpoints/json.h"

namespace mulciber::apps::serve {
ModelName split_name(const Engine& engine, const std::string& name) {
  const size_t colon = name.rfind(':');
  if (colon == name.npos) return {name, {}};
  const std::string id = name.substr(0, colon), adapter = name.substr(colon + 1);
  for (const auto& model : engine.models())
    if (model->id == name) return {name, {}};
  for (const auto& model : engine.models())
    if (model->id == id && model->has_adapter(adapter)) return {id, adapter};
  return {name, {}};
}

ServedModel& choose_model(const Engine& engine, const std::string& name, Capability wanted) {
  ServedModel* chosen = nullptr;
  size_t candidates = 0;
  for (const auto& model : engine.models()) {
    if (name.empty() ? model->offers != wanted : model->id != name) continue;
    chosen = model.get();
    ++candidates;
  }
  if (!chosen && !name.empty())
    throw ApiError(404,
                   fmt::format("the model '{}' is not served here; GET /v1/models lists those "
                               "that are",
                               printable(name)),
                   "model", "model_not_found");
  if (!chosen)
    throw ApiError(404, fmt::format("no model is served that {}", row_of(wanted).does), "model",
                   "model_not_found");
  if (candidates > 1) refuse("model", fmt::format("{} models could answer: say which", candidates));
  if (chosen->offers != wanted)
    refuse("model",
           fmt::format("the model '{}' {}, which is not what this address is for", chosen->id,
                       chosen->does()),
           "wrong_model");
  return *chosen;
}

}  // namespace mulciber::apps::serve
