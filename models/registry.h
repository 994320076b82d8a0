// Architecture names and the classes that build them.
#pragma once

#include <memory>
#include <span>

#include "models/families/decoder_family.h"
#include "models/model.h"
#include "models/model_options.h"

namespace mulciber {

struct ModelFamily {
  const char* model_type;  // of config.json
  std::unique_ptr<Model> (*open)(Device& device, const Checkpoint& checkpoint,
                                 const ModelOptions& options);
  const DecoderFamily* decoder = nullptr;  // of decoder-only families, instead of `open`
};
/// Every family this library can run.
std::span<const ModelFamily> model_families();

/// Builds the model of a checkpoint. Throws ModelError naming the families there are when its
/// model_type is none of them, and what the family's constructor throws.
std::unique_ptr<Model> open_model(Device& device, const Checkpoint& checkpoint,
                                  const ModelOptions& options = {});

/// Whether a checkpoint is of a decoder-only family. Throws ModelError when it is of none that is
/// known.
bool is_decoder(const Checkpoint& checkpoint);
/// The family of a decoder-only checkpoint. Throws ModelError when it is of another kind.
const DecoderFamily& decoder_family(const Checkpoint& checkpoint);

}  // namespace mulciber
