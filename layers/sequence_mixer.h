// A sublayer that mixes the tokens of a sequence in a way of its own: a layer of a causal decoder
// has one in place of attention.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "layers/layer_cache.h"
#include "layers/linear.h"
#include "ops/control.h"

namespace mulciber {

/// The input of a mixer in a pass, and what the layer keeps between passes.
struct MixerInput {
  Tensor x;        // (rows, length, D)
  Tensor cache;    // LayerCache::contexts(), or pages() of kTokens, with memory
  Tensor control;  // u32
  /// (rows): number of earlier tokens. A row without any starts anew, whatever a state holds.
  ControlArray<uint32_t> positions;
  /// (rows): number of a row's tokens that count. Later ones are padding: they change no state. A
  /// row without any keeps its state.
  ControlArray<uint32_t> counts;
  std::optional<ControlArray<uint32_t>> pages;  // CausalState::pages
  std::optional<Tensor> add_to;                 // the result is added to it
  const AdapterScales* adapters = nullptr;
};

struct SequenceMixer {
  std::string name;  // its scope in programs
  LayerCache cache;
  DataType weights = DataType::kF32;  // type of its first matrix
  /// Returns (rows, length, D), or MixerInput::add_to. Throws ShapeError naming the layer.
  std::function<Tensor(ProgramBuilder& builder, const MixerInput& input)> apply;
};

}  // namespace mulciber
