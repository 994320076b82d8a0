// The C interface: every call in a guard that turns exceptions into a status and a message.
#include "mulciber/mulciber_c_tasks.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "capi/handles.h"
#include "capi/structures.h"

#ifndef MULCIBER_VERSION
#error "capi/CMakeLists.txt defines MULCIBER_VERSION"
#endif

using namespace mulciber;
using namespace mulciber::c;

const char* mulciber_version(void) { return MULCIBER_VERSION; }

MulciberStatus mulciber_create_context(MulciberContext** context) {
  if (!context) return MULCIBER_ERROR_SETTING;
  *context = new (std::nothrow) MulciberContext;
  return *context ? MULCIBER_OK : MULCIBER_ERROR_OUT_OF_MEMORY;
}

void mulciber_destroy_context(MulciberContext* context) { delete context; }

const char* mulciber_message(const MulciberContext* context) {
  return context ? context->message.c_str() : "no context was given";
}

MulciberStatus mulciber_requirements(MulciberContext* context,
                                     const MulciberPhysicalDevice* physical_device,
                                     const MulciberModel* model, MulciberRequirements* to) {
  return mulciber_requirements_with(context, physical_device, model, nullptr, to);
}

MulciberStatus mulciber_requirements_with(MulciberContext* context,
                                          const MulciberPhysicalDevice* physical_device,
                                          const MulciberModel* model, const MulciberLoadInfo* from,
                                          MulciberRequirements* to) {
  return guarded(context, [&] {
    const HostPhysicalDevice host = host_physical(physical_device);
    MulciberRequirements result = of_any_version(to, "MulciberRequirements");
    const MulciberLoadInfo info = load_info(from);
    const GeneratorOptions options = {.load = load_options(info), .context = info.context};
    MulciberContext& c = *context;
    c.requirements = model ? requirements(host, *model->model, options) : requirements(host);
    const Requirements& found = c.requirements;
    c.list.clear();
    for (const Requirement& r : found.list)
      c.list.push_back({static_cast<MulciberRequirementKind>(r.kind), r.name.c_str(), r.required,
                        r.available, r.brings.c_str()});
    c.extensions.clear();
    for (const std::string& name : found.extensions) c.extensions.push_back(name.c_str());
    c.obstacles.clear();
    for (const std::string& obstacle : found.obstacles)
      c.obstacles += (c.obstacles.empty() ? "" : "\n") + obstacle;
    const uint32_t size = result.size;
    result = {.size = size,
              .requirement_count = static_cast<uint32_t>(c.list.size()),
              .requirements = c.list.data(),
              .extension_count = static_cast<uint32_t>(c.extensions.size()),
              .extensions = c.extensions.data(),
              .features = found.features,
              .queue_family = found.queue_family,
              .fits = found.fits(),
              .obstacles = c.obstacles.c_str(),
              .weight_bytes = found.memory.weight_bytes,
              .context_bytes = found.memory.context_bytes};
    std::memcpy(to, &result, std::min<size_t>(size, sizeof(result)));
  });
}

MulciberStatus mulciber_adopt_device(MulciberContext* context, const MulciberDeviceInfo* from,
                                     MulciberDevice** device) {
  return guarded(context, [&] {
    given_to(device, "device") = nullptr;
    const auto info = of_any_version(from, "MulciberDeviceInfo");
    const auto* cache = static_cast<const std::byte*>(info.pipeline_cache);
    HostDevice host;
    host.physical = host_physical(info.physical);
    host.device = info.device;
    host.queue = host_queue(info);
    host.enabled_extensions.assign(info.extensions, info.extensions + info.extension_count);
    host.enabled_features = info.features;
    host.allocator = host_allocator(info);
    host.memory_budget = info.memory_budget;
    if (info.memory_priority != 0) host.memory_priority = info.memory_priority;
    if (cache) host.pipeline_cache.assign(cache, cache + info.pipeline_cache_size);
    host.pipeline_threads = std::max(info.pipeline_threads, 1u);
    DeviceOptions options = {.cache_folder = info.cache_folder ? info.cache_folder : ""};
    if (info.occupancy_priority != 0) options.occupancy_priority = info.occupancy_priority;
    *device = new MulciberDevice{adopt_device(host, options)};
  });
}

