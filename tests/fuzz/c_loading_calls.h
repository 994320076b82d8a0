// Calls of the C interface that load models, ask devices, and prepare what tasks use.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "tests/fuzz/c_run.h"

namespace mulciber::fuzz {

/// Each function reads its arguments from the input, makes one call and checks what it returns.
struct LoadingCalls {
  static void embed(Run& r) {
    MulciberEmbedInfo info;
    MulciberApplicationBuffer rows;
    MulciberTextEncoder* encoder = r.text_encoders.pick(r.in);
    const std::string one = r.in.text(), other = r.in.text();
    const char* const texts[] = {one.c_str(), r.in.or_null(other.c_str())};
    std::vector<float> vectors(size_t{2} * std::max(mulciber_vector_width(encoder), 1u));
    const auto* given = r.embed_info(info, rows);
    r.told(mulciber_embed(r.context(), encoder, r.in.byte() % 3, r.in.or_null(texts), given,
                          r.in.or_null(vectors.data())));
  }
  static void make_grammar(Run& r) {
    const std::string text = r.in.text();
    MulciberGrammar* grammar = nullptr;
    const int kind = r.in.rarely() ? 0x7fffffff : r.in.byte() % 6;
    r.grammars.add(r.made(mulciber_make_grammar(r.context(), static_cast<MulciberGrammarKind>(kind),
                                                r.in.or_null(text.c_str()), &grammar),
                          grammar));
  }
  static void use_adapters(Run& r) {
    auto adapter = r.in.structure<MulciberAdapter>();
    const std::string name = r.in.text();
    adapter.scale = r.in.single();
    adapter.name = r.in.or_null(name.c_str());
    MulciberGenerator* generator = r.generators.pick(r.in);
    r.told(mulciber_use_adapters(r.context(), generator, r.in.flag(), r.in.or_null(&adapter)));
  }
  static void snapshot(Run& r) {
    MulciberGenerator* generator = r.generators.pick(r.in);
    const char* file = r.in.or_null("/nonexistent/snapshot");
    size_t size = 0;
    if (r.in.flag()) {
      r.told(r.in.flag() ? mulciber_save_snapshot(r.context(), generator, file)
                         : mulciber_load_snapshot(r.context(), generator, file));
    } else if (mulciber_take_snapshot(r.l.context, generator, &size, nullptr) == MULCIBER_OK) {
      require(size > 0, "a snapshot has a head");
      std::vector<uint8_t> bytes(size);
      if (r.in.rarely()) size = r.in.byte() % (size + 1);
      r.told(mulciber_take_snapshot(r.context(), generator, &size, bytes.data()));
      for (uint8_t wrong = r.in.byte() % 4; wrong > 0; --wrong)
        bytes[r.in.number() % bytes.size()] ^= r.in.byte();
      const size_t given = r.in.rarely() ? r.in.number() % (bytes.size() + 1) : bytes.size();
      r.told(mulciber_restore_snapshot(r.context(), r.generators.pick(r.in), bytes.data(), given));
    }
  }
  static void converse(Run& r) {
    MulciberGenerator *other = nullptr, *generator = r.generators.pick(r.in);
    const uint32_t tokens = r.in.number();
    r.generators.add(
        r.made(mulciber_new_conversation(r.context(), generator, tokens, &other), other));
  }

