// C functions for image files.
#include "mulciber/c/image.h"

#include "capi/handles.h"
#include "capi/images.h"
#include "mulciber/image.h"

namespace mulciber::c {
namespace {

void give_read_image(Image read, MulciberResult** result, MulciberImage* image) {
  const auto kept = std::make_shared<const Image>(std::move(read));
  std::unique_ptr<MulciberResult> owner(new MulciberResult{kept});
  give(image, "MulciberImage", [&](MulciberImage& to) {
    const uint32_t size = to.size;
    to = shown_image(*kept);
    to.size = size;
  });
  *result = owner.release();
}

}  // namespace
}  // namespace mulciber::c

using namespace mulciber;
using namespace mulciber::c;

MulciberStatus mulciber_read_image(MulciberContext* context, const char* path,
                                   MulciberResult** result, MulciberImage* image) {
  return guarded(context, [&] {
    given_to(result, "result") = nullptr;
    give(image, "MulciberImage", [](MulciberImage&) {});  // all fields are 0 where reading fails
    give_read_image(read_image(&given_to(path, "path")), result, image);
  });
}

MulciberStatus mulciber_decode_image(MulciberContext* context, const void* bytes, size_t size,
                                     const char* name, MulciberResult** result,
                                     MulciberImage* image) {
  return guarded(context, [&] {
    given_to(result, "result") = nullptr;
    give(image, "MulciberImage", [](MulciberImage&) {});
    const auto* first = &given_to(static_cast<const std::byte*>(bytes), "bytes");
    give_read_image(decode_image(std::span(first, size), name ? name : "image"), result, image);
  });
}
