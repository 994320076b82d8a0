// Recurrent networks against values computed with PyTorch in double precision: cells, directions,
// layers, and rows of unequal length.
#include "layers/recurrent.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "checkpoints/safetensors.h"
#include "checkpoints/tensor_values.h"
#include "mulciber/error.h"
#include "tests/catch.h"
#include "tests/device_tensors.h"
#include "tests/support.h"

using namespace mulciber;

namespace {

/// Arrays of a reference file, and a test's tensors on the device.
class Fixture : public tests::DeviceTensors {
 public:
  explicit Fixture(const std::filesystem::path& file) : file_(file) {}

  const CheckpointTensor& array(const std::string& name) const {
    const CheckpointTensor* found = file_.find(name);
    INFO(name);
    REQUIRE(found);
    return *found;
  }
  std::vector<float> values(const std::string& name) const {
    return read_floats(array(name), 0, array(name).elements());
  }
  Tensor upload_array(const std::string& name, DataType type = DataType::kF32) {
    const std::vector<float> floats = values(name);
    if (type == DataType::kF32)
      return put(Shape(array(name).shape), type, std::as_bytes(std::span(floats)));
    std::vector<uint16_t> halves(floats.size());
    std::transform(floats.begin(), floats.end(), halves.begin(), float_to_half);
    return put(Shape(array(name).shape), type, std::as_bytes(std::span(halves)));
  }

 private:
  SafetensorsFile file_;
};

void check_close(const std::vector<float>& found, const std::vector<float>& expected,
                 double tolerance) {
  REQUIRE(found.size() == expected.size());
  double worst = 0, largest = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    worst = std::max(worst, std::abs(double(found[i]) - expected[i]));
    largest = std::max(largest, std::abs(double(expected[i])));
  }
  CHECK(largest > 0);
  CHECK(worst <= tolerance * largest);
}

RecurrentCell cell(Fixture& fixture, CellKind kind, const std::string& prefix,
                   const std::string& suffix, DataType type) {
  return {kind,
          {fixture.upload_array(prefix + "weight_ih" + suffix, type),
           fixture.upload_array(prefix + "bias_ih" + suffix)},
          {fixture.upload_array(prefix + "weight_hh" + suffix, type),
           fixture.upload_array(prefix + "bias_hh" + suffix)}};
}

std::vector<float> read_back(Program& program, const Tensor& tensor) {
  BufferView view = program.view(tensor);
  view.size = tensor.bytes();
  return download_as<float>(tests::shared_device(), view);
}

}  // namespace

TEST_CASE("One step of each cell from a given state") {
  Fixture fixture(tests::data_dir() / "recurrent.safetensors");
  const auto [kind, name] =
      GENERATE(table<CellKind, std::string>({{CellKind::kLstm, "lstm_cell"},
                                             {CellKind::kGru, "gru_cell"},
                                             {CellKind::kTanh, "rnn_tanh_cell"}}));
  INFO(name);
  const RecurrentCell one = cell(fixture, kind, name + "/w_", "", DataType::kF32);
  const Tensor x = fixture.upload_array(name + "/x"), h = fixture.upload_array(name + "/in_h");
  const uint64_t rows = h.shape[0], units = h.shape[1];

  ProgramBuilder builder(tests::shared_device(), name);
  const GatePreactivations preactivations = gate_preactivations(builder, kind, rows, 1, units);
  one.input.write_to(builder, x, preactivations.inputs);
  one.hidden.write_to(builder, h, preactivations.recurrent);
  const Tensor state = builder.activation({states_of(kind), rows, units});
  const Tensor outputs = builder.activation({rows, 1, units});
  builder.keep_from_start(state);
  builder.keep(outputs);
  recurrent_cell(builder, preactivations, state, outputs, {.kind = kind});
  Program program = builder.build();

  std::vector<float> before = fixture.values(name + "/in_h");
  if (kind == CellKind::kLstm) {
    const std::vector<float> c = fixture.values(name + "/in_c");
    before.insert(before.end(), c.begin(), c.end());
  }
  BufferView view = program.view(state);
  view.size = before.size() * sizeof(float);
  upload(tests::shared_device(), view, std::as_bytes(std::span(before)));
  program.run();

  std::vector<float> after = read_back(program, state);
  check_close(read_back(program, outputs), fixture.values(name + "/out_h"), 1e-5);
  if (kind == CellKind::kLstm)
    check_close({after.begin() + rows * units, after.end()}, fixture.values(name + "/out_c"), 1e-5);
  after.resize(rows * units);
  check_close(after, fixture.values(name + "/out_h"), 1e-5);
}

