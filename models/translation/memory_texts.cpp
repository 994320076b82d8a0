#include "models/translation/memory_texts.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "models/core/padded_ids.h"
#include "models/core/recently_used.h"
#include "models/generation/decoding.h"
#include "models/generation/not_finite.h"
#include "mulciber/error.h"
#include "runtime/transfer.h"

namespace mulciber {
namespace {

constexpr size_t kTextPassesKept = 4;
// Lengths of full passes are rounded up, so that few programs serve all texts.
constexpr uint32_t kPassLengthStep = 32;
// Lengths of prompts are rounded up too: a prompt is a few ids, or has the text of the window
// before as well.
constexpr uint32_t kPromptLengths[] = {4, 16, 64, 256};

}  // namespace

/// A step that feeds one token of each of several texts, and the caches of these.
struct MemoryTexts::Steps {
  uint32_t rows, context;
  ControlArray<uint32_t> tokens, position, lengths, ancestry;
  ControlWords words;
  Buffer control;
  std::vector<Buffer> kept;
  Tensor logits;  // (rows, 1, vocabulary)
  std::optional<Program> program;
  std::vector<Tensor> first_caches;  // the first text's, by layer: (1, context, columns)
  std::map<uint32_t, std::unique_ptr<Prompt>> prompts;  // by length
  uint32_t fed = 0;                                     // tokens of each row so far

  Steps(Device& device, const TextDecoder& decoder, std::span<const Tensor> memories,
        uint32_t row_count)
      : rows(row_count), context(decoder.context) {
    ControlLayout layout;
    tokens = layout.add<uint32_t>(rows);
    position = layout.add<uint32_t>(1);
    lengths = layout.add<uint32_t>(1);
    ancestry = layout.add<uint32_t>(uint64_t{rows} * context);
    words = ControlWords(layout.words());
    words.set(lengths, 0, static_cast<uint32_t>(memories.front().shape[1]));
    control = device.memory().allocate(words.bytes().size(), MemoryUsage::kActivations);
    const DataType type = decoder.activations;
    const Shape cache = {rows, context, decoder.memory_columns()};
    std::vector<Tensor> caches;
    for (size_t i = 0; i < memories.size(); ++i) {
      kept.push_back(
          device.memory().allocate(cache.elements() * size_of(type), MemoryUsage::kActivations));
      caches.push_back(kept.back().tensor(cache, type));
      first_caches.push_back(kept.back().tensor({1, context, decoder.memory_columns()}, type));
    }
    ProgramBuilder builder(device, "decode step");
    const Tensor control_tensor = control.tensor({words.size()}, DataType::kU32);
    logits = decoder.step(builder,
                          {.control = control_tensor,
                           .tokens = tokens,
                           .rows = rows,
                           .length = 1,
                           .first_position = position,
                           .type = type},
                          {.tensor = control_tensor, .lengths = lengths}, memories,
                          {.position = position,
                           .ancestry = rows > 1 ? std::optional(ancestry) : std::nullopt,
                           .rows_per_memory = rows,
                           .caches = caches});
    builder.keep(logits);
    program = builder.build();
  }

  /// Restarts all texts: without tokens, or with the first `tokens_before` tokens of the first
  /// text.
  void restart(uint32_t tokens_before) {
    fed = tokens_before;
    for (uint32_t row = 0; row < rows; ++row)
      for (uint32_t at = 0; at < context; ++at)
        words.set(ancestry, row * context + at, at < fed ? 0 : row);
  }
  /// Every row continues the text of its parent.
  void follow(std::span<const uint32_t> parents) {
    const std::span<const uint32_t> before = words.values(ancestry);
    const std::vector<uint32_t> old(before.begin(), before.end());
    for (uint32_t row = 0; row < rows; ++row)
      for (uint32_t at = 0; at < fed; ++at)
        words.set(ancestry, row * context + at, old[parents[row] * context + at]);
  }
};

/// A pass over the prompt of all texts. It fills the caches of the first text, whose prefix all
/// share.
struct MemoryTexts::Prompt {
  ControlArray<uint32_t> tokens, position, lengths, picked;
  ControlWords words;
  Buffer control;
  Tensor logits;  // (2, 1, vocabulary): behind the two tokens that `picked` names
  std::optional<Program> program;

