// An entry of recurrent.json: its weights as inputs of a case, layers made of them, and expected
// outputs.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "conformance/vectors/recorded.h"
#include "layers/recurrent.h"

namespace mulciber::conformance {

/// The tensors of a case that is being built.
using Inputs = std::span<const Tensor>;

/// Layers by the indices of their weights among the inputs of a case.
struct RecordedLinear {
  size_t weight = 0;
  std::optional<size_t> bias;

  Linear of(Inputs inputs) const {
    Linear linear{inputs[weight]};
    if (bias) linear.bias = inputs[*bias];
    return linear;
  }
};
struct CellPart {
  CellKind kind = CellKind::kLstm;
  RecordedLinear input, hidden;

  RecurrentCell of(Inputs inputs) const { return {kind, input.of(inputs), hidden.of(inputs)}; }
};
struct BothDirections {
  CellPart forward, backward;

  RecurrentLayer of(Inputs inputs) const { return {forward.of(inputs), backward.of(inputs)}; }
};

/// An expected output, made from recorded parts.
class Expected {
 public:
  Expected(Shape shape, DataType weights)
      : share_(weights == DataType::kF16 ? kShare16 : kShare32) {
    tensor_.shape = shape;
  }

  /// Adds `count` recorded values, from `first` on; 0: all of them.
  Expected& add(const Recorded& recorded, size_t first = 0, size_t count = 0);
  const CpuTensor& tensor() const { return tensor_; }

 private:
  CpuTensor tensor_;
  double share_;
};

/// Converts an entry to a case: its tensors become the inputs.
struct RecurrentEntry {
  const Json& json;
  const SafetensorsFile& file;
  DataType weights;
  std::string name = name_of(json);
  uint64_t units = extent(json, "hidden", 1);
  std::vector<CaseInput> inputs;

  Recorded tensor(const std::string& what, const std::vector<uint64_t>& shape) const {
    return read_recorded(file, name + "/" + what, shape);
  }
  std::vector<uint32_t> numbers(const std::string& what, const std::vector<uint64_t>& shape,
                                uint64_t limit) const {
    return read_numbers(file, name + "/" + what, shape, limit);
  }
  size_t input(Shape shape, std::vector<double> values, DataType type = DataType::kF32) {
    inputs.push_back(recorded_input(shape, std::move(values), type));
    return inputs.size() - 1;
  }
  size_t words(const std::vector<uint32_t>& values) {
    inputs.push_back(words_input(values));
    return inputs.size() - 1;
  }
  size_t matrix(const std::string& what, uint64_t rows, uint64_t columns) {
    return input({rows, columns}, tensor(what, {rows, columns}).values, weights);
  }
  RecordedLinear linear(const std::string& weight, uint64_t rows, uint64_t columns,
                        const std::string& bias = "") {
    RecordedLinear part{matrix(weight, rows, columns), std::nullopt};
    if (!bias.empty()) part.bias = input({rows}, tensor(bias, {rows}).values);
    return part;
  }
  CellPart cell_part(const std::string& prefix, const std::string& suffix, uint64_t columns);
  BothDirections directions(const std::string& prefix, uint64_t layer, uint64_t columns) {
    const std::string suffix = "_l" + std::to_string(layer);
    return {cell_part(prefix, suffix, columns), cell_part(prefix, suffix + "_reverse", columns)};
  }
  /// Expects states after the last position: h_n for each layer and direction and, for an LSTM,
  /// c_n.
  void expect_states(std::vector<CpuTensor>& expected, CellKind kind, uint64_t layers,
                     uint64_t batch, const std::string& prefix) const;
  OpCase finish(std::function<std::vector<Tensor>(ProgramBuilder&, Inputs)> build,
                std::vector<CpuTensor> expected) const;
};

}  // namespace mulciber::conformance
