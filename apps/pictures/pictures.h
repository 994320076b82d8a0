// What `classify`, `embed` and `match` share where they read pictures.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "apps/cli/text_lines.h"
#include "models/families/open_model.h"
#include "mulciber/image_encoder.h"

namespace mulciber::apps {

/// Whether a model reads pictures: then files are pictures, and not lines of text. Throws
/// ModelError.
bool reads_pictures(const OpenModel& model);

/// Calls `run` with the pictures of a few files at a time, and the number of the first. Stops after
/// an interrupt. Throws ModelError where there are none, or one cannot be read.
void for_pictures(const std::string& title, std::span<const std::string> files,
                  const std::function<void(size_t first, std::span<const Picture>)>& run);

/// Throws ModelError where an option was given that pictures have no use for.
struct TextOption {
  const char* name;
  bool given;
};
void refuse_text_options(std::span<const TextOption> options);

/// What --stats says, on standard error.
void report(const EncoderArguments& arguments, const PictureStatistics& statistics, size_t pictures,
            double seconds);

/// --attention, of commands that may read pictures.
void add_picture_attention(Command& command, std::string& page);

struct NamedAttention {
  std::string name;  // of the file
  PictureAttention attention;
  /// Of models that read: maps are (layers, heads, tokens, rows, columns), and there is no rollout.
  std::vector<std::string> tokens = {};
};
/// A page that lays the maps over the pictures. Throws ModelError when it cannot be written.
void write_attention_page(const std::string& path, const std::string& model,
                          std::span<const NamedAttention> pictures);

// The commands, with a model that reads pictures.
struct PictureArguments {
  const EncoderArguments& encoder;
  std::span<const std::string> files;
  std::string attention;  // the page to be written; empty: none
};
int classify_pictures(const PictureArguments& arguments, std::shared_ptr<const OpenModel> model);
struct PictureEmbedArguments : PictureArguments {
  std::string npy;
  bool normalize = false, mean = false;
};
int embed_pictures(const PictureEmbedArguments& arguments, std::shared_ptr<const OpenModel> model);

}  // namespace mulciber::apps
