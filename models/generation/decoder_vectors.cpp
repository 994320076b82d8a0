#include "models/generation/decoder_vectors.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include <fmt/format.h>

#include "base/clock.h"
#include "mulciber/error.h"

namespace mulciber {

std::vector<float> pooled(std::span<const float> states, uint32_t width, EncoderOutput output,
                          bool normalized) {
  const size_t tokens = states.size() / width;
  std::vector<double> sums(width);
  if (output == EncoderOutput::kFirst || output == EncoderOutput::kLast) {
    const auto row = states.subspan(output == EncoderOutput::kFirst ? 0 : (tokens - 1) * width);
    std::copy_n(row.begin(), width, sums.begin());
  } else if (output == EncoderOutput::kMax) {
    std::copy_n(states.begin(), width, sums.begin());
    for (size_t i = width; i < states.size(); ++i)
      sums[i % width] = std::max<double>(sums[i % width], states[i]);
  } else {
    const auto count = static_cast<double>(tokens);
    const bool weighted = output == EncoderOutput::kWeightedMean;
    const double share = output == EncoderOutput::kMeanSqrtLength ? std::sqrt(count)
                         : weighted                               ? count * (count + 1) / 2
                                                                  : count;
    for (size_t i = 0; i < states.size(); ++i)
      sums[i % width] += states[i] * (weighted ? static_cast<double>(i / width + 1) : 1) / share;
  }
  if (normalized) {
    double squares = 0;
    for (const double sum : sums) squares += sum * sum;
    const double length = std::sqrt(squares);
    if (length > 0)
      for (double& sum : sums) sum /= length;
  }
  return {sums.begin(), sums.end()};
}

DecoderVectors::DecoderVectors(Device& device, const DecoderNetwork& network,
                               const DecoderConfig& config, std::string family)
    : device_(device), network_(network), family_(std::move(family)) {
  config_.width = config.width;
  config_.vocabulary = config.vocabulary;
  config_.context = network.context;
  config_.embedding.columns = static_cast<uint32_t>(network.embedding.table.shape.columns());
}

void DecoderVectors::add_dense(const DenseModule&) {
  throw ModelError(family_ + " model", "has a Dense module behind its pooling",
                   "products behind the vectors of decoder-only models are not supported");
}

TokenScorer& DecoderVectors::scorer_for(size_t tokens) {
  // Beyond LongRoPE's original context angles are others: text and scorer must be on the same side
  // of it.
  const size_t original = network_.decoder.original_context();
  const bool is_long = original > 0 && tokens > original;
  if (scorer_ && scorer_->context() >= tokens &&
      (original == 0 || (scorer_->context() > original) == is_long))
    return *scorer_;
  scorer_.reset();
  size_t wanted = std::min<size_t>(std::bit_ceil(tokens), network_.context);
  if (original > 0 && !is_long) wanted = std::min(wanted, original);
  return scorer_.emplace(device_, network_, static_cast<uint32_t>(std::max(wanted, tokens)));
}

EncoderResult DecoderVectors::encode(const EncoderRequest& request) {
  if (request.output == EncoderOutput::kPooler || request.output == EncoderOutput::kLogits ||
      request.output == EncoderOutput::kSpans)
    throw ModelError(family_ + " model", "has no pooler and no head that classifies",
                     "ask for the state of the last token, or for the mean");
  EncoderResult result;
  const auto layers = static_cast<uint32_t>(network_.decoder.layers.size());
  for (const EncoderInput& input : request.inputs) {
    const auto start = Clock::now();
    if (input.ids.empty() || input.ids.size() > network_.context)
      throw ModelError(
          "text",
          fmt::format("has {} tokens, the model takes 1 to {}", input.ids.size(), network_.context),
          "cut it into parts");
    TokenScorer& scorer = scorer_for(input.ids.size());
    const double built = scorer.build_seconds();
    const std::vector<float> states = scorer.states(input.ids, {&layers, 1});
    result.values.push_back(
        request.output == EncoderOutput::kStates
            ? states
            : pooled(states, config_.width, request.output, request.normalized));
    result.computed_tokens += input.ids.size();
    const double building = scorer.build_seconds() - built;
    result.prepare_seconds += building;
    result.run_seconds += seconds_since(start) - building;
  }
  return result;
}

std::unique_ptr<EncodingPass> DecoderVectors::start(const EncodingStart&) {
  throw ModelError(family_ + " model", "is a decoder, whose vectors are not made in slices",
                   "call TextEncoder::embed(), or take an encoder");
}

}  // namespace mulciber
