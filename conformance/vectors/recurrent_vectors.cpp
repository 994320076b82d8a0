#include "conformance/vectors/recurrent_vectors.h"

#include <nlohmann/json.hpp>

#include "conformance/vectors/recurrent_entry.h"
#include "conformance/vectors/recurrent_translation.h"

namespace mulciber::conformance {
namespace {

/// One step from a given state.
OpCase cell_vector(RecurrentEntry entry) {
  const uint64_t units = entry.units;
  const uint64_t batch = extent(entry.json, "batch", 1), columns = extent(entry.json, "input", 1);
  const CellPart part = entry.cell_part("w_", "", columns);
  const size_t x = entry.input({batch, 1, columns}, entry.tensor("x", {batch, columns}).values);
  std::vector<double> before = entry.tensor("in_h", {batch, units}).values;
  const Recorded hidden = entry.tensor("out_h", {batch, units});
  Expected after({states_of(part.kind), batch, units}, entry.weights);
  after.add(hidden);
  if (states_of(part.kind) == 2) {
    const std::vector<double> cells = entry.tensor("in_c", {batch, units}).values;
    before.insert(before.end(), cells.begin(), cells.end());
    after.add(entry.tensor("out_c", {batch, units}));
  }
  const size_t state = entry.input({states_of(part.kind), batch, units}, before);
  const auto build = [=](ProgramBuilder& builder, Inputs inputs) {
    const Tensor outputs = builder.activation({batch, 1, units});
    part.of(inputs).step(builder, inputs[x], inputs[state], outputs);
    return std::vector<Tensor>{inputs[state], outputs};
  };
  return entry.finish(
      build, {after.tensor(), Expected({batch, 1, units}, entry.weights).add(hidden).tensor()});
}

/// Layers in both directions over rows of unequal length.
OpCase stack_vector(RecurrentEntry entry) {
  const uint64_t units = entry.units;
  const uint64_t batch = extent(entry.json, "batch", 1), length = extent(entry.json, "length", 1),
                 columns = extent(entry.json, "input", 1), layers = extent(entry.json, "layers", 1);
  std::vector<BothDirections> parts;
  for (uint64_t i = 0; i < layers; ++i)
    parts.push_back(entry.directions("w_", i, i == 0 ? columns : 2 * units));
  const size_t x =
      entry.input({batch, length, columns}, entry.tensor("x", {batch, length, columns}).values);
  const size_t lengths = entry.words(entry.numbers("lengths", {batch}, length + 1));

  const std::vector<uint64_t> shape = {batch, length, 2 * units};
  std::vector<CpuTensor> expected = {
      Expected({batch, length, 2 * units}, entry.weights).add(entry.tensor("out", shape)).tensor()};
  entry.expect_states(expected, parts[0].forward.kind, layers, batch, "");
  const auto build = [=](ProgramBuilder& builder, Inputs inputs) {
    RecurrentStack stack;
    for (const BothDirections& part : parts) stack.layers.push_back(part.of(inputs));
    const auto results =
        stack(builder, inputs[x], RowLengths{inputs[lengths], {0, static_cast<uint32_t>(batch)}});
    std::vector<Tensor> outputs = {results.back().outputs};
    for (const RecurrentLayer::Result& result : results) {
      outputs.push_back(result.forward_state);
      outputs.push_back(*result.backward_state);
    }
    return outputs;
  };
  return entry.finish(build, std::move(expected));
}

}  // namespace

std::string missing_of_recurrent(const Json& entry) {
  if (!entry.contains("hidden") || (!entry.contains("input") && !entry.contains("vocab")))
    return "no network of these members";
  return "";
}

OpCase recurrent_vector(const Json& entry, const SafetensorsFile& file, DataType weights) {
  const RecurrentEntry made{.json = entry, .file = file, .weights = weights};
  if (entry.contains("vocab")) return translation_vector(made);
  return entry.contains("length") ? stack_vector(made) : cell_vector(made);
}

}  // namespace mulciber::conformance
