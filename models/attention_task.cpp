// Attention maps in slices, and into images and buffers of the host's.
#include <fmt/format.h>

#include "models/decoding/attention_pass.h"
#include "models/frame_task.h"
#include "models/translator_impl.h"

namespace mulciber {

struct AttentionTask::Work {
  std::shared_ptr<Translator::Impl> translator;
  std::unique_ptr<AttentionPass> started;  // until the task has it
  const AttentionPass* pass = nullptr;

  Work(std::shared_ptr<Translator::Impl> owner, const Translation& translation,
       const HeadMasks& masks)
      : translator(std::move(owner)) {
    if (translation.source_ids.empty() || translation.ids.empty())
      throw ModelError("a translation", "of no tokens has no attention", "");
    const uint32_t start = translator->settings({}).start;
    started = translator->translation->start_attention(translation.source_ids,
                                                       fed_ids(start, translation.ids), masks);
    pass = started.get();
  }
  const std::vector<LayerMaps>& layers(AttentionKind kind) const {
    const std::vector<LayerMaps>& found = kind == AttentionKind::kEncoder   ? pass->encoder
                                          : kind == AttentionKind::kDecoder ? pass->decoder
                                                                            : pass->cross;
    if (found.empty())
      throw SettingError("AttentionKind", "is one that the model does not have", "take kCross");
    return found;
  }
  PaddedRows rows(const AttentionMap& map) const {
    const std::vector<LayerMaps>& found = layers(map.kind);
    if (map.layer >= found.size() || map.head >= found[map.layer].heads)
      throw SettingError("AttentionMap",
                         fmt::format("names layer {} and head {} of {} and {}", map.layer, map.head,
                                     found.size(), found.front().heads),
                         "Translator::extents() has their numbers");
    return found[map.layer].head(map.head);
  }
};

AttentionTask::AttentionTask(Translator& translator, const Translation& translation,
                             const HeadMasks& head_masks)
    : AttentionTask(std::make_unique<Work>(translator.impl_, translation, head_masks)) {}

AttentionTask::AttentionTask(std::unique_ptr<Work> work)
    : FrameTask(std::make_unique<Impl>(work->translator->device, work->translator,
                                       std::move(work->started))),
      work_(std::move(work)) {}

AttentionTask::~AttentionTask() = default;

bool AttentionTask::recorded() const { return impl_->run.stages_recorded() > 0; }

VkExtent2D AttentionTask::extent(AttentionKind kind) const {
  const PaddedRows& first = work_->layers(kind).front().first;
  return {first.columns, first.rows};
}

void AttentionTask::record_attention(VkCommandBuffer commands, const HostImage& to,
                                     const AttentionMap& map) {
  require_recorded();
  const Device& device = *work_->translator->device;
  record_copy(device.vk(), commands, device.queue_family(), work_->rows(map), to,
              "an attention map");
}

void AttentionTask::record_attention(VkCommandBuffer commands, const HostBuffer& to,
                                     const AttentionMap& map) {
  require_recorded();
  const Device& device = *work_->translator->device;
  record_copy(device.vk(), commands, device.queue_family(), work_->rows(map), to,
              "an attention map");
}

void AttentionTask::require_recorded() const {
  work_->translator->device->require_alive();
  if (!recorded())
    throw SettingError("AttentionTask", "has slices that were not recorded yet",
                       "record maps when recorded() says so");
}

}  // namespace mulciber
