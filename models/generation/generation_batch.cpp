// Slots of a generation batch, its description, and memory that it gives back.
#include "models/generation/generation_batch.h"

#include "models/adapters/adapters.h"
#include "models/core/trim_memory.h"
#include "mulciber/error.h"

namespace mulciber {
namespace {

KeyValueStorage key_value_storage(DataType type) {
  switch (type) {
    case DataType::kF32: return KeyValueStorage::kF32;
    case DataType::kQ8_0: return KeyValueStorage::kQ8_0;
    default: return KeyValueStorage::kF16;
  }
}

bool has_chat_template(const OpenModel& files) {
  try {
    return files.chat_template() != nullptr;
  } catch (const ModelError&) {
    return true;  // chat_prompt() says why it cannot be read
  }
}

}  // namespace

void GenerationBatch::open_slots(const SlotShape& shape, std::optional<uint64_t> memory_limit) {
  const Capabilities& capabilities = device->capabilities();
  context = shape.context;
  slots = std::make_shared<SequenceSlots>(*device, language->network(), shape, memory_limit);
  by_slot.resize(shape.slots);
  draft_rows = shape.rows();
  left.adapters = chosen_adapters(language->network(), std::nullopt);
  steps_per_submission = capabilities.tuning.steps_per_submission;
  statistics.pages = slots->pages_left();
  statistics.page_tokens = slots->page_tokens();
  statistics.weight_bytes = model->weight_bytes();
  statistics.predicted_device_bytes =
      statistics.weight_bytes +
      SequenceSlots::predict_bytes(capabilities, language->network(), shape);
}

GeneratorDescription GenerationBatch::describe() const {
  const DecoderNetwork& network = language->network();
  const Extents extents = model->extents();
  return {.family = model->family(),
          .context = context,
          .sequences = slots->shape().slots,
          .vocabulary = network.vocabulary,
          .width = static_cast<uint32_t>(network.width()),
          .layers = extents.decoder_layers,
          .heads = extents.decoder_heads,
          .key_values = key_value_storage(network.cache),
          .chat_template = has_chat_template(*opened),
          .end_ids = ends,
          .adapters = adapter_names(network),
          .default_sampling = default_sampling(context)};
}

uint64_t GenerationBatch::trim() {
  return trim_memory(*device, [&] {
    scorer.reset();
    slots->trim();
    if (draft_model) draft_model->trim();
  });
}

}  // namespace mulciber
