// A model's files, opened once and handed down to whatever reads them.
#pragma once

#include <memory>

#include "base/lazy.h"
#include "checkpoints/checkpoint.h"
#include "models/core/architecture.h"
#include "models/families/picture_prompts.h"
#include "models/families/registry.h"
#include "mulciber/open_model.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace mulciber {

/// Reads and checks a configuration. Throws ModelError naming file and key.
using ReadArchitecture = std::unique_ptr<const Architecture> (*)(const Checkpoint& checkpoint,
                                                                 const ModelFamily& family);

/// What is known of a model whose files are open (models/loading/open_files.h). Everything else
/// than the checkpoint is read when it is first asked for, once.
class OpenModel {
 public:
  /// Throws as Checkpoint.
  OpenModel(const std::filesystem::path& path, Checkpoint::Contents contents, ReadArchitecture read)
      : checkpoint_(path, contents), read_(read) {}
  OpenModel(std::vector<LentFile> files, const std::string& name, ReadArchitecture read)
      : checkpoint_(std::move(files), name), read_(read) {}

  const Checkpoint& checkpoint() const { return checkpoint_; }

  /// nullptr when it is of none that this library can run.
  const ModelFamily* find_family() const { return mulciber::find_family(checkpoint_); }
  /// Throws ModelError naming the families there are.
  const ModelFamily& family() const { return mulciber::family_of(checkpoint_); }
  /// What this checkpoint of the family does: an encoder has the head that it was trained with.
  /// Throws as architecture().
  CapabilitySet capabilities() const;
  /// Throws ModelError when models of this family do not do that, saying what they do.
  void require(Capability capability) const;

  /// Throws ModelError about the configuration.
  const Architecture& architecture() const;
  /// Of the source and the target, often the same. Throws ModelError where there is none.
  const TokenizerPair& tokenizers() const;
  const std::shared_ptr<const Tokenizer>& tokenizer() const { return tokenizers().source; }
  /// nullptr where the files bring none: a base model. Throws ModelError when it cannot be read.
  const std::shared_ptr<const ChatTemplate>& chat_template() const;
  /// ChatTemplate::choose() for this model.
  std::shared_ptr<const ChatTemplate> choose_template(const std::string& name_or_file) const;
  /// nullptr of a model that sees no pictures. Throws ModelError where its files disagree.
  const std::shared_ptr<const PicturePrompts>& picture_prompts() const;

 private:
  Checkpoint checkpoint_;
  ReadArchitecture read_;
  Lazy<std::unique_ptr<const Architecture>> architecture_;
  Lazy<TokenizerPair> tokenizers_;
  Lazy<std::shared_ptr<const ChatTemplate>> chat_template_;
  Lazy<std::shared_ptr<const PicturePrompts>> picture_prompts_;
};

/// On a device. Throws as Architecture::load().
std::unique_ptr<Model> load_model(Device& device, const OpenModel& model,
                                  const ModelOptions& options = {});

}  // namespace mulciber