MulciberStatus mulciber_open_device(MulciberContext* context, const char* name,
                                    MulciberDevice** device) {
  return guarded(context, [&] {
    given_to(device, "device") = nullptr;
    *device = new MulciberDevice{open_device({.device = name ? name : ""})};
  });
}

void mulciber_destroy_device(MulciberDevice* device) { delete device; }

MulciberStatus mulciber_pipeline_cache(MulciberContext* context, MulciberDevice* device,
                                       size_t* size, void* bytes) {
  return guarded(context, [&] {
    give_bytes(pipeline_cache(*given_to(device, "device").device), size, bytes);
  });
}

MulciberStatus mulciber_open_model(MulciberContext* context, const char* path,
                                   MulciberModel** model) {
  return guarded(context, [&] {
    given_to(model, "model") = nullptr;
    given_to(path, "path");
    *model = new MulciberModel{open_model(path)};
  });
}

void mulciber_destroy_model(MulciberModel* model) { delete model; }

MulciberStatus mulciber_load_translator(MulciberContext* context, MulciberDevice* device,
                                        const MulciberModel* model, const MulciberLoadInfo* info,
                                        MulciberTranslator** translator) {
  return guarded(context, [&] {
    given_to(translator, "translator") = nullptr;
    *translator = new MulciberTranslator{Translator(given_to(device, "device").device,
                                                    given_to(model, "model").model,
                                                    load_options(load_info(info)))};
  });
}

void mulciber_destroy_translator(MulciberTranslator* translator) { delete translator; }

MulciberStatus mulciber_load_generator(MulciberContext* context, MulciberDevice* device,
                                       const MulciberModel* model, const MulciberLoadInfo* from,
                                       MulciberGenerator** generator) {
  return guarded(context, [&] {
    given_to(generator, "generator") = nullptr;
    const MulciberLoadInfo info = load_info(from);
    const GeneratorOptions options = {.load = load_options(info), .context = info.context};
    *generator = new MulciberGenerator{
        TextGenerator(given_to(device, "device").device, given_to(model, "model").model, options)};
  });
}

MulciberStatus mulciber_new_conversation(MulciberContext* context,
                                         const MulciberGenerator* generator, uint32_t tokens,
                                         MulciberGenerator** conversation) {
  return guarded(context, [&] {
    given_to(conversation, "conversation") = nullptr;
    *conversation =
        new MulciberGenerator{given_to(generator, "generator").generator.conversation(tokens)};
  });
}

void mulciber_destroy_generator(MulciberGenerator* generator) { delete generator; }

MulciberStatus mulciber_save_snapshot(MulciberContext* context, MulciberGenerator* generator,
                                      const char* file) {
  return guarded(context, [&] {
    given_to(file, "file");
    given_to(generator, "generator").generator.save_cache(file);
  });
}

MulciberStatus mulciber_load_snapshot(MulciberContext* context, MulciberGenerator* generator,
                                      const char* file) {
  return guarded(context, [&] {
    given_to(file, "file");
    given_to(generator, "generator").generator.load_cache(file);
  });
}

MulciberStatus mulciber_take_snapshot(MulciberContext* context, MulciberGenerator* generator,
                                      size_t* size, void* bytes) {
  return guarded(context, [&] {
    give_bytes(given_to(generator, "generator").generator.save_cache(), size, bytes);
  });
}

MulciberStatus mulciber_restore_snapshot(MulciberContext* context, MulciberGenerator* generator,
                                         const void* bytes, size_t size) {
  return guarded(context, [&] {
    const auto* first = &given_to(static_cast<const std::byte*>(bytes), "bytes");
    given_to(generator, "generator").generator.load_cache(std::span(first, size));
  });
}

MulciberStatus mulciber_load_text_encoder(MulciberContext* context, MulciberDevice* device,
                                          const MulciberModel* model, const MulciberLoadInfo* info,
                                          MulciberTextEncoder** encoder) {
  return guarded(context, [&] {
    given_to(encoder, "encoder") = nullptr;
    *encoder = new MulciberTextEncoder{TextEncoder(given_to(device, "device").device,
                                                   given_to(model, "model").model,
                                                   load_options(load_info(info)))};
  });
}

