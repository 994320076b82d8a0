// The interface of models of every family: a name, extents, a forward pass, and capabilities.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace mulciber {

class EncodingModel;
class LanguageModel;
class ImageTextReaderModel;
class SeeingModel;
class SpeechModel;
class TranslationModel;

/// An array in CPU memory, row-major.
struct NamedArray {
  std::vector<uint64_t> shape;
  std::vector<double> values;
};
using NamedArrays = std::map<std::string, NamedArray>;

/// Sizes of a model of any kind; 0: the model has no such part.
struct Extents {
  uint32_t vocabulary = 0;  // ids that the model's output texts consist of
  uint32_t context = 0;     // tokens of the longest sequence
  uint32_t encoder_layers = 0, encoder_heads = 0;
  uint32_t decoder_layers = 0, decoder_heads = 0;
  uint32_t cross_layers = 0, cross_heads = 0;
};

/// A model on a device.
class Model {
 public:
  virtual ~Model() = default;

  /// `model_type` of config.json, or the architecture of a GGUF file.
  virtual std::string family() const = 0;
  /// Whether 16-bit storage limits the precision: f16 activations, or matrices narrowed at load.
  virtual bool half_precision() const = 0;
  virtual Extents extents() const = 0;
  /// Bytes of weights on the device.
  virtual uint64_t weight_bytes() const = 0;
  /// Computes the outputs in `wanted` from inputs; both use the names of Hugging Face transformers.
  /// Outputs that the family does not have are left out. Throws ModelError when inputs do not fit.
  virtual NamedArrays forward(const NamedArrays& inputs, std::span<const std::string> wanted) = 0;

  // Interfaces of its capabilities (models/core/capability.h); nullptr: it lacks the capability.
  virtual LanguageModel* continues_text() { return nullptr; }
  virtual TranslationModel* translates() { return nullptr; }
  virtual EncodingModel* encodes_text() { return nullptr; }
  virtual SeeingModel* sees() { return nullptr; }
  virtual SpeechModel* hears() { return nullptr; }
  virtual ImageTextReaderModel* reads() { return nullptr; }
};

}  // namespace mulciber