  static void load(Run& r) {
    MulciberLoadInfo info;
    MulciberDevice* device = r.devices.pick(r.in);
    const MulciberModel* model = r.models.pick(r.in);
    const auto* given = r.load_info(info);
    MulciberTranslator* translator = nullptr;
    MulciberGenerator* generator = nullptr;
    MulciberTextEncoder* text = nullptr;
    MulciberImageEncoder* image = nullptr;
    MulciberLoader* loader = nullptr;
    MulciberContext* c = r.context();
    switch (r.in.byte() % 5) {
      case 0:
        return r.translators.add(
            r.made(mulciber_load_translator(c, device, model, given, &translator), translator));
      case 1:
        return r.generators.add(
            r.made(mulciber_load_generator(c, device, model, given, &generator), generator));
      case 2:
        return r.text_encoders.add(
            r.made(mulciber_load_text_encoder(c, device, model, given, &text), text));
      case 3:
        return r.image_encoders.add(
            r.made(mulciber_load_image_encoder(c, device, model, given, &image), image));
      default:
        return r.loaders.add(r.made(mulciber_begin_load(c, device, model, given, &loader), loader));
    }
  }
  static void step_load(Run& r) {
    auto progress = r.in.structure<MulciberLoadProgress>();
    MulciberLoader* loader = r.loaders.pick(r.in);
    const uint64_t bytes = r.in.number();
    r.told(mulciber_step_load(r.context(), loader, bytes, r.in.or_null(&progress)));
  }
  static void finish_load(Run& r) {
    MulciberLoader* loader = r.loaders.pick(r.in);
    MulciberTranslator* translator = nullptr;
    MulciberGenerator* generator = nullptr;
    MulciberTextEncoder* encoder = nullptr;
    MulciberImageEncoder* image = nullptr;
    MulciberContext* c = r.context();
    switch (r.in.byte() % 4) {
      case 0:
        return r.translators.add(
            r.made(mulciber_finish_translator(c, loader, &translator), translator));
      case 1:
        return r.generators.add(
            r.made(mulciber_finish_generator(c, loader, &generator), generator));
      case 2:
        return r.image_encoders.add(
            r.made(mulciber_finish_image_encoder(c, loader, &image), image));
      default:
        return r.text_encoders.add(
            r.made(mulciber_finish_text_encoder(c, loader, &encoder), encoder));
    }
  }
  static void open_files(Run& r) {
    std::array<MulciberFile, 2> files = {};
    const char* const names[] = {"config.json", "model.safetensors", "model.gguf", "", nullptr};
    const uint32_t size = r.in.size_of<MulciberFile>() == 8 ? 8 : sizeof(files[0]);
    for (MulciberFile& file : files) {
      const std::string& bytes = r.files.emplace_back(r.in.text());
      file.size = size;
      file.name = names[r.in.byte() % std::size(names)];
      file.byte_count = bytes.size();
      if (r.in.flag()) {
        file.user = const_cast<std::string*>(&bytes);
        file.read = [](void* user, uint64_t offset, void* into, size_t count) -> size_t {
          const auto& from = *static_cast<const std::string*>(user);
          return offset > from.size() ? 0 : from.copy(static_cast<char*>(into), count, offset);
        };
        if (r.in.rarely()) file.byte_count = r.in.number();
      } else {
        file.bytes = r.in.or_null(bytes.data());
      }
    }
    if (r.in.rarely()) files[0].size = r.in.byte() & 4;
    MulciberModel* model = nullptr;
    const char* name = r.in.or_null("pack");
    r.models.add(r.made(mulciber_open_model_files(r.context(), name, r.in.byte() % 3,
                                                  r.in.or_null(files.data()), &model),
                        model));
  }
  static void open(Run& r) {
    MulciberModel* model = nullptr;
    MulciberDevice* device = nullptr;
    if (r.in.flag())
      return r.models.add(
          r.made(mulciber_open_model(r.context(), r.in.or_null("/nonexistent"), &model), model));
    auto info = r.in.structure<MulciberOpenDeviceInfo>();
    info.device = "no device of that name";
    if (r.in.rarely()) info.limits = "no-such-limit";
    info.queue_priority = static_cast<MulciberQueuePriority>(r.in.byte() % 6);
    info.set_occupancy_priority = r.in.flag();
    info.occupancy_priority = r.in.single();
    // A structure that ends before the name would open a device.
    if (info.size == 8) info.size = sizeof(info);
    r.devices.add(r.made(mulciber_create_device(r.context(), &info, &device), device));
  }

