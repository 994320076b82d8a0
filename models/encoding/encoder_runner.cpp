#include "models/encoding/encoder_runner.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/clock.h"
#include "models/adapters/adapters.h"
#include "models/core/batching.h"
#include "models/core/trim_memory.h"
#include "models/core/vocabulary_check.h"
#include "mulciber/error.h"
#include "runtime/public_devices.h"

namespace mulciber {
namespace {

// Limit of a decoder's texts; rotary angles and positions take memory.
constexpr uint32_t kMostDecoderTokens = 8192;

/// Beginning of an error message, up to "has".
std::string class_of(const Checkpoint& checkpoint) {
  if (checkpoint.gguf()) return "has";
  const std::string name = checkpoint.model_class();
  return "is of class " + (name.empty() ? "none" : printable(name)) + ", which has";
}

/// Index of `part` in `whole`, from `from` on, or the end.
size_t place_of(std::span<const int32_t> part, std::span<const int32_t> whole, size_t from) {
  const auto begin = whole.begin() + static_cast<std::ptrdiff_t>(std::min(from, whole.size()));
  const auto found = std::search(begin, whole.end(), part.begin(), part.end());
  return static_cast<size_t>(found - whole.begin());
}

}  // namespace

void EncoderRunner::load(const OpenModel& opened, const LoadOptions& options, Capability capability,
                         EncoderTask task, std::shared_ptr<WeightsLoad> weights) {
  const auto start = Clock::now();
  opened.require(capability);
  const std::string where = opened.checkpoint().path().string();
  const EncoderConfig* wanted = opened.architecture().encoder();  // nullptr for decoders
  const Extents extents = opened.architecture().extents();
  if (task == EncoderTask::kClassify && wanted && !wanted->lost_head.empty())
    throw ModelError(where, wanted->lost_head, "use the model's Hugging Face folder");
  if (task != EncoderTask::kNone && (!wanted || wanted->task != task))
    throw ModelError(
        where,
        fmt::format("{} no head that {}", class_of(opened.checkpoint()), row_of(capability).does),
        task == EncoderTask::kClassify
            ? "use a checkpoint whose class ends in ForSequenceClassification"
            : "use a checkpoint whose class ends in ForQuestionAnswering");
  tokenizer = opened.tokenizer();
  check_vocabulary(*tokenizer, wanted ? wanted->vocabulary : extents.vocabulary, where);
  ModelOptions loading = model_options(options);
  if (!wanted) loading.context = std::min(extents.context, kMostDecoderTokens);
  loading.weights = std::move(weights);
  model = load_model(*device, opened, loading);
  encoder = model->encodes_text();
  statistics.weight_bytes = model->weight_bytes();
  statistics.load_seconds = seconds_since(start);
}

TokenizedInput EncoderRunner::tokenize(const std::string& text, const std::string* pair) const {
  const EncodeOptions whole = {.parse_special = false};
  const EncodeOptions bare = {.add_special = false, .parse_special = false};
  Encoding all;
  if (pair) {
    all = tokenizer->encode_pair(text, *pair, whole);
  } else {
    all.ids = tokenizer->encode(text, whole);
    all.type_ids.assign(all.ids.size(), 0);
  }
  TokenizedInput input;
  input.ids.ids.assign(all.ids.begin(), all.ids.end());
  input.ids.types.assign(all.type_ids.begin(), all.type_ids.end());
  // A model without token types may have a tokenizer with them.
  if (config().embedding.types < 2) std::ranges::fill(input.ids.types, 0);
  const std::vector<int32_t> first = tokenizer->encode(text, bare);
  input.first_begin = place_of(first, all.ids, 0);
  input.first_end = input.first_begin + first.size();
  input.second_begin = input.second_end = input.first_end;
  if (pair) {
    const std::vector<int32_t> second = tokenizer->encode(*pair, bare);
    // The last of several occurrences is the text, because only added tokens follow it.
    size_t begin = place_of(second, all.ids, input.first_end);
    for (size_t next = begin; !second.empty() && next < all.ids.size();
         next = place_of(second, all.ids, next + 1))
      begin = next;
    input.second_begin = begin;
    input.second_end = begin + second.size();
  }
  if (std::max(input.first_end, input.second_end) > all.ids.size())
    throw ModelError("tokenizer", "gives a text other tokens alone than beside what it adds",
                     "use a tokenizer.json that adds tokens around a text");
  return input;
}

void EncoderRunner::fit(TokenizedInput& input, uint32_t most, bool truncate,
                        const std::string& where) const {
  const size_t count = input.ids.ids.size();
  if (count <= most) return;
  const auto too_long = [&](const char* remedy) {
    throw ModelError(where, fmt::format("has {} tokens, the model takes at most {}", count, most),
                     remedy);
  };
  if (!truncate) too_long("let it be cut, or split it");
  size_t first = input.first_end - input.first_begin;
  size_t second = input.second_end - input.second_begin;
  if (count - first - second >= most) too_long("nothing would be left of it");
  size_t from_first = 0, from_second = 0;
  for (size_t over = count - most; over > 0; --over) {
    if (first - from_first >= second - from_second)
      ++from_first;
    else
      ++from_second;
  }
  const auto cut = [&](size_t end, size_t tokens) {
    for (std::vector<uint32_t>* list : {&input.ids.ids, &input.ids.types})
      list->erase(list->begin() + static_cast<std::ptrdiff_t>(end - tokens),
                  list->begin() + static_cast<std::ptrdiff_t>(end));
  };
  cut(input.second_end, from_second);
  cut(input.first_end, from_first);
  input.second_begin -= from_first;
  input.second_end -= from_first + from_second;
  input.first_end -= from_first;
  input.truncated = true;
}

uint64_t EncoderRunner::trim() {
  return trim_memory(*device, [&] { encoder->trim(); });
}

void EncoderRunner::begin(size_t texts) {
  statistics = {.texts = texts,
                .load_seconds = statistics.load_seconds,
                .weight_bytes = statistics.weight_bytes,
                .predicted_device_bytes = statistics.weight_bytes};
}

void EncoderRunner::run(std::span<const EncoderInput> inputs, EncoderOutput output, bool normalized,
                        const TextBatchOptions& options,
                        const std::function<void(size_t index, std::vector<float> values)>& take) {
  std::vector<uint32_t> lengths;
  for (const EncoderInput& input : inputs) {
    lengths.push_back(static_cast<uint32_t>(input.ids.size()));
    statistics.tokens += input.ids.size();
  }
  const BatchBounds bounds = {
      .tokens = options.batch_tokens,
      .sequences = options.batch_texts,
      .limit = [&](uint32_t length) { return encoder->batch_limit(length); }};
  size_t done = 0;
  for (const std::vector<size_t>& batch : plan_batches(lengths, bounds)) {
    if (options.cancel && options.cancel->load()) break;
    std::vector<EncoderInput> together;
    for (const size_t index : batch) together.push_back(inputs[index]);
    EncoderResult found = encoder->encode({together, output, normalized});
    statistics.batches += 1;
    statistics.padded_tokens += found.computed_tokens;
    statistics.prepare_seconds += found.prepare_seconds;
    statistics.run_seconds += found.run_seconds;
    statistics.predicted_device_bytes = std::max(statistics.predicted_device_bytes,
                                                 statistics.weight_bytes + found.predicted_bytes);
    for (size_t i = 0; i < batch.size(); ++i) take(batch[i], std::move(found.values[i]));
    done += batch.size();
    if (options.progress) options.progress(done, inputs.size());
  }
  statistics.peak_device_bytes = device->memory().peak();
}

}  // namespace mulciber
