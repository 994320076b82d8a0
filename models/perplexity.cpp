#include "models/perplexity.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "models/decoding/not_finite.h"
#include "mulciber/error.h"

namespace mulciber {
namespace {

constexpr uint32_t kLongestPass = 256;
// Logits of one pass; a vocabulary of 262,144 takes 1 MiB a token.
constexpr uint64_t kLogitBytes = 64 << 20;

uint32_t scored_length(uint32_t vocabulary, uint32_t context) {
  const uint64_t room = std::clamp<uint64_t>(kLogitBytes / (4ull * vocabulary), 1, kLongestPass);
  return std::min(std::bit_floor(static_cast<uint32_t>(room)), context - 1);
}

}  // namespace

TokenScorer::TokenScorer(Device& device, const DecoderNetwork& network, uint32_t context)
    : device_(device), network_(network), context_(context) {
  if (context < 2 || context > network.context)
    throw ModelError("perplexity",
                     fmt::format("a context of {} tokens is not within 2 and the model's {}",
                                 context, network.context),
                     "");
  const uint32_t length = scored_length(network.vocabulary, context);
  layout_ = plan_batch(network, {1, context}, std::min(kLongestPass, context));
  targets_ = TargetScores(layout_.control, length, network.vocabulary);
  tensors_ = batch_tensor_shapes(network, {1, context}, layout_);
  const auto allocate = [&](Tensor& tensor) {
    Buffer buffer = device.memory().allocate(tensor.bytes(), MemoryUsage::kActivations);
    tensor = buffer.tensor(tensor.shape, tensor.type);
    return buffer;
  };
  control_ = allocate(tensors_.control);
  for (Tensor& cache : tensors_.caches) cache_buffers_.push_back(allocate(cache));
  words_ = initial_words(network, layout_);
  targets_.initialize(words_);

  ProgramBuilder builder(device, "score");
  const Tensor x = decoder_tokens(builder, network, layout_, tensors_, length);  // (1, length, D)
  const auto scope = builder.layer("output");
  targets_.add(builder, network.decoder.logits(builder, x).reshaped({length, network.vocabulary}),
               tensors_.control);
  scored_.emplace(Pass{length, builder.build()});
}

void TokenScorer::run(Pass& pass, std::span<const uint32_t> ids, uint32_t begin) {
  words_.set(layout_.fed_ids(0, pass.length), ids.subspan(begin, pass.length));
  words_.set(layout_.state.positions, 0, begin);
  upload(device_, control_.view(), words_.bytes());
  pass.program.run();
}

std::vector<double> TokenScorer::score(std::span<const uint32_t> ids, uint32_t first) {
  if (ids.size() != context_ || first < 1 || first >= context_ ||
      std::ranges::any_of(ids, [&](uint32_t id) { return id >= network_.vocabulary; }))
    throw ModelError("perplexity",
                     fmt::format("{} ids from number {} on cannot be scored in a context of {}",
                                 ids.size(), first, context_),
                     "");
  // Before what is scored: keys and values alone. Where less is left than a pass takes, it takes
  // tokens again.
  const uint32_t before = first - 1;
  if (before > 0) {
    const uint32_t length = std::min({kLongestPass, layout_.longest, before});
    if (!taken_in_ || taken_in_->length != length) {
      ProgramBuilder builder(device_, "prefill");
      decoder_tokens(builder, network_, layout_, tensors_, length);
      taken_in_.emplace(Pass{length, builder.build()});
    }
    for (uint32_t end = length;; end = std::min(end + length, before)) {
      run(*taken_in_, ids, end - length);
      if (end == before) break;
    }
  }
  std::vector<double> scores;
  const uint32_t length = scored_->length;
  for (uint32_t next = first; next < context_;) {
    // Token `at` of the pass gives the probabilities of ids[begin + at + 1].
    const uint32_t begin = std::min(next - 1, context_ - 1 - length);
    for (uint32_t at = 0; at < length; ++at) targets_.set_target(words_, at, ids[begin + at + 1]);
    run(*scored_, ids, begin);
    const std::vector<double> found = targets_.read(device_, scored_->program);
    const auto lost = std::ranges::find_if(found, [](double value) { return std::isnan(value); });
    if (lost != found.end())
      refuse_logits(device_, network_.weights,
                    fmt::format("after {} tokens", begin + 1 + (lost - found.begin())), [&] {
                      return first_layer_not_finite(device_, network_, layout_, tensors_, words_, 0,
                                                    ids);
                    });
    scores.insert(scores.end(), found.begin() + (next - 1 - begin), found.end());
    next = begin + length + 1;
  }
  return scores;
}

Perplexity perplexity(
    TokenScorer& scorer, std::span<const uint32_t> ids, uint32_t context,
    std::optional<uint32_t> bos, uint32_t most_chunks,
    const std::function<bool(uint32_t done, uint32_t all, double value)>& progress) {
  if (ids.size() < 2ull * context)
    throw ModelError(
        "text",
        fmt::format("has {} tokens, and two chunks of {} are the least", ids.size(), context),
        "give a longer text, or a smaller context");
  const auto all = static_cast<uint32_t>(
      std::min<uint64_t>(ids.size() / context, most_chunks > 0 ? most_chunks : ids.size()));
  Perplexity result;
  double sum = 0, squares = 0;
  for (uint32_t chunk = 0; chunk < all; ++chunk) {
    const auto begin = ids.begin() + static_cast<std::ptrdiff_t>(chunk) * context;
    std::vector<uint32_t> own(begin, begin + context);
    if (bos) own[0] = *bos;
    // llama-perplexity scores what the tokens from number context / 2 on predict.
    for (const double score : scorer.score(own, context / 2 + 1)) {
      sum -= score;
      squares += score * score;
      ++result.tokens;
    }
    ++result.chunks;
    const double n = static_cast<double>(result.tokens), mean = sum / n;
    result.value = std::exp(mean);
    const double variance = squares / n - mean * mean;
    result.error = variance > 0 && n > 1 ? std::sqrt(variance / (n - 1)) * result.value : 0;
    if (progress && !progress(result.chunks, all, result.value)) break;
  }
  return result;
}

}  // namespace mulciber
