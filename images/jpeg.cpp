// JPEG files, decoded by libjpeg; images/formats.h declares the reader.
#include "images/formats.h"
#include "mulciber/error.h"

#ifdef MULCIBER_READS_JPEG
// jpeglib.h needs the declarations of FILE and size_t before it.
#include <cstdio>

#include <jerror.h>
#include <jpeglib.h>

#include <csetjmp>
#include <cstring>
#include <vector>
#endif

namespace mulciber {

#ifndef MULCIBER_READS_JPEG

StoredImage decode_jpeg(std::span<const std::byte>, const std::string& where) {
  throw ModelError(
      where, "is a JPEG file, and this build reads none: MULCIBER_IMAGES",
      "install libjpeg-dev and build with -DMULCIBER_IMAGES=ON, or give another format");
}

#else

namespace {

// Encoders write about ten scans of an image; each may cost as much as decoding the whole.
constexpr int kMostScans = 100;

/// libjpeg reports an error by longjmp: between the longjmp and the setjmp of a member function
/// there may be only C code, and locals without a destructor.
class JpegReader {
 public:
  JpegReader(std::span<const std::byte> bytes, const std::string& where)
      : bytes_(bytes), where_(where) {
    jpeg_.err = jpeg_std_error(&handlers_);
    jpeg_.client_data = this;
    handlers_.error_exit = [](j_common_ptr jpeg) { reader_of(jpeg).leave(jpeg); };
    handlers_.emit_message = [](j_common_ptr jpeg, int level) {
      // The library fills up truncated files with grey, which counts as an error here.
      const int code = jpeg->err->msg_code;
      if (level < 0 && (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER))
        reader_of(jpeg).leave(jpeg);
    };
    progress_.progress_monitor = [](j_common_ptr jpeg) {
      const auto* reading = reinterpret_cast<j_decompress_ptr>(jpeg);
      if (reading->input_scan_number > kMostScans) reader_of(jpeg).leave(jpeg);
    };
  }
  ~JpegReader() { jpeg_destroy_decompress(&jpeg_); }
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;

  StoredImage decode() {
    if (!read_header()) refuse();
    check_image_size(jpeg_.image_width, jpeg_.image_height, where_);
    StoredImage stored = {empty_image(jpeg_.image_width, jpeg_.image_height)};
    stored.orientation = orientation_;
    line_.resize(size_t{jpeg_.image_width} * 4);
    if (!read_lines(stored.image.rgb.data())) refuse();
    return stored;
  }

 private:
  static JpegReader& reader_of(j_common_ptr jpeg) {
    return *static_cast<JpegReader*>(jpeg->client_data);
  }
  [[noreturn]] void leave(j_common_ptr jpeg) {
    (*jpeg->err->format_message)(jpeg, problem_);
    std::longjmp(jump_, 1);
  }
  [[noreturn]] void refuse() const {
    throw ModelError(where_, "is a JPEG file that cannot be read: " + std::string(problem_),
                     "it is damaged or was cut off");
  }

  bool read_header() {
    if (setjmp(jump_)) return false;
    jpeg_create_decompress(&jpeg_);
    jpeg_.client_data = this;
    jpeg_.progress = &progress_;
    jpeg_mem_src(&jpeg_, reinterpret_cast<const unsigned char*>(bytes_.data()), bytes_.size());
    jpeg_save_markers(&jpeg_, JPEG_APP0 + 1, 0xffff);
    jpeg_read_header(&jpeg_, TRUE);
    constexpr char kExif[] = "Exif\0";  // includes the final zero byte
    for (jpeg_saved_marker_ptr marker = jpeg_.marker_list; marker; marker = marker->next)
      if (marker->data_length > sizeof(kExif) &&
          std::memcmp(marker->data, kExif, sizeof(kExif)) == 0)
        orientation_ =
            exif_orientation({reinterpret_cast<const std::byte*>(marker->data) + sizeof(kExif),
                              marker->data_length - sizeof(kExif)});
    return true;
  }

  bool read_lines(uint8_t* rgb) {
    if (setjmp(jump_)) return false;
    const bool cmyk = jpeg_.jpeg_color_space == JCS_CMYK || jpeg_.jpeg_color_space == JCS_YCCK;
    jpeg_.out_color_space = cmyk ? JCS_CMYK : JCS_RGB;
    jpeg_start_decompress(&jpeg_);
    while (jpeg_.output_scanline < jpeg_.output_height) {
      uint8_t* to = rgb + size_t{jpeg_.output_scanline} * jpeg_.output_width * 3;
      JSAMPROW row = cmyk ? line_.data() : to;
      jpeg_read_scanlines(&jpeg_, &row, 1);
      for (JDIMENSION x = 0; cmyk && x < jpeg_.output_width; ++x) {
        // Adobe's convention, which all writers follow: 255 is no ink.
        const uint8_t* ink = &line_[size_t{x} * 4];
        for (int channel = 0; channel < 3; ++channel)
          to[size_t{x} * 3 + channel] = static_cast<uint8_t>((ink[channel] * ink[3] + 127) / 255);
      }
    }
    jpeg_finish_decompress(&jpeg_);
    return true;
  }

  std::span<const std::byte> bytes_;
  const std::string& where_;
  jpeg_decompress_struct jpeg_ = {};
  jpeg_error_mgr handlers_ = {};
  jpeg_progress_mgr progress_ = {};
  std::jmp_buf jump_;
  std::vector<uint8_t> line_;  // line of inks
  uint32_t orientation_ = 1;
  char problem_[JMSG_LENGTH_MAX] = {};
};

}  // namespace

StoredImage decode_jpeg(std::span<const std::byte> bytes, const std::string& where) {
  return JpegReader(bytes, where).decode();
}

#endif

}  // namespace mulciber
