// Attention maps in slices, and copies into the application's images and buffers.
#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "models/core/frame_task.h"
#include "models/generation/text_attention.h"
#include "models/generation/text_generator_impl.h"
#include "models/translation/translation_attention.h"
#include "models/translation/translator_impl.h"
#include "models/vision/image_copies.h"

namespace mulciber {

struct AttentionTask::Work {
  std::shared_ptr<Device> device;
  std::shared_ptr<Translator::Impl> translator;  // one of the two
  std::shared_ptr<TextGenerator::Impl> generator;
  HeadMasks masks;
  std::unique_ptr<AttentionPass> started;  // until the task takes it
  TranslationAttention* pair = nullptr;    // one of the two
  TextAttention* text = nullptr;
  std::optional<ImageCopies> images;

  Work(std::shared_ptr<Translator::Impl> owner, const Translation& translation,
       const HeadMasks& head_masks, const AttentionRoom& room)
      : device(owner->device), translator(std::move(owner)), masks(head_masks) {
    auto made = translator->translation->start_attention(translation.source_ids, fed(translation),
                                                         masks, room.source, room.target);
    pair = made.get();
    started = std::move(made);
    images.emplace(*device, pair->largest_map());
  }
  Work(std::shared_ptr<TextGenerator::Impl> owner, const Generation& generation, uint32_t room)
      : device(owner->device), generator(std::move(owner)) {
    const std::vector<uint32_t> ids = generator->read_ids(generation);
    if (ids.empty()) throw ModelError("a text", "of no tokens has no attention", "");
    room = std::min(room, generator->context);
    generator->check_attention(std::max<size_t>(ids.size(), room));
    auto made = generator->language->start_attention(ids, room, {});
    text = made.get();
    started = std::move(made);
    images.emplace(*device, text->largest_map());
  }
  /// Input ids of the decoder.
  std::vector<uint32_t> fed(const Translation& translation) const {
    if (translation.source_ids.empty() || translation.ids.empty())
      throw ModelError("a translation", "of no tokens has no attention", "");
    return fed_ids(translator->settings({}).start, translation.ids);
  }
  const AttentionPass& pass() const {
    if (pair) return *pair;
    return *text;
  }
  std::shared_ptr<const void> model() const {
    if (translator) return translator;
    return generator;
  }
  std::shared_ptr<const void> used() const {
    if (translator) return translator->model;
    return generator->model;
  }
  const std::vector<LayerMaps>& layers(AttentionKind kind) const {
    const AttentionLayers& all = pass().layers();
    return kind == AttentionKind::kEncoder   ? all.encoder
           : kind == AttentionKind::kDecoder ? all.decoder
                                             : all.cross;
  }
  const std::vector<LayerMaps>& require_layers(AttentionKind kind) const {
    const std::vector<LayerMaps>& found = layers(kind);
    if (found.empty())
      throw SettingError("AttentionKind", "is one that the model does not have",
                         text ? "take kDecoder" : "take kCross");
    return found;
  }
  PaddedRows rows(const AttentionMap& map) const {
    const std::vector<LayerMaps>& found = require_layers(map.kind);
    if (map.layer >= found.size() || map.head >= found[map.layer].heads)
      throw SettingError("AttentionMap",
                         fmt::format("names layer {} and head {} of {} and {}", map.layer, map.head,
                                     found.size(), found.front().heads),
                         "layers() and heads() have their numbers");
    return found[map.layer].head(map.head);
  }
};

AttentionTask::AttentionTask(Translator& translator, const Translation& translation,
                             const HeadMasks& head_masks, const AttentionRoom& room)
    : AttentionTask(std::make_unique<Work>(translator.impl_, translation, head_masks, room)) {}

AttentionTask::AttentionTask(TextGenerator& generator, const Generation& text, uint32_t room)
    : AttentionTask(std::make_unique<Work>(generator.impl_, text, room)) {}

AttentionTask::AttentionTask(std::unique_ptr<Work> work)
    : FrameTask(std::make_unique<Impl>(work->device, work->model(), std::move(work->started),
                                       work->used())),
      work_(std::move(work)) {}

void AttentionTask::restart(const Translation& translation) {
  require_done();
  if (!work_->pair)
    throw SettingError("AttentionTask", "is of a language model's text", "restart it with another");
  work_->translator->translation->begin_attention(*work_->pair, translation.source_ids,
                                                  work_->fed(translation), work_->masks);
  impl_->run.restart();
}

void AttentionTask::restart(const Generation& text) {
  require_done();
  if (!work_->text)
    throw SettingError("AttentionTask", "is of a translation", "restart it with another");
  work_->text->begin(work_->generator->read_ids(text));
  impl_->run.restart();
}

AttentionTask::~AttentionTask() = default;

bool AttentionTask::recorded() const { return impl_->run.stages_recorded() > 0; }

uint32_t AttentionTask::layers(AttentionKind kind) const {
  return static_cast<uint32_t>(work_->layers(kind).size());
}

uint32_t AttentionTask::heads(AttentionKind kind) const {
  const std::vector<LayerMaps>& found = work_->layers(kind);
  return found.empty() ? 0 : found.front().heads;
}

VkExtent2D AttentionTask::extent(AttentionKind kind) const {
  const PaddedRows& first = work_->require_layers(kind).front().first;
  return {first.columns, first.rows};
}

void AttentionTask::record_attention(VkCommandBuffer commands, const ApplicationImage& to,
                                     const AttentionMap& map) {
  require_recorded();
  work_->images->record(commands, work_->rows(map), to, "an attention map");
}

void AttentionTask::record_attention(VkCommandBuffer commands, const ApplicationBuffer& to,
                                     const AttentionMap& map) {
  require_recorded();
  const Device& device = *work_->device;
  record_copy(device.vk(), commands, device.queue_family(), work_->rows(map), to,
              "an attention map");
}

void AttentionTask::require_recorded() const {
  work_->device->require_alive();
  if (!recorded())
    throw SettingError("AttentionTask", "has slices that were not recorded yet",
                       "record maps when recorded() says so");
}

void AttentionTask::require_done() const {
  work_->device->require_alive();
  if (!done())
    throw SettingError("AttentionTask", "has slices that have not ended",
                       "restart it when done() says so");
}

}  // namespace mulciber
