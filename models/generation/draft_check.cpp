#include "models/generation/draft_check.h"

#include <algorithm>

#include <fmt/format.h>

#include "models/generation/not_finite.h"
#include "mulciber/error.h"

namespace mulciber {

BatchLayout DraftCheck::plan(const DecoderNetwork& network, const BatchShape& shape,
                             uint32_t window, SampleStateLayout& choices) {
  BatchLayout layout = plan_batch(network, shape, kCheckedTokens);
  choices = plan_sample_state(layout.control, kCheckedTokens, std::max(window, 1u), 0, 0);
  return layout;
}

DraftCheck::DraftCheck(Device& device, const DecoderNetwork& network, SequenceBatch& batch,
                       uint32_t penalty_window)
    : batch_(batch),
      window_(penalty_window),
      state_(device, network, batch.shape(), plan(network, batch.shape(), penalty_window, choices_),
             {.caches = batch.caches()}) {
  const Shape progress = {choices_.progress_words()};
  progress_buffer_ =
      device.memory().allocate(progress.elements() * sizeof(uint32_t), MemoryUsage::kReadback);
  progress_ = progress_buffer_.tensor(progress, DataType::kU32);

  ProgramBuilder builder(device, "check");
  const Tensor x = decoder_tokens(builder, network, state_.layout(), state_.tensors(),
                                  {.length = kCheckedTokens});
  const auto scope = builder.layer("output");
  const std::optional<AdapterScales> scales = adapter_scales(state_.layout(), state_.tensors());
  const Tensor logits = network.decoder.logits(builder, x, scales ? &*scales : nullptr)
                            .reshaped({kCheckedTokens, network.vocabulary});
  sample(builder, logits, state_.tensors().control, choices_, progress_);
  program_.emplace(builder.build());
}

std::vector<uint32_t> DraftCheck::run(const Request& request) {
  const auto length = static_cast<uint32_t>(request.ids.size());
  const auto given = static_cast<uint32_t>(request.drafted.size()) + 1;
  const uint32_t context = batch_.shape().context;
  // The cache ends with the context: where fewer positions are left than a pass takes, it feeds
  // earlier tokens again.
  const uint32_t begin = std::min(length - 1, context - kCheckedTokens);
  const uint32_t first = length - 1 - begin;  // index of ids.back() in the pass
  std::vector<uint32_t> text(request.ids.begin(), request.ids.end());
  text.insert(text.end(), request.drafted.begin(), request.drafted.end());
  std::vector<uint32_t> fed(text.begin() + begin, text.end());
  fed.resize(kCheckedTokens, 0);
  state_.words().set(state_.layout().fed_ids(0, kCheckedTokens), fed);
  state_.set_length(0, begin);
  state_.use_adapters(0, request.adapters);
  std::vector<SampleRow> rows(kCheckedTokens);
  for (uint32_t i = 0; i < kCheckedTokens; ++i) {
    SampleRow& row = rows[i];
    row.idle = i < first || i >= first + given;
    if (row.idle) continue;
    row.sampling = request.sampling;
    row.stream = request.stream;
    row.history.assign(text.begin(), text.begin() + begin + i + 1);
  }
  initialize_sample_state(state_.words(), choices_, rows);
  state_.upload();
  auto* shown = reinterpret_cast<uint32_t*>(progress_.view.mapped);
  std::fill_n(shown, choices_.progress_words(), 0);
  program_->run();

  std::vector<uint32_t> chosen;
  for (uint32_t i = 0; i < given; ++i) {
    const uint32_t row = first + i;
    if (shown[choices_.progress_stopped(row)] == SAMPLE_NOT_FINITE) {
      batch_.truncate(0, 0);
      refuse_logits(state_.device(), state_.network().weights,
                    fmt::format("after {} tokens", length + i),
                    [&] { return first_layer_not_finite(state_, 0, text); });
    }
    chosen.push_back(shown[choices_.progress_token(row, length + i)]);
    if (i + 1 == given || chosen.back() != request.drafted[i]) break;
  }
  batch_.hold(std::span(text).first(length - 1 + chosen.size()));
  return chosen;
}

std::vector<uint32_t> prompt_lookup(std::span<const uint32_t> ids, uint32_t longest,
                                    uint32_t count) {
  std::vector<uint32_t> found;
  const size_t size = ids.size();
  for (size_t length = std::min<size_t>(longest, size > 0 ? size - 1 : 0);
       length >= std::min(longest, 2u) && length > 0; --length) {
    const auto latest = ids.last(length);
    for (size_t begin = size - length; begin-- > 0;) {
      if (!std::ranges::equal(ids.subspan(begin, length), latest)) continue;
      for (size_t i = 0; i < count; ++i) {
        const size_t at = begin + length + i;
        found.push_back(at < size ? ids[at] : found[at - size]);
      }
      return found;
    }
  }
  return found;
}

}  // namespace mulciber
