// A model's open files, which all readers share.
#pragma once

#include <memory>

#include "base/lazy.h"
#include "checkpoints/checkpoint.h"
#include "models/core/architecture.h"
#include "models/families/image_prompts.h"
#include "models/families/registry.h"
#include "mulciber/open_model.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace mulciber {

/// Reads and checks a configuration. Throws ModelError naming file and key.
using ReadArchitecture = std::unique_ptr<const Architecture> (*)(const Checkpoint& checkpoint,
                                                                 const ModelFamily& family);

/// A model with open files (models/loading/open_files.h). Everything but the checkpoint is read at
/// first use, once.
class OpenModel {
 public:
  /// Opens the files. Throws as Checkpoint.
  OpenModel(const std::filesystem::path& path, Checkpoint::Contents contents, ReadArchitecture read)
      : checkpoint_(path, contents), read_(read) {}
  OpenModel(std::vector<LentFile> files, const std::string& name, ReadArchitecture read)
      : checkpoint_(std::move(files), name), read_(read) {}

  const Checkpoint& checkpoint() const { return checkpoint_; }

  /// The model's family; nullptr: the library does not support it.
  const ModelFamily* find_family() const { return mulciber::find_family(checkpoint_); }
  /// The model's family. Throws ModelError listing the supported families.
  const ModelFamily& family() const { return mulciber::family_of(checkpoint_); }
  /// Capabilities of this checkpoint: an encoder has only those of its head. Throws as
  /// architecture().
  CapabilitySet capabilities() const;
  /// Throws ModelError, listing the family's capabilities, when it lacks this one.
  void require(Capability capability) const;

  /// The configuration. Throws ModelError when it is invalid.
  const Architecture& architecture() const;
  /// Tokenizers of source and target, often one object. Throws ModelError when there is none.
  const TokenizerPair& tokenizers() const;
  const std::shared_ptr<const Tokenizer>& tokenizer() const { return tokenizers().source; }
  /// The chat template; nullptr: the files have none (a base model). Throws ModelError when it
  /// cannot be read.
  const std::shared_ptr<const ChatTemplate>& chat_template() const;
  /// Calls ChatTemplate::choose() for this model.
  std::shared_ptr<const ChatTemplate> choose_template(const std::string& name_or_file) const;
  /// Prompts with images; nullptr: the model takes no images. Throws ModelError when its files
  /// disagree.
  const std::shared_ptr<const ImagePrompts>& image_prompts() const;

 private:
  Checkpoint checkpoint_;
  ReadArchitecture read_;
  Lazy<std::unique_ptr<const Architecture>> architecture_;
  Lazy<TokenizerPair> tokenizers_;
  Lazy<std::shared_ptr<const ChatTemplate>> chat_template_;
  Lazy<std::shared_ptr<const ImagePrompts>> image_prompts_;
};

/// Loads a model to a device. Throws as Architecture::load().
std::unique_ptr<Model> load_model(Device& device, const OpenModel& model,
                                  const ModelOptions& options = {});

}  // namespace mulciber
