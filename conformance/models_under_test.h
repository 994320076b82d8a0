// The suite's interface to models. A program with models implements ModelsUnderTest and passes it
// to model_cases() and load_malformed(); without it the suite has only cases of ops and blocks.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "checkpoints/checkpoint.h"
#include "conformance/op_case.h"
#include "layers/transformer.h"
#include "ops/search.h"

namespace mulciber::conformance {

/// An encoder-decoder transformer with sinusoidal positions and one embedding table for source,
/// target and output: the numbers that its double-precision definition needs beside the weights.
/// Source: Vaswani et al. 2017, arXiv:1706.03762.
struct TransformerShape {
  struct Stack {
    uint32_t layers = 0, heads = 0, feed_forward = 0;
  };
  Stack encoder, decoder;
  uint32_t width = 0, vocabulary = 0;
  NormPlacement norms = NormPlacement::kAfter;
  float norm_epsilon = 0;
  Activation activation = Activation::kNone;
  bool scale_embedding = false;  // embeddings times sqrt(width)
};

/// A translation model on a device.
class LoadedTranslation {
 public:
  virtual ~LoadedTranslation() = default;
  /// Returns (1, fed, vocabulary) f32, without bounds. source: ids with the end of text. fed: the
  /// decoder's input, start id first.
  virtual CpuTensor logits(std::span<const uint32_t> source, std::span<const uint32_t> fed) = 0;
  /// Returns the ids of the best hypothesis. beams: 1 is greedy search.
  virtual std::vector<uint32_t> search(std::span<const uint32_t> source, uint32_t beams,
                                       uint32_t max_new_tokens) = 0;
};

/// A translation model's files after reading.
class TranslationFiles {
 public:
  virtual ~TranslationFiles() = default;
  /// Weights under the names of Hugging Face's MarianMTModel.
  virtual const Checkpoint& checkpoint() const = 0;
  /// Throws ModelError for a network that TransformerShape cannot describe.
  virtual TransformerShape shape() const = 0;
  /// The search settings that the files give for LoadedTranslation::search().
  virtual BeamSettings search_settings(uint32_t max_new_tokens) const = 0;
  /// The result must not outlive this object.
  virtual std::unique_ptr<LoadedTranslation> load(Device& device) const = 0;
};

class ModelsUnderTest {
 public:
  virtual ~ModelsUnderTest() = default;
  /// Reads everything that running the model at `path` would read, and computes nothing. Returns
  /// the part that no reader supports, or "". Throws ModelError where the files are malformed.
  virtual std::string read(Device& device, const std::filesystem::path& path) const = 0;
  /// The translation model bundled with the program, or null where it is missing.
  virtual std::unique_ptr<TranslationFiles> bundled_translation() const = 0;
};

}  // namespace mulciber::conformance
