// Two kinds of layers that no family has, written here alone: what they keep between passes is
// allocated, paged, shared, saved, exchanged and taken back by its description.
#include <algorithm>
#include <cmath>

#include "models/generation/sequence_slots.h"
#include "models/generation/sequence_task.h"
#include "models/generation/token_scorer.h"
#include "models/generation/traced_pass.h"
#include "ops/append_cache.h"
#include "ops/attention.h"
#include "ops/copy.h"
#include "ops/state_space.h"
#include "runtime/slices.h"
#include "tests/catch.h"
#include "tests/device.h"
#include "tests/small_decoder.h"

using namespace mulciber;
using namespace mulciber::tests;

namespace {

constexpr uint32_t kContext = 96, kNewTokens = 8, kReplaced = 1;

/// The mean of all tokens so far. Each of them stays in the cache as it is.
SequenceMixer mean_of_tokens(uint32_t width) {
  SequenceMixer mixer = {
      .name = "mean", .cache = {.columns = width, .type = DataType::kF32}, .apply = {}};
  mixer.apply = [width](ProgramBuilder& builder, const MixerInput& input) {
    append_cache(builder, input.x, input.cache,
                 {.control = input.control, .positions = input.positions, .pages = input.pages});
    const HeadColumns q = {input.x, 0}, kept = {input.cache, 0};
    const auto length = static_cast<uint32_t>(input.x.shape[1]);
    return attention(builder, q, kept, kept,
                     {.heads = 1,
                      .kv_heads = 1,
                      .head_size = width,
                      .value_size = width,
                      .scale = 0,
                      .causal = true,
                      .control = AttentionControl{.tensor = input.control,
                                                  .key_counts = input.positions,
                                                  .key_count_extra = length,
                                                  .pages = input.pages}});
  };
  return mixer;
}

/// A convolution of each column over the last three tokens, two of which are the state.
SequenceMixer short_convolution(uint32_t width, const Buffer& weights) {
  const StateSpaceSizes sizes = {.channels = width, .states = 1, .taps = 3};
  SequenceMixer mixer = {.name = "convolution",
                         .cache = {.kind = LayerCache::Kind::kState,
                                   .columns = sizes.state_columns(),
                                   .type = DataType::kF32},
                         .apply = {}};
  const Tensor taps = weights.tensor({width * 4}, DataType::kF32);
  mixer.apply = [sizes, taps](ProgramBuilder& builder, const MixerInput& input) {
    const StateSpaceWork work =
        state_space_work(builder, sizes, input.x.shape[0], input.x.shape[1]);
    copy_columns(builder, input.x, work.projected);
    causal_convolution(builder, sizes, work, taps,
                       {.tensor = input.cache,
                        .control = input.control,
                        .positions = input.positions,
                        .counts = input.counts});
    return work.convolved;
  };
  return mixer;
}

struct Toy {
  std::unique_ptr<DecoderModel> model = open_decoder(small_decoder());
  Buffer weights;
  DecoderNetwork network;

  explicit Toy(bool keeps_tokens) : network(model->network()) {
    const auto width = static_cast<uint32_t>(network.width());
    std::vector<float> taps(width * 4);
    for (size_t i = 0; i < taps.size(); ++i) taps[i] = std::sin(static_cast<float>(i));
    weights =
        shared_device().memory().allocate(taps.size() * sizeof(float), MemoryUsage::kActivations);
    upload(shared_device(), weights.view(), std::as_bytes(std::span(taps)));
    network.decoder.layers.at(kReplaced).mixer =
        keeps_tokens ? mean_of_tokens(width) : short_convolution(width, weights);
  }

  /// Logits behind the last of `ids`, by one pass over all of them.
  std::vector<float> logits(std::span<const uint32_t> ids) const {
    TracedPass pass(shared_device(), network, 1, static_cast<uint32_t>(ids.size()),
                    {.logits = true});
    pass.run(ids);
    const std::vector<float> all = pass.read("output.logits");
    return {all.end() - static_cast<std::ptrdiff_t>(network.vocabulary), all.end()};
  }
  /// The greedy continuation, each token by a pass over the whole text.
  std::vector<uint32_t> without_cache(std::vector<uint32_t> ids) const {
    const size_t first = ids.size();
    while (ids.size() < first + kNewTokens) {
      const std::vector<float> found = logits(ids);
      ids.push_back(static_cast<uint32_t>(std::ranges::max_element(found) - found.begin()));
    }
    return {ids.begin() + static_cast<std::ptrdiff_t>(first), ids.end()};
  }
};

std::vector<uint32_t> in_slot(SequenceSlots& slots, uint32_t slot,
                              const std::vector<uint32_t>& prompt) {
  std::vector<uint32_t> ids;
  for (uint32_t held = slots.begin(slot, {.prompt = prompt}); held < prompt.size();) {
    const auto fed = std::min<uint32_t>(16, static_cast<uint32_t>(prompt.size()) - held);
    held += fed;
    if (const auto choice = slots.feed(slot, fed, held == prompt.size())) ids.push_back(*choice);
  }
  return ids;
}

/// How many tokens of a prompt the only slot goes on from.
uint32_t kept_for(SequenceSlots& slots, const std::vector<uint32_t>& prompt) {
  const uint32_t held = slots.begin(0, {.prompt = prompt, .exact = false});
  slots.end(0, true);
  return held;
}

}  // namespace

