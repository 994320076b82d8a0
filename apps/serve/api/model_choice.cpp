#include "apps/serve/api/model_choice.h"

#include <fmt/format.h>

#include <algorithm>

#include "apps/serve/http/api_error.h"
#include "checkpoints/json.h"

namespace mulciber::apps::serve {
namespace {

/// The only model with that capability.
ServedModel& only_model(const Engine& engine, Capability wanted) {
  ServedModel* chosen = nullptr;
  size_t candidates = 0;
  for (const auto& model : engine.models()) {
    if (model->offers != wanted) continue;
    chosen = model.get();
    ++candidates;
  }
  if (!chosen)
    throw ApiError(404, fmt::format("no model is served that {}", row_of(wanted).does), "model",
                   "model_not_found");
  if (candidates > 1) refuse("model", fmt::format("{} models could answer: say which", candidates));
  return *chosen;
}

}  // namespace

std::string adapted_name(const ServedModel& model, const std::string& adapter) {
  return model.id + ":" + adapter;
}

std::string ModelChoice::name() const {
  return adapter.empty() ? model.id : adapted_name(model, adapter);
}

std::vector<AdapterScale> ModelChoice::adapters(const std::vector<AdapterScale>& listed) const {
  std::vector<AdapterScale> wanted;
  if (!adapter.empty()) wanted.push_back({adapter, 1});
  for (const AdapterScale& one : listed) {
    if (!model.has_adapter(one.name))
      refuse("lora",
             fmt::format("the model '{}' has no adapter '{}'; GET /v1/models lists those it has",
                         model.id, printable(one.name)),
             "adapter_not_found");
    if (std::ranges::find(wanted, one.name, &AdapterScale::name) != wanted.end())
      refuse("lora", fmt::format("the adapter '{}' is asked for twice", printable(one.name)));
    wanted.push_back(one);
  }
  return wanted;
}

ModelChoice find_model(const Engine& engine, const std::string& name) {
  for (const auto& model : engine.models())
    if (model->id == name) return {*model};
  // A model's name may have a colon as well; an adapter's has none.
  const size_t colon = std::min(name.rfind(':'), name.size());
  for (const auto& model : engine.models())
    if (colon < name.size() && model->id == name.substr(0, colon) &&
        model->has_adapter(name.substr(colon + 1)))
      return {*model, name.substr(colon + 1)};
  throw ApiError(404,
                 fmt::format("the model '{}' is not served here; GET /v1/models lists those that "
                             "are",
                             printable(name)),
                 "model", "model_not_found");
}

ModelChoice choose_model(const Engine& engine, const std::string& name, Capability wanted) {
  if (name.empty()) return {only_model(engine, wanted)};
  ModelChoice chosen = find_model(engine, name);
  if (chosen.model.offers != wanted)
    refuse("model",
           fmt::format("the model '{}' {}, which is not what this address is for", chosen.model.id,
                       chosen.model.does()),
           "wrong_model");
  return chosen;
}

}  // namespace mulciber::apps::serve
