#include "models/encoding/text_encoder_model.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include <fmt/format.h>

#include "base/clock.h"
#include "models/adapters/weights_load.h"
#include "models/core/padded_ids.h"
#include "models/core/recently_used.h"
#include "models/core/vector_cosines.h"
#include "models/encoding/encoding_pass.h"
#include "models/families/registry.h"
#include "models/generation/not_finite.h"
#include "mulciber/error.h"

namespace mulciber {
namespace {

// Lengths are rounded up to multiples of it, so that few programs serve all texts.
constexpr uint32_t kTextLengthStep = 8;
constexpr size_t kEncoderProgramsKept = 24;
constexpr uint64_t kProgramBytesKept = 256ull << 20;
constexpr uint32_t kMostRows = 1024;
// A batch is packed if its tokens fill less than this share of the padded rectangle: packing and
// unpacking take two dispatches a layer.
constexpr double kPackedShare = 0.95;

/// Rounds up, by at most a 32nd or to a multiple of 8, so that few programs serve all batches.
uint32_t rounded_tokens(uint32_t tokens) {
  const uint32_t step = std::max(kTextLengthStep, std::bit_floor(tokens) / 32);
  return (tokens + step - 1) / step * step;
}

/// Rounds up to 1, 2, 3, 4, 6, 8, 12, ...: at most a third of a batch is padding.
uint32_t rounded_rows(uint32_t rows) {
  const uint32_t power = std::bit_ceil(rows), between = power / 4 * 3;
  return rows <= between ? between : power;
}

bool finite(std::span<const float> values) {
  return std::all_of(values.begin(), values.end(),
                     [](float value) { return std::isfinite(value); });
}

}  // namespace

struct TextEncoderModel::Shape {
  uint32_t rows, length;
  uint32_t packed;  // see TextEncoderControl::packed
  EncoderOutput output;
  bool normalized;
  bool operator==(const Shape&) const = default;
};

struct TextEncoderModel::Programs {
  Shape shape;
  TextEncoderControl layout;
  Buffer control;
  ControlWords words;  // words without texts
  Tensor result;
  std::optional<Program> program;

