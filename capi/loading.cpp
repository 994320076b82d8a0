// C functions for incremental loading.
#include "mulciber/mulciber_c_load.h"

#include "capi/handles.h"
#include "capi/structures.h"
#include "mulciber/model_loader.h"

struct MulciberLoader {
  mulciber::ModelLoader loader;
};
struct MulciberWarmup {
  mulciber::PipelineWarmup warmup;
};

namespace mulciber::c {
namespace {

LentFile lent_file(const MulciberFile* from) {
  const auto file = of_any_version(from, "MulciberFile");
  LentFile result = {.name = &given_to(file.name, "name")};
  if (file.read) {
    result.size = file.byte_count;
    result.read = [call = file.read, user = file.user](uint64_t offset, std::span<std::byte> into) {
      return call(user, offset, into.data(), into.size());
    };
  } else if (file.byte_count > 0) {
    if (!file.bytes || file.byte_count > SIZE_MAX)
      throw SettingError(file.name, "is neither in memory nor behind a function",
                         "give bytes, or read");
    result.bytes = {static_cast<const std::byte*>(file.bytes),
                    static_cast<size_t>(file.byte_count)};
  }
  return result;
}

/// Calls `take` for each structure of a list; all have the size of the first.
template <typename Take>
void for_each_adapter(uint32_t count, const MulciberAdapter* adapters, const Take& take) {
  const auto* at = reinterpret_cast<const char*>(adapters);
  for (uint32_t i = 0; i < count; ++i, at += given_to(adapters, "adapters").size)
    take(of_any_version(reinterpret_cast<const MulciberAdapter*>(at), "MulciberAdapter"));
}

}  // namespace
}  // namespace mulciber::c

MulciberStatus mulciber_open_model_files(MulciberContext* context, const char* name, uint32_t count,
                                         const MulciberFile* files, MulciberModel** model) {
  using namespace mulciber::c;
  return guarded(context, [&] {
    given_to(model, "model") = nullptr;
    std::vector<mulciber::LentFile> lent;
    const auto* at = reinterpret_cast<const char*>(files);
    for (uint32_t i = 0; i < count; ++i, at += given_to(files, "files").size)
      lent.push_back(lent_file(reinterpret_cast<const MulciberFile*>(at)));
    *model = new MulciberModel{mulciber::open_model(std::move(lent), name ? name : "model")};
  });
}

MulciberStatus mulciber_begin_load(MulciberContext* context, MulciberDevice* device,
                                   const MulciberModel* model, const MulciberLoadInfo* from,
                                   MulciberLoader** loader) {
  return mulciber_begin_load_adapted(context, device, model, from, 0, nullptr, VK_FALSE, loader);
}

MulciberStatus mulciber_begin_load_adapted(MulciberContext* context, MulciberDevice* device,
                                           const MulciberModel* model, const MulciberLoadInfo* from,
                                           uint32_t count, const MulciberAdapter* adapters,
                                           VkBool32 merge, MulciberLoader** loader) {
  using namespace mulciber::c;
  return guarded(context, [&] {
    given_to(loader, "loader") = nullptr;
    const MulciberLoadInfo info = load_info(from);
    mulciber::GeneratorOptions options = {.load = load_options(info), .context = info.context};
    for_each_adapter(count, adapters, [&](const MulciberAdapter& adapter) {
      options.load.adapters.push_back({.path = &given_to(adapter.path, "path"),
                                       .name = adapter.name ? adapter.name : "",
                                       .scale = adapter.scale});
    });
    options.load.merge_adapters = merge != 0;
    *loader = new MulciberLoader{mulciber::ModelLoader(given_to(device, "device").device,
                                                       given_to(model, "model").model, options)};
  });
}

MulciberStatus mulciber_use_adapters(MulciberContext* context, MulciberGenerator* generator,
                                     uint32_t count, const MulciberAdapter* adapters) {
  using namespace mulciber::c;
  return guarded(context, [&] {
    std::vector<mulciber::AdapterScale> wanted;
    for_each_adapter(count, adapters, [&](const MulciberAdapter& adapter) {
      wanted.push_back({&given_to(adapter.name, "name"), adapter.scale});
    });
    given_to(generator, "generator").adapters = std::move(wanted);
  });
}

