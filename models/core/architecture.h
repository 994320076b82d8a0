// A model as its configuration describes it, before anything of it is on a device.
#pragma once

#include <memory>
#include <span>

#include "models/core/config.h"
#include "models/core/model.h"
#include "models/core/model_options.h"
#include "runtime/capabilities.h"
#include "runtime/device.h"

namespace mulciber {

struct EncoderConfig;
struct VisionConfig;
struct VisionLanguageConfig;

/// `model_type` of config.json or `general.architecture` of a GGUF file, or "".
std::string model_type(const Checkpoint& checkpoint);

/// Read and checked from a checkpoint, which must outlive it.
class Architecture {
 public:
  explicit Architecture(const Checkpoint& checkpoint) : checkpoint_(checkpoint) {}
  virtual ~Architecture() = default;

  virtual const GenerationConfig& generation() const = 0;
  /// Pieces that end an answer, where the vocabulary has them as special tokens.
  virtual std::span<const char* const> end_pieces() const { return {}; }
  virtual Extents extents() const = 0;
  /// What an encoder-only model was made for; nullptr of others.
  virtual const EncoderConfig* encoder() const { return nullptr; }
  /// What a model that reads pictures was made for; nullptr of others.
  virtual const VisionConfig* vision() const { return nullptr; }
  /// What a language model that sees pictures is made of; nullptr of others.
  virtual const VisionLanguageConfig* sees() const { return nullptr; }
  /// Device memory that load() with the same options plans: of the weights, where a model says no
  /// more. Throws ModelError where options or tensors do not fit the configuration.
  virtual MemoryPrediction predict(const Capabilities& device, const ModelOptions& options) const;
  /// Tells options.on_plan. Throws as predict(), and DeviceError when what is planned does not fit.
  void check_plan(Device& device, const ModelOptions& options) const;
  /// Names, shapes and source names of the weights that load() reads.
  virtual WeightTable weight_table() const = 0;
  /// Throws as check_plan(), before anything is allocated.
  std::unique_ptr<Model> load(Device& device, const ModelOptions& options) const;

  const Checkpoint& checkpoint() const { return checkpoint_; }

 private:
  /// Throws ModelError when the configuration and the tensors disagree.
  virtual std::unique_ptr<Model> make(Device& device, const ModelOptions& options) const = 0;

  const Checkpoint& checkpoint_;
};

}  // namespace mulciber
