// Which of the models a request means.
#pragma once

#include <string>

#include "apps/serve/engine.h"

namespace mulciber::apps::serve {

/// A model's name as requests give it: MODEL, or MODEL:ADAPTER.
struct ModelName {
  std::string model, adapter;  // adapter: empty where none is named
};
/// A name that is neither counts as that of a model.
ModelName split_name(const Engine& engine, const std::string& name);

/// The model of that name; without one, the only model that does this. Throws ApiError: 404 where
/// there is none of that name, 400 where it does something else, or the name is needed.
ServedModel& choose_model(const Engine& engine, const std::string& name, Capability wanted);

}  // namespace mulciber::apps::serve
