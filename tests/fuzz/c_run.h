// What fuzz targets of the C interface load once, and what one input makes: structures filled by
// choice, objects, and checks of what calls return.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "mulciber/c/batch_generator.h"
#include "tests/fuzz/choices.h"
#include "tests/fuzz/vulkan_session.h"

namespace mulciber::fuzz {

constexpr uint32_t kContext = 64;  // tokens that generators hold

[[noreturn]] inline void find(const char* what, const char* message) {
  std::fprintf(stderr, "%s: %s\n", what, message);
  std::abort();
}

inline void require(bool holds, const char* what) {
  if (!holds) find("does not hold", what);
}

/// What is loaded once, because it takes longer than all calls of an input.
struct Loaded {
  VulkanSession vulkan;
  MulciberContext* context = nullptr;
  MulciberDevice* device = nullptr;
  std::array<MulciberModel*, 4> models = {};
  MulciberTranslator* translator = nullptr;
  MulciberGenerator* generator = nullptr;
  MulciberTextEncoder* text_encoder = nullptr;
  MulciberImageEncoder* image_encoder = nullptr;
  MulciberBatchGenerator* batch = nullptr;

  Loaded() {
    require(mulciber_create_context(&context) == MULCIBER_OK, "a context");
    const MulciberDeviceInfo info = lent();
    works(mulciber_adopt_device(context, &info, &device));
    const char* source = std::getenv("MULCIBER_SOURCE");
    const char* const folders[] = {"tests/data/marian", "tests/data/gemma3",
                                   "tests/data/roberta_cls", "assets/vit-digits"};
    for (size_t i = 0; i < models.size(); ++i) {
      const std::string path = std::string(source ? source : ".") + "/" + folders[i];
      works(mulciber_open_model(context, path.c_str(), &models[i]));
    }
    MulciberLoadInfo load = {sizeof(load)};
    load.context = kContext;
    works(mulciber_load_translator(context, device, models[0], nullptr, &translator));
    works(mulciber_load_generator(context, device, models[1], &load, &generator));
    works(mulciber_load_text_encoder(context, device, models[2], nullptr, &text_encoder));
    works(mulciber_load_image_encoder(context, device, models[3], nullptr, &image_encoder));
    load.sequences = 2;
    works(mulciber_load_batch_generator(context, device, models[1], &load, nullptr, &batch));
  }
  MulciberDeviceInfo lent() const {
    MulciberDeviceInfo info = {sizeof(info)};
    info.physical = &vulkan.physical;
    info.device = vulkan.device;
    info.extension_count = vulkan.asked.extension_count;
    info.extensions = vulkan.asked.extensions;
    info.features = vulkan.asked.features;
    info.queue = vulkan.queue;
    info.queue_family = vulkan.asked.queue_family;
    info.memory_budget = 256 << 20;
    return info;
  }
  void works(MulciberStatus status) const {
    if (status != MULCIBER_OK) find("loading failed", mulciber_message(context));
  }
};

/// The tasks of an input. What was recorded has ended, because it is waited for at once.
struct Tasks {
  struct Task {
    MulciberTask* handle;
    uint64_t recorded = 0;
  };
  static constexpr size_t kMost = 6;
  MulciberContext* context;
  std::vector<Task> all = {};

  ~Tasks() {
    while (!all.empty()) destroy_last();
  }
  Task pick(Choices& in) const {
    const size_t at = in.byte() % (all.size() + 1);
    return at < all.size() ? all[at] : Task{nullptr};
  }
  void recorded(const MulciberTask* task, uint64_t number) {
    for (Task& each : all)
      if (each.handle == task) each.recorded = std::max(each.recorded, number);
  }
  void add(MulciberTask* task) {
    if (!task) return;
    if (all.size() == kMost) destroy_last();
    all.push_back({task});
  }
  void destroy_last() {
    if (all.empty()) return mulciber_destroy_task(nullptr);
    mulciber_completed(context, all.back().handle, all.back().recorded);
    mulciber_destroy_task(all.back().handle);
    all.pop_back();
  }
};

/// One input: its choices, and the objects that its calls make.
struct Run {
  Run(Loaded& loaded, const uint8_t* bytes, size_t size) : l(loaded), in(bytes, size) {}
  ~Run() { mulciber_use_adapters(l.context, l.generator, 0, nullptr); }
  /// A context, or NULL, which is refused without a message.
  MulciberContext* context() { return last = in.or_null(l.context); }
  void told(MulciberStatus status) const {
    if (!last) return require(status == MULCIBER_ERROR_SETTING, "a call without a context fails");
    const char* message = mulciber_message(last);
    switch (status) {
      case MULCIBER_OK: return;
      case MULCIBER_ERROR_UNAVAILABLE:
      case MULCIBER_ERROR_OUT_OF_MEMORY:
      case MULCIBER_ERROR_KERNEL:
      case MULCIBER_ERROR_SETTING:
      case MULCIBER_ERROR_MODEL: break;
      default: find("a status that no argument can cause", message);
    }
    require(message[0] != '\0', "an error has a message");
  }
  /// object: is read after the call that makes it.
  template <typename T>
  T* made(MulciberStatus status, T* const& object) const {
    told(status);
    if (last) require((status == MULCIBER_OK) == (object != nullptr), "an object or an error");
    return object;
  }

