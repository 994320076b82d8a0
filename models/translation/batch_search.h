// The search of many sources, some of which wait until others have left their slots.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "models/translation/search_slots.h"
#include "models/translation/translation_model.h"

namespace mulciber {

struct BatchSearchResult {
  std::vector<std::vector<Hypothesis>> items;  // by source, best first
  std::optional<uint32_t> not_finite;          // the first source whose logits were not finite
  bool cancelled = false;                      // some sources have no hypotheses then
  double seconds = 0;                          // for encoding and steps
};

/// Sources take slots in their order, and waiting sources follow as soon as a part of the slots is
/// free. Once none waits, the search goes on in smaller steps whenever a quarter of its step or
/// more is done. slots: must have nothing under way.
BatchSearchResult search_batch(SearchSlots& slots, const GenerationRequest& request);

}  // namespace mulciber