MulciberStatus mulciber_step_load(MulciberContext* context, MulciberLoader* loader, uint64_t bytes,
                                  MulciberLoadProgress* progress) {
  using namespace mulciber::c;
  return guarded(context, [&] {
    const mulciber::ModelLoader::Progress now = given_to(loader, "loader").loader.step(bytes);
    if (progress) *progress = {now.done, now.total, now.complete};
  });
}

MulciberStatus mulciber_finish_translator(MulciberContext* context, MulciberLoader* loader,
                                          MulciberTranslator** translator) {
  using namespace mulciber::c;
  return guarded(context, [&] {
    given_to(translator, "translator") = nullptr;
    *translator = new MulciberTranslator{given_to(loader, "loader").loader.translator()};
  });
}

MulciberStatus mulciber_finish_generator(MulciberContext* context, MulciberLoader* loader,
                                         MulciberGenerator** generator) {
  using namespace mulciber::c;
  return guarded(context, [&] {
    given_to(generator, "generator") = nullptr;
    *generator = new MulciberGenerator{given_to(loader, "loader").loader.generator()};
  });
}

MulciberStatus mulciber_finish_text_encoder(MulciberContext* context, MulciberLoader* loader,
                                            MulciberTextEncoder** encoder) {
  using namespace mulciber::c;
  return guarded(context, [&] {
    given_to(encoder, "encoder") = nullptr;
    *encoder = new MulciberTextEncoder{given_to(loader, "loader").loader.text_encoder()};
  });
}

void mulciber_destroy_loader(MulciberLoader* loader) { delete loader; }

MulciberStatus mulciber_warm_translator(MulciberContext* context,
                                        const MulciberTranslator* translator,
                                        const MulciberTranslateInfo* info, uint32_t source_tokens,
                                        MulciberWarmup** warmup) {
  using namespace mulciber::c;
  return guarded(context, [&] {
    given_to(warmup, "warmup") = nullptr;
    *warmup = new MulciberWarmup{mulciber::PipelineWarmup(
        given_to(translator, "translator").translator, translate_options(info), source_tokens)};
  });
}

MulciberStatus mulciber_warm_generator(MulciberContext* context, const MulciberGenerator* generator,
                                       MulciberWarmup** warmup) {
  using namespace mulciber::c;
  return guarded(context, [&] {
    given_to(warmup, "warmup") = nullptr;
    *warmup =
        new MulciberWarmup{mulciber::PipelineWarmup(given_to(generator, "generator").generator)};
  });
}

MulciberStatus mulciber_warm_text_encoder(MulciberContext* context,
                                          const MulciberTextEncoder* encoder,
                                          const MulciberEmbedInfo* info, uint32_t tokens,
                                          MulciberWarmup** warmup) {
  using namespace mulciber::c;
  return guarded(context, [&] {
    given_to(warmup, "warmup") = nullptr;
    *warmup = new MulciberWarmup{mulciber::PipelineWarmup(given_to(encoder, "encoder").encoder,
                                                          embed_options(info), tokens)};
  });
}

MulciberStatus mulciber_warm_attention(MulciberContext* context,
                                       const MulciberTranslator* translator,
                                       const MulciberGenerator* generator, uint32_t source_room,
                                       uint32_t room, MulciberWarmup** warmup) {
  using namespace mulciber::c;
  return guarded(context, [&] {
    given_to(warmup, "warmup") = nullptr;
    *warmup = new MulciberWarmup{
        translator
            ? mulciber::PipelineWarmup::of_attention(translator->translator, source_room, room)
            : mulciber::PipelineWarmup::of_attention(
                  given_to(generator, "translator or generator").generator, room)};
  });
}

MulciberStatus mulciber_prewarm(MulciberContext* context, MulciberWarmup* warmup, uint32_t count,
                                uint32_t* left) {
  using namespace mulciber::c;
  return guarded(context, [&] {
    const size_t still = given_to(warmup, "warmup").warmup.prewarm(count);
    if (left) *left = static_cast<uint32_t>(still);
  });
}

void mulciber_destroy_warmup(MulciberWarmup* warmup) { delete warmup; }

uint64_t mulciber_pipelines_made(MulciberDevice* device) {
  return device ? mulciber::pipelines_made(*device->device) : 0;
}
