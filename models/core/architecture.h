// A model as its configuration describes it, before it is loaded to a device.
#pragma once

#include <memory>
#include <span>

#include "models/core/config.h"
#include "models/core/model.h"
#include "models/core/model_options.h"
#include "models/core/network_weights.h"
#include "runtime/capabilities.h"
#include "runtime/device.h"

namespace mulciber {

struct EncoderConfig;
struct VisionConfig;
struct VisionLanguageConfig;

/// `model_type` of config.json or `general.architecture` of a GGUF file, or "".
std::string model_type(const Checkpoint& checkpoint);

/// A model's configuration, read and checked. The checkpoint must outlive it.
class Architecture {
 public:
  explicit Architecture(const Checkpoint& checkpoint) : checkpoint_(checkpoint) {}
  virtual ~Architecture() = default;

  virtual const GenerationConfig& generation() const = 0;
  /// Pieces that end an answer, if the vocabulary has them as special tokens.
  virtual std::span<const char* const> end_pieces() const { return {}; }
  virtual Extents extents() const = 0;
  /// Configuration of an encoder-only model; nullptr for other models.
  virtual const EncoderConfig* encoder() const { return nullptr; }
  /// Configuration of a vision transformer; nullptr for other models.
  virtual const VisionConfig* vision() const { return nullptr; }
  /// Configuration of a vision-language model; nullptr for other models.
  virtual const VisionLanguageConfig* sees() const { return nullptr; }
  /// Device memory that load() with these options plans; models that do not override this count the
  /// weights alone, read and computed. Throws ModelError when options or tensors do not fit the
  /// configuration.
  virtual MemoryPrediction predict(const Capabilities& device, const ModelOptions& options) const;
  /// Calls options.on_plan. Throws as predict(), and DeviceError when the plan exceeds device
  /// memory.
  void check_plan(Device& device, const ModelOptions& options) const;
  /// The weights that load() reads and computes.
  virtual DeclaredWeights declare() const = 0;
  /// Loads the model. Throws as check_plan(), before anything is allocated.
  std::unique_ptr<Model> load(Device& device, const ModelOptions& options) const;

  const Checkpoint& checkpoint() const { return checkpoint_; }

 private:
  /// Makes the model. Throws ModelError when the configuration and the tensors disagree.
  virtual std::unique_ptr<Model> make(Device& device, const ModelOptions& options) const = 0;

  const Checkpoint& checkpoint_;
};

}  // namespace mulciber
