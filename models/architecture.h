// A model as its configuration describes it, before anything of it is on a device.
#pragma once

#include <memory>
#include <span>

#include "models/config.h"
#include "models/model.h"
#include "models/model_options.h"
#include "runtime/capabilities.h"
#include "runtime/device.h"

namespace mulciber {

struct EncoderConfig;

/// Read and checked from a checkpoint, which must outlive it.
class Architecture {
 public:
  virtual ~Architecture() = default;

  virtual const GenerationConfig& generation() const = 0;
  /// Pieces that end an answer, where the vocabulary has them as special tokens.
  virtual std::span<const char* const> end_pieces() const { return {}; }
  virtual Extents extents() const = 0;
  /// What an encoder-only model was made for; nullptr of others.
  virtual const EncoderConfig* encoder() const { return nullptr; }
  /// Device memory that load() with the same options plans. Throws ModelError where options or
  /// tensors do not fit the configuration.
  virtual MemoryPrediction predict(const Capabilities& device,
                                   const ModelOptions& options) const = 0;
  /// Throws as predict(), and DeviceError, before anything is allocated, when what it plans does
  /// not fit.
  virtual std::unique_ptr<Model> load(Device& device, const ModelOptions& options) const = 0;
};

}  // namespace mulciber