  /// length: tokens. Steps overwrite what padding behind the prompt leaves.
  Prompt(Device& device, const TextDecoder& decoder, std::span<const Tensor> memories,
         std::span<const Tensor> caches, uint32_t length) {
    ControlLayout layout;
    tokens = layout.add<uint32_t>(length);
    position = layout.add<uint32_t>(1);
    lengths = layout.add<uint32_t>(1);
    picked = layout.add<uint32_t>(2);
    words = ControlWords(layout.words());
    words.set(lengths, 0, static_cast<uint32_t>(memories.front().shape[1]));
    control = device.memory().allocate(words.bytes().size(), MemoryUsage::kActivations);
    const Tensor control_tensor = control.tensor({words.size()}, DataType::kU32);
    ProgramBuilder builder(device, "prompt");
    logits = decoder.step(builder,
                          {.control = control_tensor,
                           .tokens = tokens,
                           .rows = 1,
                           .length = length,
                           .first_position = position,
                           .type = decoder.activations},
                          {.tensor = control_tensor, .lengths = lengths}, memories,
                          {.position = position, .ancestry = {}, .caches = caches}, picked);
    builder.keep(logits);
    program = builder.build();
  }
};

/// A full pass over a text, for its attention maps.
struct MemoryTexts::Pass {
  uint32_t length;  // tokens
  ControlArray<uint32_t> lengths, tokens;
  ControlWords words;
  Buffer control;
  Trace trace;
  Tensor logits;  // (1, length, vocabulary)
  std::optional<Program> program;

