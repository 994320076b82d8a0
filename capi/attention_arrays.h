// Arrays of floats and projections, between C and C++.
#pragma once

#include <limits>
#include <memory>
#include <vector>

#include <fmt/format.h>

#include "capi/result.h"
#include "capi/structures.h"
#include "mulciber/attention.h"
#include "mulciber/c/attention.h"

namespace mulciber::c {

/// Copies an array. name: for messages.
inline FloatArray float_array(const MulciberFloatArray* from, const char* name) {
  constexpr uint32_t kMostRank = 8;
  const auto array = of_any_version(from, name);
  if (array.rank == 0 || array.rank > kMostRank)
    throw SettingError(name, fmt::format("has {} dimensions", array.rank),
                       fmt::format("give 1 to {}", kMostRank));
  const uint64_t* extents = &given_to(array.shape, "shape");
  FloatArray result = {{extents, extents + array.rank}, {}};
  uint64_t elements = 1;
  for (const uint64_t extent : result.shape) {
    if (elements > 0 && extent > std::numeric_limits<size_t>::max() / sizeof(float) / elements)
      throw SettingError(name, "has more elements than there is memory", "check its shape");
    elements *= extent;
  }
  if (elements == 0) return result;
  const float* values = &given_to(array.values, name);
  result.values.assign(values, values + elements);
  return result;
}

/// Copies numbers; count 0: there are none.
template <typename T>
std::vector<T> copied_numbers(const T* from, uint32_t count, const char* name) {
  if (count == 0) return {};
  const T* first = &given_to(from, name);
  return {first, first + count};
}

inline Projection projection_of(const MulciberProjection* from, const char* name) {
  const auto projection = of_any_version(from, name);
  return {float_array(projection.weight, name),
          copied_numbers(projection.bias, projection.bias_count, "bias")};
}

/// No value where the pointer is null.
inline std::optional<Projection> optional_projection(const MulciberProjection* from,
                                                     const char* name) {
  if (!from) return {};
  return projection_of(from, name);
}

inline AttentionScore attention_score(MulciberAttentionScore score) {
  switch (score) {
    case MULCIBER_SCORE_DOT: return AttentionScore::kDot;
    case MULCIBER_SCORE_ADDITIVE: return AttentionScore::kAdditive;
    case MULCIBER_SCORE_LEAKY: return AttentionScore::kLeaky;
    case MULCIBER_SCORE_DISTANCE: return AttentionScore::kDistance;
    default: refuse_enumerator("score", score, "MulciberAttentionScore");
  }
}

/// The array must outlive the result.
inline MulciberFloatArray shown_array(const FloatArray& array) {
  return {.size = sizeof(MulciberFloatArray),
          .rank = static_cast<uint32_t>(array.shape.size()),
          .shape = array.shape.data(),
          .values = array.values.data()};
}

/// What an attention computed, and its form in C, which points into this object.
template <typename Result>
struct ShownAttentionResult {
  Result found;
  MulciberFloatArray output = {}, weights = {};
};

/// weights: may be null.
template <typename Result>
void give_attention_result(Result found, MulciberResult** result, const MulciberFloatArray** output,
                           const MulciberFloatArray** weights) {
  auto shown = std::make_shared<ShownAttentionResult<Result>>();
  shown->found = std::move(found);
  shown->output = shown_array(shown->found.output);
  shown->weights = shown_array(shown->found.weights);
  *result = new MulciberResult{shown};
  *output = &shown->output;
  if (weights) *weights = &shown->weights;
}

}  // namespace mulciber::c
