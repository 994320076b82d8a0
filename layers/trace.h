// Intermediate tensors of a program, kept on request and named by the layer that made them.
#pragma once

#include <map>
#include <string>

#include "runtime/program.h"

namespace mulciber {

/// Selects tensors that a program keeps besides its result. Layers fill `tensors` while they are
/// built; names are the layer's path and a word: "encoder.layers.0.self_attn.probabilities".
struct Trace {
  bool hidden_states = false;
  bool attentions = false;
  std::map<std::string, Tensor> tensors;

  /// Keeps `tensor` past the end of the program under "PATH.word", as f32.
  void keep(ProgramBuilder& builder, const std::string& word, const Tensor& tensor);
  /// Keeps a copy of `tensor`, for a tensor that is changed in place later.
  void keep_copy(ProgramBuilder& builder, const std::string& word, const Tensor& tensor);
  /// Throws ShapeError when no layer kept a tensor of that name.
  const Tensor& at(const std::string& name) const;
};

}  // namespace mulciber