  const MulciberApplicationBuffer* buffer(MulciberApplicationBuffer& to) {
    to = in.structure<MulciberApplicationBuffer>();
    to.buffer = in.rarely() ? VK_NULL_HANDLE : l.vulkan.buffer;
    to.offset = 4 * (in.byte() % 64);
    to.bytes = VulkanSession::kBytes - to.offset;
    if (in.flag()) to.bytes = std::min<VkDeviceSize>(to.bytes, in.number());
    to.stages = in.flag() ? VK_PIPELINE_STAGE_TRANSFER_BIT : 0;
    return in.or_null(&to);
  }
  const MulciberApplicationImage* image(MulciberApplicationImage& to) {
    constexpr int kFormats[] = {VK_FORMAT_R32_SFLOAT, 0, VK_FORMAT_D32_SFLOAT, 12345, 0x7fffffff};
    constexpr int kLayouts[] = {0, 1, 7, 8, 9, 1000001002, 999999999, 0x7fffffff};
    to = in.structure<MulciberApplicationImage>();
    to.image = in.rarely() ? VK_NULL_HANDLE : l.vulkan.image;
    to.format = static_cast<VkFormat>(kFormats[in.rarely() ? in.byte() % std::size(kFormats) : 0]);
    to.extent = VulkanSession::kTexels;
    to.offset = {in.byte() - 8, in.byte() - 8};
    to.layout = static_cast<VkImageLayout>(kLayouts[in.byte() % std::size(kLayouts)]);
    to.final_layout = static_cast<VkImageLayout>(kLayouts[in.byte() % std::size(kLayouts)]);
    return in.or_null(&to);
  }
  MulciberAttentionKind kind() {
    constexpr int kKinds[] = {0, 1, 2, 3, 9, 0x7fffffff};
    return static_cast<MulciberAttentionKind>(kKinds[in.byte() % std::size(kKinds)]);
  }
  const MulciberAttentionMap* map(MulciberAttentionMap& to) {
    to = in.structure<MulciberAttentionMap>();
    to.kind = kind();
    if (in.flag()) to.layer = in.number(), to.head = in.number();
    return in.or_null(&to);
  }
  const MulciberPatchMap* map(MulciberPatchMap& to) {
    to = in.structure<MulciberPatchMap>();
    if (in.flag()) to.layer = in.number(), to.head = in.number();
    to.of_patch = in.flag();
    to.patch = in.number();
    return in.or_null(&to);
  }
  const MulciberLoadInfo* load_info(MulciberLoadInfo& to) {
    to = in.structure<MulciberLoadInfo>();
    to.context = in.rarely() ? in.number() : kContext;
    to.half_weights = in.flag();
    to.half_activations = in.flag();
    if (in.rarely()) to.memory_limit = in.number();
    if (in.rarely()) {
      constexpr int kTypes[] = {0, 1, 2, 3, 0x7fffffff};
      to.key_values = static_cast<MulciberKeyValueStorage>(kTypes[in.byte() % std::size(kTypes)]);
      to.sequences = in.byte() % 4;
      to.fast_activations = in.flag();
      head = in.structure<MulciberHeadNumber>();
      head.layer = in.byte() % 4;
      head.head = in.byte() % 8;
      to.masked_heads = in.or_null(&head);
      to.masked_head_count = in.flag();
    }
    if (in.rarely()) {
      adapter = in.structure<MulciberAdapter>();
      adapter.scale = in.single();
      adapter.path = in.or_null("/nonexistent/adapter");
      to.adapters = in.or_null(&adapter);
      to.adapter_count = 1;
      to.merge_adapters = in.flag();
    }
    return in.or_null(&to);
  }
  const MulciberTranslateInfo* translate_info(MulciberTranslateInfo& to) {
    to = in.structure<MulciberTranslateInfo>();
    to.beams = in.rarely() ? in.number() : in.byte() % 4;
    to.max_new_tokens = in.number();
    return in.or_null(&to);
  }
  const MulciberEmbedInfo* embed_info(MulciberEmbedInfo& to, MulciberApplicationBuffer& rows) {
    to = in.structure<MulciberEmbedInfo>();
    to.refuse_long = in.flag();
    if (in.flag()) to.prompt = "say: ";
    if (in.flag()) to.embeddings = buffer(rows);
    to.tokens = in.number();
    return in.or_null(&to);
  }
  /// Records into the application's command buffer, and runs what was recorded whole.
  template <typename Record>
  void records(const Record& record) {
    l.vulkan.run([&](VkCommandBuffer commands) {
      const MulciberStatus status = record(in.rarely() ? VK_NULL_HANDLE : commands);
      told(status);
      return status == MULCIBER_OK;
    });
  }

  Loaded& l;
  Choices in;
  MulciberContext* last = nullptr;
  MulciberAdapter adapter = {};
  MulciberHeadNumber head = {};
  std::deque<std::string> files;  // outlive the models made of them
  Objects<MulciberDevice, mulciber_destroy_device> devices{l.device};
  Objects<MulciberModel, mulciber_destroy_model> models{l.models};
  Objects<MulciberTranslator, mulciber_destroy_translator> translators{l.translator};
  Objects<MulciberGenerator, mulciber_destroy_generator> generators{l.generator};
  Objects<MulciberTextEncoder, mulciber_destroy_text_encoder> text_encoders{l.text_encoder};
  Objects<MulciberImageEncoder, mulciber_destroy_image_encoder> image_encoders{l.image_encoder};
  Objects<MulciberGrammar, mulciber_destroy_grammar> grammars;
  Objects<MulciberLoader, mulciber_destroy_loader> loaders;
  Objects<MulciberWarmup, mulciber_destroy_warmup> warmups;
  Tasks tasks{l.context};
};

}  // namespace mulciber::fuzz