TEST_CASE("What a new kind of layer keeps is decoded in slots and tasks") {
  const bool keeps_tokens = GENERATE(true, false);
  CAPTURE(keeps_tokens);
  const Toy toy(keeps_tokens);
  const std::vector<uint32_t> prompt = prompt_of(37, 3), other = prompt_of(9, 8);
  const std::vector<uint32_t> expected = toy.without_cache(prompt),
                              beside = toy.without_cache(other);
  CHECK(expected != alone(*toy.model, prompt, kNewTokens));

  const auto one = std::make_shared<SequenceSlots>(
      shared_device(), toy.network,
      conversation_slots(shared_device().capabilities(), toy.network, 1, kContext));
  CHECK(greedy(*one, other, kNewTokens) == beside);
  auto task = std::make_unique<SequenceTask>(
      one, SequenceTaskRequest{.prompt = prompt, .max_new_tokens = kNewTokens});
  SequenceTask& sequence = *task;
  SlicedRun run(shared_device(), std::move(task));
  while (!run.done()) {
    run.step(1000);
    run.wait();
  }
  CHECK(sequence.finish() == expected);

  SequenceSlots slots(shared_device(), toy.network, {.slots = 3, .context = kContext, .chunk = 16});
  std::vector<uint32_t> first = in_slot(slots, 0, prompt), second = in_slot(slots, 2, other);
  slots.exchange(0, 1);
  while (first.size() < kNewTokens) {
    const std::vector<uint32_t> taking = {1, 2};
    const std::vector<SequenceSlots::Choice> choices = slots.step(taking);
    first.push_back(choices[0].value());
    second.push_back(choices[1].value());
  }
  CHECK(first == expected);
  CHECK(second == beside);
  // A prefix is shared where tokens are kept.
  CHECK((slots.begin(0, {.prompt = prompt}) > 0) == keeps_tokens);
  CHECK(slots.can_draft() == keeps_tokens);
}

TEST_CASE("What a new kind of layer keeps is saved, taken back and scored") {
  const bool keeps_tokens = GENERATE(true, false);
  CAPTURE(keeps_tokens);
  const Toy toy(keeps_tokens);
  const std::vector<uint32_t> prompt = prompt_of(37, 3), expected = toy.without_cache(prompt);
  const std::vector<uint32_t> begin(prompt.begin(), prompt.end() - 1);

  SequenceSlots one = slots_of(toy.network, 1, kContext),
                other = slots_of(toy.network, 1, kContext);
  decode_sequence(one, 0, {.prompt = begin, .exact = false}, {.max_new_tokens = 0});
  other.restore(0, one.save(0), {});
  one.end(0, false);
  CHECK(kept_for(other, prompt) == begin.size());
  CHECK(greedy(other, prompt, kNewTokens) == expected);

  // The end of a prompt is kept, whatever was chosen behind it.
  greedy(one, begin, 3);
  CHECK(kept_for(one, prompt) == begin.size());
  CHECK(greedy(one, prompt, kNewTokens) == expected);
  // A place within a prompt is kept where tokens are.
  std::vector<uint32_t> longer = begin;
  for (const uint32_t id : prompt_of(5, 1)) longer.push_back(id);
  greedy(one, longer, 3);
  CHECK(kept_for(one, prompt) == (keeps_tokens ? begin.size() : 0));
  CHECK(greedy(one, prompt, kNewTokens) == expected);

  TokenScorer scorer(shared_device(), toy.network, kContext, 0, 16);
  std::vector<uint32_t> ids = prompt;
  ids.push_back(expected.front());
  const std::vector<float> logits = toy.logits(prompt);
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit));
  CHECK(std::abs(scorer.score(ids, 37).at(0) - (logits[expected.front()] - std::log(sum))) < 1e-4);
  scorer.score(ids, 37);
  CHECK((scorer.reused_tokens() > 0) == keeps_tokens);
}
