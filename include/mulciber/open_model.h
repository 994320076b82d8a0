// Opening a model's files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "mulciber/export.h"

namespace mulciber {

/// An open Hugging Face folder or GGUF file (any part of a split one). Programs that use a model
/// more than once, for instance to plan memory and then load it, or to load it on two devices,
/// share one, so that the files are read once.
class OpenModel;

/// Opens a model. Throws ModelError when files are missing, malformed, or contradict each other.
MULCIBER_API std::shared_ptr<const OpenModel> open_model(const std::string& path);

/// A model's file that the application provides, in memory or through a function.
struct LentFile {
  std::string name;  // path in the model's folder: "config.json", "1_Pooling/config.json", "a.gguf"
  /// The whole file, where it is in memory.
  std::span<const std::byte> bytes;
  /// Otherwise: fills `into`, at most kMostLentRead bytes, from `offset` on, and returns the number
  /// of bytes; fewer than asked for are an error. Its exceptions propagate. The functions that read
  /// files call it on their thread: open_model(), loading, and the first function that needs a
  /// tokenizer or a chat template.
  std::function<size_t(uint64_t offset, std::span<std::byte> into)> read;
  uint64_t size = 0;  // bytes that the function provides
};
constexpr size_t kMostLentRead = size_t{1} << 20;

/// Opens a model from files that the application provides, and no others. With config.json or
/// model.safetensors among them, the files form a Hugging Face folder; otherwise the first file is
/// a GGUF file, and the others are the parts of a split one. The files must stay valid until the
/// model and everything loaded from it are destroyed. Files in memory are neither copied nor
/// written to. The headers of files behind functions are kept, and their weights pass through a
/// buffer of kMostLentRead bytes, or of a row. name: the folder's name in messages. Throws
/// ModelError as open_model(path) does.
MULCIBER_API std::shared_ptr<const OpenModel> open_model(std::vector<LentFile> files,
                                                         const std::string& name = "model");

/// What a model can do, and the class that does it.
enum class ModelCapability {
  kContinueText,    // TextGenerator
  kTranslate,       // Translator
  kRewriteText,     // Translator, for tasks other than translation
  kEncodeText,      // TextEncoder
  kClassifyText,    // Classifier
  kAnswer,          // PassageReader
  kEncodeImages,    // ImageEncoder
  kClassifyImages,  // ImageClassifier
  kMatch,           // ImageTextMatcher
  kTranscribe,      // Transcriber
  kReadImageText,   // ImageTextReader
  kSeeImages,       // TextGenerator, with images in its prompts
};

/// A model by its files.
struct ModelDescription {
  std::string path;
  std::string format;       // "Hugging Face folder", "safetensors file", "GGUF file, version 3"
  std::string family;       // model_type of config.json, or general.architecture; may be empty
  std::string model_class;  // the class that wrote config.json: "BertModel"; may be empty
  bool supported = false;   // the library has the family
  /// Capabilities of this checkpoint, none unless it is supported. What it was trained for comes
  /// first: a classifier can classify and encode.
  std::vector<ModelCapability> capabilities;
  bool chat_template = false;
  size_t files = 0, tensors = 0;  // files that hold weights
  uint64_t parameters = 0;        // elements of all tensors
  uint64_t bytes = 0;             // of all tensors, in the files
  // Sizes; 0: the model has no such part, or is not supported.
  uint32_t vocabulary = 0;  // ids that the model's output texts consist of
  uint32_t context = 0;     // tokens of the longest text
  uint32_t encoder_layers = 0, encoder_heads = 0;
  uint32_t decoder_layers = 0, decoder_heads = 0;
};

/// Describes a model, so that a program can choose the class that loads it. Throws ModelError when
/// the configuration of a supported family is invalid.
MULCIBER_API ModelDescription describe(const OpenModel& model);
/// The report that `mulciber inspect --json` prints: hyperparameters, tensors, tokenizer and more.
/// Throws ModelError as describe(), and for tokenizers that cannot be read.
MULCIBER_API std::string inspect_json(const OpenModel& model);

}  // namespace mulciber
