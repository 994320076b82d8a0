// The search of many sources, some of which wait until others have left their places.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "models/translation/search_slots.h"
#include "models/translation/translation_model.h"

namespace mulciber {

struct BatchSearchResult {
  std::vector<std::vector<Hypothesis>> items;  // by source, best first
  std::optional<uint32_t> not_finite;          // the first source whose logits were not
  bool cancelled = false;                      // some have nothing then
  double seconds = 0;                          // encoding and steps
};

/// Sources take the places in their order, and those that wait follow as soon as a part of the
/// places is free; once none waits, the search goes on in smaller steps whenever a quarter of its
/// step or more is done. slots: of which nothing is under way.
BatchSearchResult search_batch(SearchSlots& slots, const GenerationRequest& request);

}  // namespace mulciber