  static void adopt(Run& r) {
    MulciberDeviceInfo info = r.l.lent();
    MulciberPhysicalDevice physical = r.l.vulkan.physical;
    const char* const nameless[] = {nullptr};
    const std::string cache = r.in.text();
    info.physical = &physical;
    switch (r.in.byte() % 16) {
      case 1: info.size = r.in.size_of<MulciberDeviceInfo>(); break;
      case 2: info.physical = nullptr; break;
      case 3: physical.size = r.in.size_of<MulciberPhysicalDevice>(); break;
      case 4: physical.instance = VK_NULL_HANDLE; break;
      case 5: physical.physical_device = VK_NULL_HANDLE; break;
      case 6: physical.get_instance_proc_addr = nullptr; break;
      case 7: physical.api_version = r.in.flag() ? 0 : VK_API_VERSION_1_0; break;
      case 8: info.device = VK_NULL_HANDLE; break;
      case 9: info.queue = VK_NULL_HANDLE; break;
      case 10: info.extensions = nullptr; break;
      case 11: info.extension_count = 1, info.extensions = nameless; break;
      case 12: info.lock_queue = [](void*) {}; break;
      case 13: info.memory_priority = r.in.single(); break;
      case 14: info.occupancy_priority = r.in.single(); break;
      case 15: info.pipeline_cache = cache.data(), info.pipeline_cache_size = cache.size(); break;
      default: break;
    }
    MulciberDevice* device = nullptr;
    r.devices.add(r.made(mulciber_adopt_device(r.context(), r.in.or_null(&info), &device), device));
  }
  static void enable(Run& r) {
    VkPhysicalDeviceVulkan12Features own{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
    VkPhysicalDeviceFeatures2 chain{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
    if (r.in.flag()) chain.pNext = &own;
    MulciberRequirements asked = r.l.vulkan.asked;
    asked.size = r.in.size_of<MulciberRequirements>();
    if (r.in.rarely()) asked.features = nullptr;
    uint32_t count = 0;
    const MulciberUnplacedFeature* unplaced = nullptr;
    r.told(mulciber_enable_features(r.context(), r.in.or_null(&asked), r.in.or_null(&chain),
                                    r.in.or_null(&count), r.in.or_null(&unplaced)));
    for (uint32_t i = 0; unplaced && i < count; ++i)
      require(unplaced[i].structure_count > 0, "a structure that can hold a feature");
  }
  static void ask(Run& r) {
    auto found = r.in.structure<MulciberRequirements>();
    auto report = r.in.structure<MulciberDeviceReport>();
    auto borders = r.in.structure<MulciberBorders>();
    MulciberPhysicalDevice physical = r.l.vulkan.physical;
    MulciberLoadInfo info;
    std::vector<uint8_t> cache(r.in.byte());
    size_t size = cache.size();
    MulciberDevice* device = r.devices.pick(r.in);
    const auto* given = r.load_info(info);
    switch (r.in.byte() % 5) {
      case 0:
        physical.size = r.in.size_of<MulciberPhysicalDevice>();
        if (r.in.rarely()) physical.api_version = VK_API_VERSION_1_0;
        return r.told(mulciber_query_requirements(r.context(), r.in.or_null(&physical),
                                                  r.models.pick(r.in), given,
                                                  r.in.or_null(&found)));
      case 1: return r.told(mulciber_describe_device(r.context(), device, r.in.or_null(&report)));
      case 2:
        return r.told(mulciber_pipeline_cache(r.context(), device, r.in.or_null(&size),
                                              r.in.or_null(cache.data())));
      case 3: return r.told(mulciber_borders(r.context(), r.in.or_null(&borders)));
      default: return enable(r);
    }
  }
  static void warm(Run& r) {
    MulciberTranslateInfo translate;
    MulciberEmbedInfo embed;
    MulciberApplicationBuffer rows;
    MulciberWarmup* warmup = nullptr;
    const MulciberTranslator* translator = r.translators.pick(r.in);
    const MulciberGenerator* generator = r.generators.pick(r.in);
    const uint32_t tokens = r.in.number(), room = r.in.number();
    MulciberStatus status = MULCIBER_OK;
    switch (r.in.byte() % 4) {
      case 0: {
        const auto* info = r.translate_info(translate);
        status = mulciber_warm_translator(r.context(), translator, info, tokens, &warmup);
        break;
      }
      case 1: status = mulciber_warm_generator(r.context(), generator, &warmup); break;
      case 2: {
        const auto* info = r.embed_info(embed, rows);
        const MulciberTextEncoder* encoder = r.text_encoders.pick(r.in);
        status = mulciber_warm_text_encoder(r.context(), encoder, info, tokens, &warmup);
        break;
      }
      default:
        status = mulciber_warm_attention(r.context(), translator, generator, tokens, room, &warmup);
    }
    r.warmups.add(r.made(status, warmup));
  }
  static void prewarm(Run& r) {
    MulciberWarmup* warmup = r.warmups.pick(r.in);
    uint32_t left = 0;
    r.told(mulciber_prewarm(r.context(), warmup, r.in.byte() % 4, r.in.or_null(&left)));
  }
  static void trim(Run& r) {
    MulciberTranslator* translator = r.translators.pick(r.in);
    r.told(mulciber_trim(r.context(), translator));
  }
  static void destroy(Run& r) {
    switch (r.in.byte() % 10) {
      case 0: return r.devices.destroy_last();
      case 1: return r.models.destroy_last();
      case 2: return r.translators.destroy_last();
      case 3: return r.generators.destroy_last();
      case 4: return r.text_encoders.destroy_last();
      case 5: return r.image_encoders.destroy_last();
      case 6: return r.grammars.destroy_last();
      case 7: return r.loaders.destroy_last();
      case 8: return r.warmups.destroy_last();
      default: return r.tasks.destroy_last();
    }
  }
};

}  // namespace mulciber::fuzz
