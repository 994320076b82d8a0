// C functions for files of models.
#include "mulciber/c/model.h"

#include "capi/handles.h"
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