void mulciber_destroy_text_encoder(MulciberTextEncoder* encoder) { delete encoder; }

uint32_t mulciber_vector_width(const MulciberTextEncoder* encoder) {
  return encoder ? encoder->encoder.width() : 0;
}

MulciberStatus mulciber_embed(MulciberContext* context, MulciberTextEncoder* encoder,
                              uint32_t count, const char* const* texts,
                              const MulciberEmbedInfo* info, float* vectors) {
  return guarded(context, [&] {
    TextEncoder& by = given_to(encoder, "encoder").encoder;
    if (count == 0) return;
    given_to(texts, "texts");
    given_to(vectors, "vectors");
    std::vector<std::string> copies;
    for (uint32_t i = 0; i < count; ++i) copies.emplace_back(&given_to(texts[i], "texts"));
    for (const TextVector& vector : by.embed(copies, embed_options(info)))
      vectors = std::copy(vector.values.begin(), vector.values.end(), vectors);
  });
}

MulciberStatus mulciber_begin_translation(MulciberContext* context, MulciberTranslator* translator,
                                          const char* text, const MulciberTranslateInfo* from,
                                          MulciberTask** task) {
  return guarded(context, [&] {
    given_to(task, "task") = nullptr;
    given_to(text, "text");
    auto made = std::make_unique<TranslationTask>(given_to(translator, "translator").translator,
                                                  text, translate_options(from));
    TranslationTask* translation = made.get();
    *task = new MulciberTask{.task = std::move(made), .translation = translation};
  });
}

MulciberStatus mulciber_begin_generation(MulciberContext* context, MulciberGenerator* generator,
                                         const char* prompt, const MulciberGenerateInfo* info,
                                         MulciberTask** task) {
  return guarded(context, [&] {
    given_to(task, "task") = nullptr;
    given_to(prompt, "prompt");
    const std::vector<PromptPart> parts = {{.text = prompt, .embeddings = {}}};
    *task = answer_task(given_to(generator, "generator"), parts, info, {});
  });
}

void mulciber_destroy_task(MulciberTask* task) { delete task; }

MulciberStatus mulciber_record(MulciberContext* context, MulciberTask* task,
                               VkCommandBuffer commands, double budget_us, MulciberSlice* slice) {
  return guarded(context, [&] {
    given_to(slice, "slice") = {};
    *slice = c_slice(given_to(task, "task").task->record(commands, budget_us));
  });
}

MulciberStatus mulciber_completed(MulciberContext* context, MulciberTask* task, uint64_t number) {
  return guarded(context, [&] { given_to(task, "task").task->completed(number); });
}

MulciberStatus mulciber_step(MulciberContext* context, MulciberTask* task, double budget_us,
                             const MulciberSemaphores* semaphores, MulciberStep* to) {
  return guarded(context, [&] {
    given_to(to, "step") = {};
    const FrameStep step =
        given_to(task, "task").task->step(budget_us, frame_semaphores(semaphores));
    *to = {c_slice(step.slice), step.waits, step.semaphore, step.value};
  });
}

MulciberStatus mulciber_wait(MulciberContext* context, MulciberTask* task) {
  return guarded(context, [&] { given_to(task, "task").task->wait(); });
}

VkBool32 mulciber_is_done(const MulciberTask* task) { return !task || task->task->done(); }

void mulciber_cancel(MulciberTask* task) {
  if (task) task->task->cancel();
}

MulciberStatus mulciber_text(MulciberContext* context, MulciberTask* task, const char** text) {
  return guarded(context, [&] {
    MulciberTask& of = given_to(task, "task");
    const char*& to = given_to(text, "text");
    const bool done = of.task->done();
    if (of.attention || of.embedding) {
      throw SettingError("task", "computes attention or a vector, and has no text",
                         "ask the translation's, or the answer's");
    } else if (of.translation) {
      const Translation found = done ? of.translation->result() : Translation{};
      of.text = found.complete ? found.text : of.translation->text();
    } else if (done) {
      of.text = of.generation->result().text;
    }
    to = of.text.c_str();
  });
}
