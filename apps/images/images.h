// Code that `classify`, `embed` and `match` share for images.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "apps/cli/text_lines.h"
#include "models/families/open_model.h"
#include "mulciber/image_encoder.h"

namespace mulciber::apps {

/// Whether a model reads images: then files are images, not lines of text. Throws ModelError.
bool reads_images(const OpenModel& model);

/// Calls `run` with the images of a few files at a time, and the number of the first. Stops after
/// an interrupt. Throws ModelError where there are no files, or an image cannot be read.
void for_images(const std::string& title, std::span<const std::string> files,
                const std::function<void(size_t first, std::span<const Image>)>& run);

/// Throws ModelError where an option was given that only texts have.
struct TextOption {
  const char* name;
  bool given;
};
void refuse_text_options(std::span<const TextOption> options);

/// Prints --stats on standard error.
void report(const EncoderArguments& arguments, const ImageStatistics& statistics, size_t images,
            double seconds);

/// Adds --attention to commands that may read images.
void add_image_attention(Command& command, std::string& page);

struct NamedAttention {
  std::string name;  // the file's name
  ImageAttention attention;
  /// For models that write text: maps are (layers, heads, tokens, rows, columns), and there is no
  /// rollout.
  std::vector<std::string> tokens = {};
};
/// Writes a page that lays the maps over the images. Throws ModelError when it cannot be written.
void write_attention_page(const std::string& path, const std::string& model,
                          std::span<const NamedAttention> images);

// The commands with a model that reads images.
struct ImageArguments {
  const EncoderArguments& encoder;
  std::span<const std::string> files;
  std::string attention;  // the page to be written; empty: none
};
int classify_images(const ImageArguments& arguments, std::shared_ptr<const OpenModel> model);
struct ImageEmbedArguments : ImageArguments {
  std::string npy;
  bool normalize = false, mean = false;
};
int embed_images(const ImageEmbedArguments& arguments, std::shared_ptr<const OpenModel> model);

}  // namespace mulciber::apps
