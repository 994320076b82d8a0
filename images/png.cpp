// PNG files, decoded by libpng; images/formats.h declares the reader.
#include "images/formats.h"
#include "mulciber/error.h"

#ifdef MULCIBER_READS_PNG
#include <png.h>

#include <csetjmp>
#include <cstring>
#include <vector>
#endif

namespace mulciber {

#ifndef MULCIBER_READS_PNG

StoredImage decode_png(std::span<const std::byte>, const std::string& where) {
  throw ModelError(
      where, "is a PNG file, and this build reads none: MULCIBER_IMAGES",
      "install libpng-dev and build with -DMULCIBER_IMAGES=ON, or give another format");
}

#else

namespace {

// Deflate expands a byte to at most 1032 bytes: a file that claims more pixels is truncated.
constexpr uint64_t kMostFromByte = 1032;
constexpr png_alloc_size_t kMostChunkBytes = 16 << 20;

/// libpng reports an error by longjmp: between the longjmp and the setjmp of a member function
/// there may be only C code, and locals without a destructor.
class PngReader {
 public:
  PngReader(std::span<const std::byte> bytes, const std::string& where)
      : bytes_(bytes), where_(where) {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, fail, warn);
    info_ = png_ ? png_create_info_struct(png_) : nullptr;
    if (!info_) {
      png_destroy_read_struct(&png_, nullptr, nullptr);
      refuse("could not be read: out of memory");
    }
  }
  ~PngReader() { png_destroy_read_struct(&png_, &info_, nullptr); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;

  StoredImage decode() {
    check_chunks();
    if (!read_header()) refuse(problem_);
    check_image_size(width_, height_, where_);
    if (stored_bytes_ / kMostFromByte > bytes_.size()) refuse("ends before its pixels do");
    // Every format is converted to 8-bit RGB.
    if (!choose_form() || row_bytes_ != size_t{width_} * 3) refuse(problem_);
    StoredImage stored = {empty_image(width_, height_)};
    std::vector<png_bytep> rows(height_);
    for (size_t y = 0; y < height_; ++y) rows[y] = &stored.image.rgb[y * row_bytes_];
    if (!read_rows(rows.data())) refuse(problem_);
    stored.orientation = orientation_;
    return stored;
  }

 private:
  static void fail(png_structp png, png_const_charp message) {
    auto* reader = static_cast<PngReader*>(png_get_error_ptr(png));
    std::strncpy(reader->problem_, message, sizeof(problem_) - 1);
    png_longjmp(png, 1);
  }
  static void warn(png_structp, png_const_charp) {}
  static void take(png_structp png, png_bytep to, size_t count) {
    auto* reader = static_cast<PngReader*>(png_get_io_ptr(png));
    if (count > reader->bytes_.size() - reader->at_) png_error(png, "ends before its pixels do");
    std::memcpy(to, reader->bytes_.data() + reader->at_, count);
    reader->at_ += count;
  }
  [[noreturn]] void refuse(const std::string& problem) const {
    throw ModelError(where_, "is a PNG file that cannot be read: " + problem,
                     "it is damaged or was cut off");
  }

  /// Throws for a chunk longer than the file: libpng allocates the length that eXIf claims.
  void check_chunks() const {
    constexpr uint64_t kSignature = 8, kAround = 12;  // length, name and checksum of a chunk
    for (uint64_t at = kSignature; at < bytes_.size();) {
      uint64_t length = 0;
      for (uint64_t i = at; i < at + 4 && i < bytes_.size(); ++i)
        length = length << 8 | static_cast<uint64_t>(bytes_[i]);
      if (length + kAround > bytes_.size() - at) refuse("ends before its pixels do");
      if (std::memcmp(&bytes_[at + 4], "IEND", 4) == 0) return;
      at += length + kAround;
    }
  }

  bool read_header() {
    if (setjmp(png_jmpbuf(png_))) return false;
    png_set_read_fn(png_, this, take);
    png_set_user_limits(png_, 0x7fffffff, 0x7fffffff);
    png_set_chunk_malloc_max(png_, kMostChunkBytes);
    png_read_info(png_, info_);
    width_ = png_get_image_width(png_, info_);
    height_ = png_get_image_height(png_, info_);
    stored_bytes_ = uint64_t{png_get_rowbytes(png_, info_)} * height_;
    return true;
  }
  bool choose_form() {
    if (setjmp(png_jmpbuf(png_))) return false;
    png_set_expand(png_);
    png_set_scale_16(png_);
    png_set_gray_to_rgb(png_);
    png_set_strip_alpha(png_);
    png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    row_bytes_ = png_get_rowbytes(png_, info_);
    return true;
  }
  bool read_rows(png_bytepp rows) {
    if (setjmp(png_jmpbuf(png_))) return false;
    png_read_image(png_, rows);
    png_read_end(png_, info_);
#ifdef PNG_eXIf_SUPPORTED
    png_uint_32 size = 0;
    png_bytep exif = nullptr;
    if (png_get_eXIf_1(png_, info_, &size, &exif) != 0)
      orientation_ = exif_orientation({reinterpret_cast<const std::byte*>(exif), size});
#endif
    return true;
  }

  std::span<const std::byte> bytes_;
  const std::string& where_;
  size_t at_ = 0;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  uint32_t width_ = 0, height_ = 0, orientation_ = 1;
  uint64_t stored_bytes_ = 0;
  size_t row_bytes_ = 0;
  char problem_[128] = "its pixels have an unknown form";
};

}  // namespace

StoredImage decode_png(std::span<const std::byte> bytes, const std::string& where) {
  return PngReader(bytes, where).decode();
}

#endif

}  // namespace mulciber
