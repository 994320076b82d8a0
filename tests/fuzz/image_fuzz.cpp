// Image files of every format, and resizing their pixels.
#include "images/resize.h"
#include "mulciber/image.h"
#include "tests/fuzz/fuzz.h"

using namespace mulciber;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  fuzz::accepts([&] {
    const Image image = decode_image(std::as_bytes(std::span(bytes, size)), "image");
    // Every pixel is present: a sanitizer sees a read past the end.
    if (image.rgb.size() != std::size_t{image.width} * image.height * 3) std::abort();
    constexpr std::size_t kQuick = 1 << 18;
    if (image.rgb.size() < kQuick) {
      const auto filter = static_cast<Resampling>(size % 6);
      (void)resize(image, 1 + static_cast<uint32_t>(size % 37), 16, filter);
    }
  });
  return 0;
}
