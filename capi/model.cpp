// C functions for files of models.
#include "mulciber/c/model.h"

#include "capi/handles.h"
#include "capi/result.h"
#include "capi/structures.h"

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

/// Both enumerations have the same numbers.
MulciberCapability capability_in_c(ModelCapability capability) {
  static_assert(static_cast<int>(ModelCapability::kSeeImages) == MULCIBER_CAPABILITY_SEE_IMAGES);
  return static_cast<MulciberCapability>(capability);
}

struct DescribedModel {
  ModelDescription found;
  std::vector<MulciberCapability> capabilities = {};
};

std::shared_ptr<const DescribedModel> described_model(const OpenModel& model) {
  auto described = std::make_shared<DescribedModel>();
  described->found = describe(model);
  for (const ModelCapability capability : described->found.capabilities)
    described->capabilities.push_back(capability_in_c(capability));
  return described;
}

}  // namespace
}  // namespace mulciber::c

using namespace mulciber;
using namespace mulciber::c;

MulciberStatus mulciber_open_model(MulciberContext* context, const char* path,
                                   MulciberModel** model) {
  return guarded(context, [&] {
    given_to(model, "model") = nullptr;
    given_to(path, "path");
    *model = new MulciberModel{open_model(path)};
  });
}

void mulciber_destroy_model(MulciberModel* model) { delete model; }

MulciberStatus mulciber_open_model_files(MulciberContext* context, const char* name, uint32_t count,
                                         const MulciberFile* files, MulciberModel** model) {
  return guarded(context, [&] {
    given_to(model, "model") = nullptr;
    std::vector<LentFile> lent;
    const auto* at = reinterpret_cast<const char*>(files);
    for (uint32_t i = 0; i < count; ++i, at += given_to(files, "files").size)
      lent.push_back(lent_file(reinterpret_cast<const MulciberFile*>(at)));
    *model = new MulciberModel{open_model(std::move(lent), name ? name : "model")};
  });
}

MulciberStatus mulciber_describe_model(MulciberContext* context, const MulciberModel* model,
                                       MulciberModelReport* report) {
  return guarded(context, [&] {
    give(report, "MulciberModelReport", [&](MulciberModelReport& to) {
      const MulciberModel& of = given_to(model, "model");
      const std::shared_ptr<const DescribedModel> described = described_model(*of.model);
      const ModelDescription& found = described->found;
      to.supported = found.supported;
      to.path = found.path.c_str();
      to.format = found.format.c_str();
      to.family = found.family.c_str();
      to.model_class = found.model_class.c_str();
      to.capabilities = described->capabilities.data();
      to.capability_count = static_cast<uint32_t>(described->capabilities.size());
      to.chat_template = found.chat_template;
      to.files = static_cast<uint32_t>(found.files);
      to.tensors = static_cast<uint32_t>(found.tensors);
      to.parameters = found.parameters;
      to.bytes = found.bytes;
      to.vocabulary = found.vocabulary;
      to.context = found.context;
      to.encoder_layers = found.encoder_layers;
      to.encoder_heads = found.encoder_heads;
      to.decoder_layers = found.decoder_layers;
      to.decoder_heads = found.decoder_heads;
      of.described = described;
    });
  });
}

MulciberStatus mulciber_inspect_model(MulciberContext* context, const MulciberModel* model,
                                      MulciberResult** result, const char** json) {
  return guarded(context, [&] {
    given_to(result, "result") = nullptr;
    given_to(json, "json") = nullptr;
    const auto report =
        std::make_shared<const std::string>(inspect_json(*given_to(model, "model").model));
    *result = new MulciberResult{report};
    *json = report->c_str();
  });
}