  Programs(Device& device, const TextEncoderNetwork& network, const Shape& wanted)
      : shape(wanted), layout(network.plan_control(shape.rows, shape.length, shape.packed)) {
    control = device.memory().allocate(uint64_t{layout.words} * sizeof(uint32_t),
                                       MemoryUsage::kActivations);
    words = network.initial_words(layout);
    const Tensor control_tensor = control.tensor({layout.words}, DataType::kU32);
    ProgramBuilder builder(device, "encode");
    const Tensor states = network.states(builder, control_tensor, layout);
    const auto scope = builder.layer("output");
    result = encoder_output(builder, network, shape.output, states, control_tensor, layout);
    if (shape.normalized) result = unit_length(builder, result);
    builder.keep(result);
    program = builder.build();
  }
};

TextEncoderModel::TextEncoderModel(Device& device, const Checkpoint& checkpoint,
                                   const EncoderConfig& config, const ModelOptions& options)
    : device_(device),
      family_(model_type(checkpoint)),
      config_(config),
      half_precision_(options.activations == DataType::kF16 ||
                      options.matrices == MatrixStorage::kF16),
      memory_limit_(options.memory_limit),
      weights_(weights_of(device, declared_weights<TextEncoderNetwork>(config, checkpoint).table(),
                          checkpoint, family_, options)),
      network_(loaded_network<TextEncoderNetwork>(device, weights_, checkpoint, config,
                                                  options.activations)) {}

TextEncoderModel::~TextEncoderModel() = default;

void TextEncoderModel::trim() { programs_.clear(); }

void TextEncoderModel::add_dense(const DenseModule& module) {
  const std::string name = fmt::format("dense.{}", dense_modules_++);
  LoadedWeights weights(device_, weights_);
  Linear linear{
      weights.computed({name + ".weight", {module.out, module.in}, [&] { return module.weight; }})};
  if (!module.bias.empty())
    linear.bias = weights.computed({name + ".bias", {module.out}, [&] { return module.bias; }});
  programs_.clear();
  network_.add_dense(std::move(linear), module.activation);
}

Extents TextEncoderModel::extents() const { return extents_of(config_); }

uint64_t TextEncoderModel::batch_bytes(const Shape& shape) const {
  const uint64_t places = uint64_t{shape.rows} * shape.length;
  const uint64_t columns = shape.packed > 0 ? shape.packed * network_.live_columns() +
                                                  places * network_.attention_columns()
                                            : places * network_.live_columns();
  const TextEncoderControl control = network_.plan_control(shape.rows, shape.length, shape.packed);
  return columns * size_of(network_.activations()) +
         shape.rows * network_.pair_bytes(shape.length) +
         uint64_t{control.words} * sizeof(uint32_t);
}

uint32_t TextEncoderModel::batch_limit(uint32_t length) {
  const uint64_t available = device_.memory().available();
  const uint64_t memory = memory_limit_ > 0 ? std::min(memory_limit_, available) : available;
  const uint32_t rounded = rounded_length(length);
  const uint64_t row_bytes =
      std::max(uint64_t{rounded} * network_.widest_columns() * size_of(network_.activations()),
               network_.pair_bytes(rounded) + sizeof(uint32_t));
  uint32_t best = 1;
  // Only half of the memory is used, because programs of another shape may still exist.
  for (uint32_t rows = 1; rows <= kMostRows; ++rows) {
    const uint32_t places = rounded_rows(rows) * rounded;
    const Shape shape = {rounded_rows(rows), rounded, places, EncoderOutput::kMean, false};
    if (shape.rows * row_bytes > device_.capabilities().max_storage_range ||
        batch_bytes(shape) > memory / 2)
      break;
    best = rows;
  }
  return best;
}

TextEncoderModel::Programs& TextEncoderModel::programs(const Shape& shape) {
  if (const auto* found =
          recently_used(programs_, [&](const auto& entry) { return entry->shape == shape; }))
    return **found;
  const uint64_t bytes = batch_bytes(shape);
  const auto kept = [&] {
    uint64_t sum = 0;
    for (const auto& entry : programs_) sum += entry->program->plan().arena_bytes;
    return sum;
  };
  while (!programs_.empty() &&
         (programs_.size() >= kEncoderProgramsKept || kept() + bytes > kProgramBytesKept ||
          bytes > device_.memory().available()))
    programs_.pop_back();
  require_memory(device_, bytes, memory_limit_,
                 fmt::format("a batch of {} x {} tokens", shape.rows, shape.length));
  programs_.push_front(std::make_unique<Programs>(device_, network_, shape));
  return *programs_.front();
}

void TextEncoderModel::check(const EncoderRequest& request) const {
  const auto refuse = [&](std::string problem, const char* remedy) {
    throw ModelError(family_ + " model", std::move(problem), remedy);
  };
  if (request.output == EncoderOutput::kLogits && config_.task != EncoderTask::kClassify)
    refuse("was not trained to classify",
           "use a checkpoint of a model for sequence classification");
  if (request.output == EncoderOutput::kSpans && config_.task != EncoderTask::kAnswer)
    refuse("was not trained to find answers", "use a checkpoint of a model for question answering");
  if (request.output == EncoderOutput::kPooler && !has_pooler())
    refuse("has no pooler", "ask for the state of the first token, or for the mean");
  for (const EncoderInput& input : request.inputs) {
    if (input.ids.empty() || input.ids.size() > config_.context)
      throw ModelError(
          "text",
          fmt::format("has {} tokens, the model takes 1 to {}", input.ids.size(), config_.context),
          "cut it into parts");
    if (!input.types.empty() && input.types.size() != input.ids.size())
      throw ModelError(
          "text", fmt::format("has {} tokens and {} types", input.ids.size(), input.types.size()),
          "");
    for (const uint32_t id : input.ids)
      if (id >= config_.vocabulary)
        throw ModelError(
            "text",
            fmt::format("holds token id {}, the model's are below {}", id, config_.vocabulary),
            "tokenizer and model do not belong together");
    const uint32_t kinds = std::max(config_.embedding.types, 1u);
    for (const uint32_t type : input.types)
      if (type >= kinds)
        throw ModelError("text",
                         fmt::format("holds token type {}, the model's are below {}", type, kinds),
                         "tokenizer and model do not belong together");
  }
}

uint32_t TextEncoderModel::rounded_length(size_t tokens) const {
  const auto rounded =
      static_cast<uint32_t>((tokens + kTextLengthStep - 1) / kTextLengthStep * kTextLengthStep);
  return std::min(rounded, config_.context);
}

std::unique_ptr<EncodingPass> TextEncoderModel::start(const EncodingStart& start) {
  // The number of embeddings is checked like a number of ids.
  EncoderInput input = start.input;
  if (start.embeddings) input.ids.assign(start.tokens, 0);
  check({{&input, 1}, start.output, start.normalized});
  return std::make_unique<EncodingPass>(device_, network_, start, rounded_length(start.tokens));
}

std::vector<PipelineKey> TextEncoderModel::pipelines(uint32_t tokens, EncoderOutput output,
                                                     bool normalized) const {
  std::vector<PipelineKey> keys;
  const uint32_t longest = rounded_length(std::min(tokens, config_.context));
  for (uint32_t length = 0; length < longest;) {
    length = rounded_length(length + 1);
    for (const bool from_embeddings : {false, true}) {
      const std::vector<PipelineKey> some = EncodingPass::pipelines(
          device_.capabilities(), network_, length, output, normalized, from_embeddings);
      keys.insert(keys.end(), some.begin(), some.end());
    }
  }
  return keys;
}

TextEncoderModel::Shape TextEncoderModel::shape_for(const EncoderRequest& request) const {
  size_t longest = 0, tokens = 0;
  for (const EncoderInput& input : request.inputs) {
    longest = std::max(longest, input.ids.size());
    tokens += input.ids.size();
  }
  const auto texts = static_cast<uint32_t>(request.inputs.size());
  const uint32_t rows = rounded_rows(texts), length = rounded_length(longest);
  const uint32_t packed = rounded_tokens(static_cast<uint32_t>(tokens));
  const bool pays = packed < kPackedShare * rows * length;
  return {rows, length, pays ? packed : 0, request.output, request.normalized};
}

EncoderResult TextEncoderModel::encode(const EncoderRequest& request) {
  if (request.inputs.empty()) return {};
  check(request);
  const auto start = Clock::now();
  const Shape shape = shape_for(request);
  Programs& programs = this->programs(shape);
  ControlWords words = programs.words;
  uint32_t first = 0;
  for (uint32_t row = 0; row < request.inputs.size(); ++row) {
    const EncoderInput& input = request.inputs[row];
    const auto tokens = static_cast<uint32_t>(input.ids.size());
    if (shape.packed > 0)
      network_.set_packed_row(words, programs.layout, row, first, input.ids, input.types);
    else
      network_.set_row(words, programs.layout, row, input.ids, input.types, tokens);
    first += tokens;
  }
  EncoderResult result;
  result.computed_tokens = shape.packed > 0 ? shape.packed : uint64_t{shape.rows} * shape.length;
  result.predicted_bytes = batch_bytes(shape);
  result.prepare_seconds = seconds_since(start);

  const auto running = Clock::now();
  upload(device_, programs.control.view(), words.bytes());
  programs.program->run();
  const std::vector<float> values =
      download_as<float>(device_, programs.program->view(programs.result));
  result.run_seconds = seconds_since(running);
  const size_t of_row = values.size() / shape.rows;
  for (size_t row = 0; row < request.inputs.size(); ++row) {
    const EncoderInput& input = request.inputs[row];
    const bool of_tokens =
        request.output == EncoderOutput::kSpans || request.output == EncoderOutput::kStates;
    const size_t count = of_tokens ? of_row / shape.length * input.ids.size() : of_row;
    const auto first = values.begin() + static_cast<std::ptrdiff_t>(row * of_row);
    result.values.emplace_back(first, first + static_cast<std::ptrdiff_t>(count));
    if (!finite(result.values.back())) refuse_result(input);
  }
  return result;
}

void TextEncoderModel::refuse_result(const EncoderInput& input) {
  NamedArray ids = {{1, input.ids.size()}, {input.ids.begin(), input.ids.end()}};
  refuse_numbers(device_, &weights_, "states of a text", [&]() -> std::string {
    const std::vector<std::string> wanted = {"hidden_states"};
    const NamedArrays found = forward({{"input_ids", ids}}, wanted);
    const NamedArray& states = found.at("hidden_states");
    const size_t of_layer = states.values.size() / (config_.layers.size() + 1);
    const auto bad = std::find_if(states.values.begin(), states.values.end(),
                                  [](double value) { return !std::isfinite(value); });
    if (bad == states.values.end()) return "";
    const size_t layer = static_cast<size_t>(bad - states.values.begin()) / of_layer;
    return layer == 0 ? "the embedding" : fmt::format("layer {}", layer - 1);
  });
}

NamedArrays TextEncoderModel::forward(const NamedArrays& inputs,
                                      std::span<const std::string> wanted) {
  PaddedIds ids =
      read_padded_ids(family_, inputs, "input_ids", config_.vocabulary, config_.context);
  PaddedIds types = {.ids = std::vector<uint32_t>(ids.ids.size())};
  if (inputs.count("token_type_ids") > 0)
    types = read_padded_ids(family_, inputs, "token_type_ids",
                            std::max(config_.embedding.types, 1u), config_.context);
  if (types.ids.size() != ids.ids.size())
    throw ModelError(family_ + " input `token_type_ids`", "does not have the shape of input_ids",
                     "");
  apply_right_padding(family_, ids, inputs);

  Trace trace;
  trace.hidden_states = wants(wanted, "hidden_states");
  trace.attentions = wants(wanted, "attentions");
  const TextEncoderControl layout = network_.plan_control(ids.rows, ids.length);
  const Buffer control = device_.memory().allocate(uint64_t{layout.words} * sizeof(uint32_t),
                                                   MemoryUsage::kActivations);
  ControlWords words = network_.initial_words(layout);
  for (uint32_t row = 0; row < ids.rows; ++row) {
    const uint64_t first = uint64_t{row} * ids.length;
    network_.set_row(words, layout, row, std::span(ids.ids).subspan(first, ids.length),
                     std::span(types.ids).subspan(first, ids.length), ids.lengths[row]);
  }
  const Tensor control_tensor = control.tensor({layout.words}, DataType::kU32);
  ProgramBuilder builder(device_, "forward");
  const Tensor states = network_.states(builder, control_tensor, layout, &trace);
  {
    const auto scope = builder.layer("result");
    trace.keep(builder, "states", states);
    if (has_pooler()) trace.keep(builder, "pooler", network_.pooler_output(builder, states));
    if (config_.task == EncoderTask::kClassify)
      trace.keep(builder, "logits", network_.logits(builder, states, control_tensor, layout));
    if (config_.task == EncoderTask::kAnswer)
      trace.keep(builder, "spans", network_.spans(builder, states));
  }
  Program program = builder.build();
  upload(device_, control.view(), words.bytes());
  program.run();

  const uint64_t rows = ids.rows, length = ids.length, layers = config_.layers.size();
  NamedArrays results;
  const auto append = [&](NamedArray& array, const std::string& name) {
    const std::vector<float> values = download_as<float>(device_, program.view(trace.at(name)));
    array.values.insert(array.values.end(), values.begin(), values.end());
  };
  const auto add = [&](const char* name, const char* traced, std::vector<uint64_t> shape) {
    results[name] = {std::move(shape), {}};
    append(results[name], traced);
  };
  add("last_hidden_state", "result.states", {rows, length, config_.width});
  if (has_pooler()) add("pooler_output", "result.pooler", {rows, config_.width});
  if (config_.task == EncoderTask::kClassify)
    add("logits", "result.logits", {rows, config_.labels.size()});
  if (config_.task == EncoderTask::kAnswer) {
    NamedArray both;
    append(both, "result.spans");
    for (const size_t side : {0u, 1u}) {
      NamedArray& logits = results[side == 0 ? "start_logits" : "end_logits"];
      logits.shape = {rows, length};
      for (size_t i = side; i < both.values.size(); i += 2) logits.values.push_back(both.values[i]);
    }
  }
  if (trace.hidden_states) {
    NamedArray& all = results["hidden_states"];
    all.shape = {layers + 1, rows, length, config_.width};
    append(all, "embedding.output");
    for (uint64_t i = 0; i < layers; ++i)
      append(all, i + 1 == layers ? "result.states" : fmt::format("layers.{}.output", i));
  }
  if (trace.attentions) {
    NamedArray& all = results["attentions"];
    all.shape = {layers, rows, config_.heads, length, length};
    for (uint64_t i = 0; i < layers; ++i)
      append(all, fmt::format("layers.{}.self_attn.probabilities", i));
  }
  keep_wanted(results, wanted);
  return results;
}

}  // namespace mulciber
