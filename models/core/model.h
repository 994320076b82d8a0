// What a model of every family is: a name, extents, a forward pass, and what else it can do.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace mulciber {

class EncodingModel;
class LanguageModel;
class PictureReaderModel;
class SeeingModel;
class SpeechModel;
class TranslationModel;

/// An array on the host, row-major.
struct NamedArray {
  std::vector<uint64_t> shape;
  std::vector<double> values;
};
using NamedArrays = std::map<std::string, NamedArray>;

/// How large a model is, whatever it is made of; 0: it has none of that kind.
struct Extents {
  uint32_t vocabulary = 0;  // ids that texts it makes consist of
  uint32_t context = 0;     // tokens of the longest sequence
  uint32_t encoder_layers = 0, encoder_heads = 0;
  uint32_t decoder_layers = 0, decoder_heads = 0;
  uint32_t cross_layers = 0, cross_heads = 0;
};

/// A model on a device.
class Model {
 public:
  virtual ~Model() = default;

  /// `model_type` of its config.json, or the architecture that its GGUF file names.
  virtual std::string family() const = 0;
  /// Whether results are those of 16-bit storage: activations, or matrices narrowed at load.
  virtual bool half_precision() const = 0;
  virtual Extents extents() const = 0;
  /// On the device.
  virtual uint64_t weight_bytes() const = 0;
  /// Computes the outputs of those names that the family has, from inputs by the names that Hugging
  /// Face transformers uses; names it has not are left out. Throws ModelError when inputs do not
  /// fit.
  virtual NamedArrays forward(const NamedArrays& inputs, std::span<const std::string> wanted) = 0;

  // What it can do beside (models/core/capability.h), or nullptr.
  virtual LanguageModel* continues_text() { return nullptr; }
  virtual TranslationModel* translates() { return nullptr; }
  virtual EncodingModel* encodes_text() { return nullptr; }
  virtual SeeingModel* sees() { return nullptr; }
  virtual SpeechModel* hears() { return nullptr; }
  virtual PictureReaderModel* reads() { return nullptr; }
};

}  // namespace mulciber
