#include "models/generation/token_scorer.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>

#include <fmt/format.h>

#include "base/clock.h"
#include "models/core/token_probabilities.h"
#include "models/generation/not_finite.h"
#include "mulciber/error.h"
#include "runtime/buffer_part.h"

namespace mulciber {
namespace {

// Bytes of the logits of one pass; a vocabulary of 262,144 takes 1 MiB a token.
constexpr uint64_t kLogitBytes = 64 << 20;

/// Lengths of passes, the shortest first.
std::span<const uint32_t> pass_lengths(uint32_t chunk) {
  const auto* const end = std::ranges::upper_bound(kPassLengths, chunk);
  return {std::begin(kPassLengths), end};
}

uint32_t chunk_of(uint32_t vocabulary, uint32_t room, uint32_t longest_pass) {
  const uint64_t fitting = std::clamp<uint64_t>(kLogitBytes / (4ull * vocabulary), 1, longest_pass);
  uint32_t chunk = 1;
  for (const uint32_t length : kPassLengths)
    if (length <= fitting && length <= room) chunk = length;
  return chunk;
}

/// Tokens of the cache. Throws ModelError where the network's context is less.
uint32_t checked_room(const DecoderNetwork& network, uint32_t context, uint32_t room) {
  room = std::max(room, context);
  if (context < 1 || room > network.context)
    throw ModelError(
        "text",
        fmt::format("of {} tokens is not within 1 and the model's {}", context, network.context),
        "give a shorter one, or load the model with a larger context");
  return room;
}

}  // namespace

BatchLayout TokenScorer::plan(const DecoderNetwork& network, uint32_t room, uint32_t chunk,
                              std::vector<TargetScores>& targets) {
  BatchLayout layout = plan_batch(network, {1, room}, chunk);
  for (const uint32_t length : pass_lengths(chunk))
    targets.emplace_back(layout.control, length, network.vocabulary);
  return layout;
}

TokenScorer::TokenScorer(Device& device, const DecoderNetwork& network, uint32_t context,
                         uint32_t room, uint32_t longest_pass)
    : context_(context),
      chunk_(chunk_of(network.vocabulary, checked_room(network, context, room), longest_pass)),
      state_(device, network, {1, std::max(room, context)},
             plan(network, std::max(room, context), chunk_, targets_), {}) {
  for (const TargetScores& targets : targets_) targets.initialize(state_.words());
}

TokenScorer::Pass& TokenScorer::pass(uint32_t length, Kept kept) {
  const auto found = std::ranges::find_if(
      passes_, [&](const Pass& one) { return one.length == length && one.kept == kept; });
  if (found != passes_.end()) return *found;
  const auto start = Clock::now();
  Pass& made = passes_.emplace_back(Pass{.length = length, .kept = kept});
  const bool states = kept == Kept::kLastState || kept == Kept::kAllStates;
  made.trace.hidden_states = kept == Kept::kAllStates;
  const DecoderNetwork& network = state_.network();
  ProgramBuilder builder(state_.device(), kept == Kept::kScores ? "score" : "prefill");
  const Tensor x =
      decoder_tokens(builder, network, state_.layout(), state_.tensors(), {.length = length},
                     states ? &made.trace : nullptr);  // (1, length, D)
  const auto scope = builder.layer("output");
  if (states) made.trace.keep(builder, "normalized", x);
  if (kept == Kept::kScores) {
    const std::optional<AdapterScales> scales = adapter_scales(state_.layout(), state_.tensors());
    made.logits = network.decoder.logits(builder, x, scales ? &*scales : nullptr)
                      .reshaped({length, network.vocabulary});
    builder.keep(made.logits);
    const auto lengths = pass_lengths(chunk_);
    const auto number = static_cast<size_t>(std::ranges::find(lengths, length) - lengths.begin());
    targets_[number].add(builder, made.logits, state_.tensors().control);
  }
  made.program.emplace(builder.build());
  build_seconds_ += seconds_since(start);
  return made;
}

void TokenScorer::use_adapters(std::vector<float> scales) {
  if (scales == adapters_) return;
  adapters_ = std::move(scales);
  state_.use_adapters(0, adapters_);
  held_.clear();
}

void TokenScorer::check(std::span<const uint32_t> ids) const {
  if (ids.empty() || ids.size() > context_)
    throw ModelError("text",
                     fmt::format("has {} tokens, there is room for {}", ids.size(), context_),
                     "cut it into parts, or ask for a larger context");
  for (const uint32_t id : ids)
    if (id >= state_.network().vocabulary)
      throw ModelError("text",
                       fmt::format("holds token id {}, the model's are below {}", id,
                                   state_.network().vocabulary),
                       "tokenizer and model do not belong together");
}

std::pair<uint32_t, uint32_t> TokenScorer::next(std::span<const uint32_t> ids,
                                                uint32_t begin) const {
  const auto left = static_cast<uint32_t>(ids.size()) - begin;
  const uint32_t room = state_.room() - begin;
  uint32_t length = 1;
  for (const uint32_t one : pass_lengths(chunk_)) {
    if (one > room) break;
    length = one;
    if (one >= left) break;
  }
  return {std::min(left, length), length};
}

void TokenScorer::run(Pass& pass, std::span<const uint32_t> ids, uint32_t begin, uint32_t fed) {
  const BatchLayout& layout = state_.layout();
  state_.words().set(layout.fed_ids(0, pass.length).part(0, fed), ids.subspan(begin, fed));
  state_.set_length(0, begin);
  state_.words().set(layout.state.fed, 0, fed);
  state_.upload();
  pass.program->run();
  read_tokens_ += fed;
  // A partial pass would be longer in a longer text, so that its tokens cannot serve another text.
  held_.resize(std::min<size_t>(held_.size(), begin));
  if (fed == chunk_ && held_.size() == begin)
    held_.insert(held_.end(), ids.begin() + begin, ids.begin() + begin + fed);
}

uint32_t TokenScorer::held(std::span<const uint32_t> ids, uint32_t most) {
  if (!state_.rewinds()) return 0;
  const auto end = ids.begin() + std::min<std::ptrdiff_t>(most, std::ssize(ids));
  const auto same = std::mismatch(ids.begin(), end, held_.begin(), held_.end()).first;
  const auto tokens = static_cast<uint32_t>(same - ids.begin()) / chunk_ * chunk_;
  reused_tokens_ += tokens;
  return tokens;
}

void TokenScorer::refuse(std::span<const uint32_t> ids, uint32_t tokens) {
  held_.clear();
  refuse_logits(state_.device(), state_.network().weights, fmt::format("after {} tokens", tokens),
                [&] { return first_layer_not_finite(state_, 0, ids); });
}

std::vector<double> TokenScorer::score(std::span<const uint32_t> ids, uint32_t first) {
  std::vector<double> scores;
  for (const TokenScore& token : score(ids, first, {})) scores.push_back(token.log_probability);
  return scores;
}

std::vector<TokenScore> TokenScorer::score(std::span<const uint32_t> ids, uint32_t first,
                                           const ScoreDetails& details) {
  check(ids);
  const auto count = static_cast<uint32_t>(ids.size());
  if (first < 1)
    throw ModelError("text", "has no token before its first one, which thus has no probability",
                     "score from the second one on");
  std::vector<TokenScore> scores;
  if (first >= count) return scores;
  const bool detailed = details.ranks || details.likeliest > 0;
  const uint64_t vocabulary = state_.network().vocabulary;
  // The last token is not fed: no token is scored behind it.
  const auto read = ids.first(count - 1);
  for (uint32_t begin = held(read, first - 1); begin < read.size();) {
    const auto [fed, length] = next(read, begin);
    if (begin + fed < first) {  // keys and values alone
      run(pass(length, Kept::kNothing), read, begin, fed);
      begin += fed;
      continue;
    }
    Pass& scored = pass(length, Kept::kScores);
    const auto lengths = pass_lengths(chunk_);
    const TargetScores& targets =
        targets_[static_cast<size_t>(std::ranges::find(lengths, length) - lengths.begin())];
    for (uint32_t at = 0; at < length; ++at)
      targets.set_target(state_.words(), at, at < fed ? ids[begin + at + 1] : 0);
    run(scored, read, begin, fed);
    const std::vector<double> found = targets.read(state_.device(), *scored.program);
    // Token `at` of the pass gives the probabilities of ids[begin + at + 1].
    const uint32_t from = begin + 1 < first ? first - begin - 1 : 0;
    for (uint32_t at = from; at < fed; ++at) {
      if (std::isnan(found[at])) refuse(ids, begin + at + 1);
      scores.push_back({.id = ids[begin + at + 1], .log_probability = found[at]});
    }
    if (detailed) {
      const uint64_t row_bytes = vocabulary * sizeof(float);
      const std::vector<float> logits = download_as<float>(
          state_.device(),
          part_of(scored.program->view(scored.logits), from * row_bytes, (fed - from) * row_bytes));
      for (uint32_t row = 0; row < fed - from; ++row) {
        TokenScore& token = scores[scores.size() - (fed - from) + row];
        add_details(token, std::span(logits).subspan(row * vocabulary, vocabulary),
                    details.likeliest);
      }
    }
    begin += fed;
  }
  return scores;
}

std::vector<float> TokenScorer::states(std::span<const uint32_t> ids,
                                       std::span<const uint32_t> layers) {
  check(ids);
  const auto all = static_cast<uint32_t>(state_.network().decoder.layers.size());
  const uint64_t width = state_.network().embedding.table.shape.columns();
  for (const uint32_t layer : layers)
    if (layer > all)
      throw ModelError("layer", fmt::format("{} is not there", layer),
                       fmt::format("0 is the embedding, and {} the last", all));
  const bool last = std::ranges::all_of(layers, [&](uint32_t layer) { return layer == all; });
  std::vector<float> states(layers.size() * ids.size() * width);
  for (uint32_t begin = 0; begin < ids.size();) {
    const auto [fed, length] = next(ids, begin);
    Pass& kept = pass(length, last ? Kept::kLastState : Kept::kAllStates);
    run(kept, ids, begin, fed);
    for (size_t i = 0; i < layers.size(); ++i) {
      const uint32_t layer = layers[i];
      const std::string name = layer == all ? "output.normalized"
                               : layer == 0 ? "embedding.output"
                                            : fmt::format("layers.{}.output", layer - 1);
      const std::vector<float> values =
          download_as<float>(state_.device(), kept.program->view(kept.trace.at(name)));
      const float scale = layer == all ? 1 : state_.network().stream_scale;
      const size_t to = (i * ids.size() + begin) * width;
      for (size_t at = 0; at < fed * width; ++at) {
        if (!std::isfinite(values[at])) refuse(ids, begin + static_cast<uint32_t>(at / width) + 1);
        states[to + at] = values[at] * scale;
      }
    }
    begin += fed;
  }
  return states;
}

}  // namespace mulciber