  Pass(Device& device, const TextDecoder& decoder, std::span<const Tensor> memories,
       uint32_t token_count)
      : length(token_count) {
    ControlLayout layout;
    lengths = layout.add<uint32_t>(1);
    tokens = layout.add<uint32_t>(length);
    words = ControlWords(layout.words());
    words.set(lengths, 0, static_cast<uint32_t>(memories.front().shape[1]));
    control = device.memory().allocate(words.bytes().size(), MemoryUsage::kActivations);
    trace.attentions = true;
    const Tensor control_tensor = control.tensor({words.size()}, DataType::kU32);
    ProgramBuilder builder(device, "maps");
    logits = decoder.pass(builder,
                          {.control = control_tensor,
                           .tokens = tokens,
                           .rows = 1,
                           .length = length,
                           .type = decoder.activations},
                          {.tensor = control_tensor, .lengths = lengths}, memories, &trace);
    builder.keep(logits);
    program = builder.build();
  }
};

MemoryTexts::MemoryTexts(Device& device, const Weights& weights, const TextDecoder& decoder,
                         std::vector<Tensor> memories, uint64_t memory_limit)
    : device_(device),
      weights_(weights),
      decoder_(decoder),
      memories_(std::move(memories)),
      memory_limit_(memory_limit) {}

MemoryTexts::~MemoryTexts() = default;

MemoryTexts::Steps& MemoryTexts::steps(uint32_t rows) {
  std::unique_ptr<Steps>& found = steps_[rows];
  if (!found) {
    const uint64_t row_bytes = uint64_t{context()} * (memories_.size() * decoder_.memory_columns() *
                                                          size_of(decoder_.activations) +
                                                      sizeof(uint32_t)) +
                               uint64_t{vocabulary()} * sizeof(float);
    require_memory(device_, rows * row_bytes, memory_limit_,
                   fmt::format("{} texts of {} tokens", rows, context()));
    found = std::make_unique<Steps>(device_, decoder_, memories_, rows);
  }
  return *found;
}

void MemoryTexts::begin(uint32_t rows) {
  if (rows == 0 || rows > kMaxBeams)
    throw ModelError("texts at a time", fmt::format("are {}, not 1 to {}", rows, kMaxBeams), "");
  running_ = &steps(rows);
  running_->restart(0);
}

void MemoryTexts::check_ids(std::span<const uint32_t> ids) const {
  for (const uint32_t id : ids) {
    if (id >= vocabulary())
      throw ModelError("text",
                       fmt::format("holds token id {}, the model's are below {}", id, vocabulary()),
                       "tokenizer and model do not belong together");
  }
}

std::span<const float> MemoryTexts::read_logits(const Program& program, const Tensor& logits) {
  logits_ = download_as<float>(device_, program.view(logits));
  if (!std::all_of(logits_.begin(), logits_.end(), [](float x) { return std::isfinite(x); }))
    refuse_logits(device_, &weights_, "of a text", [] { return std::string(); });
  return logits_;
}

MemoryTexts::Prompt& MemoryTexts::prompt_program(uint32_t length) {
  uint32_t rounded = context();
  for (const uint32_t step : kPromptLengths)
    if (step >= length) rounded = std::min(rounded, step);
  std::unique_ptr<Prompt>& found = running_->prompts[rounded];
  if (!found)
    found = std::make_unique<Prompt>(device_, decoder_, memories_, running_->first_caches, rounded);
  return *found;
}

std::span<const float> MemoryTexts::prompt(std::span<const uint32_t> ids, size_t also_behind) {
  if (!running_ || running_->fed > 0 || ids.empty() || also_behind >= ids.size())
    throw ModelError("prompt", fmt::format("of {} tokens begins no text", ids.size()), "");
  if (ids.size() > context())
    throw ModelError("text", fmt::format("passes the context of {} tokens", context()), "");
  check_ids(ids);
  const auto count = static_cast<uint32_t>(ids.size());
  Prompt& prompt = prompt_program(count);
  prompt.words.fill(prompt.tokens, 0);
  prompt.words.set(prompt.tokens.part(0, count), ids);
  prompt.words.set(prompt.picked, 0, count - 1);
  prompt.words.set(prompt.picked, 1, static_cast<uint32_t>(also_behind));
  upload(device_, prompt.control.view(), prompt.words.bytes());
  prompt.program->run();
  running_->restart(count);
  return read_logits(*prompt.program, prompt.logits);
}

std::span<const float> MemoryTexts::step(std::span<const uint32_t> tokens,
                                         std::span<const uint32_t> parents) {
  if (!running_ || tokens.size() != running_->rows)
    throw ModelError("step", fmt::format("of {} tokens was not begun", tokens.size()), "");
  Steps& steps = *running_;
  if (steps.fed >= context())
    throw ModelError("text", fmt::format("passes the context of {} tokens", context()), "");
  check_ids(tokens);
  if (steps.fed > 0 && steps.rows > 1) steps.follow(parents);
  steps.words.set(steps.tokens, tokens);
  steps.words.set(steps.position, 0, steps.fed);
  upload(device_, steps.control.view(), steps.words.bytes());
  steps.program->run();
  ++steps.fed;
  return read_logits(*steps.program, steps.logits);
}

MemoryTexts::Pass& MemoryTexts::pass(uint32_t length) {
  if (const auto* found =
          recently_used(passes_, [&](const auto& entry) { return entry->length == length; }))
    return **found;
  while (passes_.size() >= kTextPassesKept) passes_.pop_back();
  passes_.push_front(std::make_unique<Pass>(device_, decoder_, memories_, length));
  return *passes_.front();
}

void MemoryTexts::trim() {
  running_ = nullptr;
  steps_.clear();
  passes_.clear();
}

std::vector<float> MemoryTexts::cross_attention(std::span<const uint32_t> tokens,
                                                std::vector<float>* logits) {
  check_ids(tokens);
  const auto count = static_cast<uint32_t>(tokens.size());
  if (count == 0 || count > context())
    throw ModelError("text", fmt::format("has {} tokens, not 1 to {}", count, context()), "");
  const uint32_t length =
      std::min((count + kPassLengthStep - 1) / kPassLengthStep * kPassLengthStep, context());
  Pass& program = pass(length);
  program.words.fill(program.tokens, 0);
  program.words.set(program.tokens.part(0, count), tokens);
  upload(device_, program.control.view(), program.words.bytes());
  program.program->run();
  std::vector<float> result;
  for (size_t i = 0; i < memories_.size(); ++i) {
    const std::vector<float> layer =
        download_as<float>(device_, program.program->view(program.trace.at(fmt::format(
                                        "decoder.layers.{}.cross_attn.probabilities", i))));
    const uint64_t heads = decoder_.stack.layers[i].cross_attention.sizes.heads;
    const uint64_t from[] = {heads, length, positions()};
    const uint64_t to[] = {heads, count, positions()};
    const std::vector<double> cut = crop(layer, from, to);
    result.insert(result.end(), cut.begin(), cut.end());
  }
  if (logits) {
    *logits = download_as<float>(device_, program.program->view(program.logits));
    logits->resize(uint64_t{count} * vocabulary());
  }
  return result;
}

}  // namespace mulciber
