// Which of the models a request means.
#pragma once

#include <string>
#include <vector>

#include "apps/serve/engine/engine.h"

namespace mulciber::apps::serve {

/// How requests name a model with one of its adapters: MODEL:ADAPTER.
std::string adapted_name(const ServedModel& model, const std::string& adapter);

/// A model, and the adapter beside it that a name says.
struct ModelChoice {
  ServedModel& model;
  std::string adapter = {};  // empty: none

  /// As /v1/models lists it.
  std::string name() const;
  /// The adapter of the name, and those of a request's list; without either none. Throws ApiError
  /// (400).
  std::vector<AdapterScale> adapters(const std::vector<AdapterScale>& listed) const;
};

/// What is served by that name. Throws ApiError (404).
ModelChoice find_model(const Engine& engine, const std::string& name);

/// The model of that name; without one, the only model that does this. Throws ApiError: 404 where
/// there is none of that name, 400 where it does something else, or the name is needed.
ModelChoice choose_model(const Engine& engine, const std::string& name, Capability wanted);

}  // namespace mulciber::apps::serve
