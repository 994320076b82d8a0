// Finds the model that a request names.
#pragma once

#include <string>
#include <vector>

#include "apps/serve/engine/engine.h"

namespace mulciber::apps::serve {

/// How requests name a model with one of its adapters: MODEL:ADAPTER.
std::string adapted_name(const ServedModel& model, const std::string& adapter);

/// A model, and the adapter that the name asks for.
struct ModelChoice {
  ServedModel& model;
  std::string adapter = {};  // empty: none

  /// The name in /v1/models.
  std::string name() const;
  /// The adapter of the name and those of a request's list; empty where neither names one. Throws
  /// ApiError (400).
  std::vector<AdapterScale> adapters(const std::vector<AdapterScale>& listed) const;
};

/// The model and adapter with that name. Throws ApiError (404).
ModelChoice find_model(const Engine& engine, const std::string& name);

/// The model with that name; without a name, the only model with the capability. Throws ApiError:
/// 404 where no model has that name, 400 where the model has another capability, or the name is
/// needed.
ModelChoice choose_model(const Engine& engine, const std::string& name, Capability wanted);

}  // namespace mulciber::apps::serve
