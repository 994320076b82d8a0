#include "models/generation/proposal_check.h"

#include <algorithm>

#include <fmt/format.h>

#include "models/generation/not_finite.h"
#include "mulciber/error.h"

namespace mulciber {

ProposalCheck::ProposalCheck(Device& device, const DecoderNetwork& network, SequenceBatch& batch,
                             uint32_t penalty_window)
    : device_(device), network_(network), batch_(batch), window_(penalty_window) {
  const BatchShape& shape = batch.shape();
  layout_ = plan_batch(network, shape, kCheckedTokens);
  choices_ = plan_sample_state(layout_.control, kCheckedTokens, std::max(window_, 1u), 0, 0);
  tensors_ = batch_tensor_shapes(network, shape, layout_);
  tensors_.caches = batch.caches();
  control_ = device.memory().allocate(tensors_.control.bytes(), MemoryUsage::kActivations);
  tensors_.control = control_.tensor(tensors_.control.shape, DataType::kU32);
  const Shape progress = {choices_.progress_words()};
  progress_ =
      device.memory().allocate(progress.elements() * sizeof(uint32_t), MemoryUsage::kReadback);
  tensors_.progress = progress_.tensor(progress, DataType::kU32);
  words_ = initial_words(network, layout_);

  ProgramBuilder builder(device, "check");
  const Tensor x = decoder_tokens(builder, network, layout_, tensors_, {.length = kCheckedTokens});
  const auto scope = builder.layer("output");
  const std::optional<AdapterScales> scales = adapter_scales(layout_, tensors_);
  const Tensor logits = network.decoder.logits(builder, x, scales ? &*scales : nullptr)
                            .reshaped({kCheckedTokens, network.vocabulary});
  sample(builder, logits, tensors_.control, choices_, tensors_.progress);
  program_.emplace(builder.build());
}

std::vector<uint32_t> ProposalCheck::run(const Request& request) {
  const auto length = static_cast<uint32_t>(request.ids.size());
  const auto given = static_cast<uint32_t>(request.proposed.size()) + 1;
  const uint32_t context = batch_.shape().context;
  // The cache ends with the context: where fewer positions are left than a pass takes, it feeds
  // earlier tokens again.
  const uint32_t begin = std::min(length - 1, context - kCheckedTokens);
  const uint32_t first = length - 1 - begin;  // index of ids.back() in the pass
  std::vector<uint32_t> text(request.ids.begin(), request.ids.end());
  text.insert(text.end(), request.proposed.begin(), request.proposed.end());
  std::vector<uint32_t> fed(text.begin() + begin, text.end());
  fed.resize(kCheckedTokens, 0);
  words_.set(layout_.fed_ids(0, kCheckedTokens), fed);
  words_.set(layout_.state.positions, 0, begin);
  set_adapters(words_, network_, layout_, 0, request.adapters);
  std::vector<SampleRow> rows(kCheckedTokens);
  for (uint32_t i = 0; i < kCheckedTokens; ++i) {
    SampleRow& row = rows[i];
    row.idle = i < first || i >= first + given;
    if (row.idle) continue;
    row.sampling = request.sampling;
    row.stream = request.stream;
    row.history.assign(text.begin(), text.begin() + begin + i + 1);
  }
  initialize_sample_state(words_, choices_, rows);
  upload(device_, control_.view(), words_.bytes());
  auto* shown = reinterpret_cast<uint32_t*>(progress_.view().mapped);
  std::fill_n(shown, choices_.progress_words(), 0);
  program_->run();

  std::vector<uint32_t> chosen;
  for (uint32_t i = 0; i < given; ++i) {
    const uint32_t row = first + i;
    if (shown[choices_.progress_stopped(row)] == SAMPLE_NOT_FINITE) {
      batch_.truncate(0, 0);
      refuse_logits(device_, network_.weights, fmt::format("after {} tokens", length + i), [&] {
        return first_layer_not_finite(device_, network_, layout_, tensors_, words_, 0, text);
      });
    }
    chosen.push_back(shown[choices_.progress_token(row, length + i)]);
    if (i + 1 == given || chosen.back() != request.proposed[i]) break;
  }
  batch_.hold(std::span(text).first(length - 1 + chosen.size()));
  return chosen;
}

std::vector<uint32_t> look_up(std::span<const uint32_t> ids, uint32_t longest, uint32_t count) {
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