TEST_CASE("Both directions over rows of unequal length, in one and two layers") {
  Fixture fixture(tests::data_dir() / "recurrent.safetensors");
  const auto [kind, name, layers] =
      GENERATE(table<CellKind, std::string, int>({{CellKind::kLstm, "bilstm", 1},
                                                  {CellKind::kGru, "bigru", 1},
                                                  {CellKind::kLstm, "bilstm_2layer", 2}}));
  const DataType weights = GENERATE(DataType::kF32, DataType::kF16);
  const double tolerance = weights == DataType::kF32 ? 1e-5 : 2e-3;
  INFO(name << " with weights " << name_of(weights));
  RecurrentStack stack;
  for (int i = 0; i < layers; ++i) {
    const std::string suffix = fmt::format("_l{}", i);
    stack.layers.push_back({cell(fixture, kind, name + "/w_", suffix, weights),
                            cell(fixture, kind, name + "/w_", suffix + "_reverse", weights)});
  }
  std::vector<uint32_t> control = {77};
  const CheckpointTensor& lengths = fixture.array(name + "/lengths");  // I64
  for (size_t i = 0; i < lengths.elements(); ++i) {
    int64_t length;
    std::memcpy(&length, lengths.bytes.data() + i * sizeof(length), sizeof(length));
    control.push_back(static_cast<uint32_t>(length));
  }
  REQUIRE(control[1] != control[2]);

  ProgramBuilder builder(tests::shared_device(), name);
  const std::vector<RecurrentLayer::Result> results =
      stack(builder, fixture.upload_array(name + "/x"),
            RowLengths{fixture.words(control), {1, static_cast<uint32_t>(control.size() - 1)}});
  for (const RecurrentLayer::Result& result : results) {
    builder.keep(result.outputs);
    builder.keep(result.forward_state);
    builder.keep(*result.backward_state);
  }
  Program program = builder.build();
  // A second replay begins from zero states again.
  for (int replay = 0; replay < 2; ++replay) {
    program.run();
    check_close(read_back(program, results.back().outputs), fixture.values(name + "/out"),
                tolerance);
    std::vector<float> hidden, cells;
    for (const RecurrentLayer::Result& result : results) {
      for (const Tensor& state : {result.forward_state, *result.backward_state}) {
        const std::vector<float> both = read_back(program, state);
        const size_t half = both.size() / states_of(kind);
        hidden.insert(hidden.end(), both.begin(), both.begin() + half);
        cells.insert(cells.end(), both.begin() + half, both.end());
      }
    }
    check_close(hidden, fixture.values(name + "/h_n"), tolerance);
    if (kind == CellKind::kLstm) check_close(cells, fixture.values(name + "/c_n"), tolerance);
  }
}

TEST_CASE("A recurrent step refuses tensors that do not fit, naming the layer") {
  ProgramBuilder builder(tests::shared_device(), "refusals");
  const auto scope = builder.scope("encoder");
  const GatePreactivations preactivations = gate_preactivations(builder, CellKind::kLstm, 2, 3, 4);
  const Tensor outputs = builder.activation({2, 3, 4}), state = builder.activation({2, 2, 4});
  using Catch::Matchers::ContainsSubstring;
  CHECK_THROWS_WITH(recurrent_cell(builder, preactivations, outputs, outputs, {}),
                    ContainsSubstring("encoder") && ContainsSubstring("(2, 2, 4)"));
  CHECK_THROWS_WITH(
      recurrent_cell(builder, preactivations, state, builder.activation({2, 4, 4}), {}),
      ContainsSubstring("length"));
  CHECK_THROWS_WITH(recurrent_cell(builder, preactivations, state, outputs, {.time = 3}),
                    ContainsSubstring("step 3 of 3"));
  CHECK_THROWS_WITH(recurrent_cell(builder, preactivations, state, outputs, {.first_column = 1}),
                    ContainsSubstring("from 1"));
}
