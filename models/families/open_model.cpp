#include "models/families/open_model.h"

namespace mulciber {

CapabilitySet OpenModel::capabilities() const {
  if (const VisionConfig* vision = architecture().vision()) {
    if (vision->texts) return {Capability::kEncodeImages, Capability::kMatch};
    if (vision->head == VisionHead::kNone) return {Capability::kEncodeImages};
    return {Capability::kEncodeImages, Capability::kClassifyImages};
  }
  const EncoderConfig* encoder = architecture().encoder();
  if (encoder == nullptr) return family().capabilities;
  switch (encoder->task) {
    case EncoderTask::kClassify: return {Capability::kEncodeText, Capability::kClassify};
    case EncoderTask::kAnswer: return {Capability::kEncodeText, Capability::kAnswer};
    case EncoderTask::kNone: break;
  }
  return {Capability::kEncodeText};
}

void OpenModel::require(Capability capability) const {
  if (family().capabilities.has(capability)) return;
  require_capability(capabilities(), capability, checkpoint_.path().string(),
                     model_type(checkpoint_));
}

const Architecture& OpenModel::architecture() const {
  return *architecture_.get([&] { return read_(checkpoint_, family()); });
}

const TokenizerPair& OpenModel::tokenizers() const {
  return tokenizers_.get([&] { return load_tokenizer_pair(checkpoint_); });
}

const std::shared_ptr<const ChatTemplate>& OpenModel::chat_template() const {
  return chat_template_.get([&]() -> std::shared_ptr<const ChatTemplate> {
    std::optional<ChatTemplate> found = ChatTemplate::load(checkpoint_);
    if (!found) return nullptr;
    if (image_prompts()) found->show_images_as(image_prompts()->placeholder());
    return std::make_shared<const ChatTemplate>(*std::move(found));
  });
}

std::shared_ptr<const ChatTemplate> OpenModel::choose_template(
    const std::string& name_or_file) const {
  ChatTemplate chosen = ChatTemplate::choose(name_or_file, checkpoint_);
  if (image_prompts()) chosen.show_images_as(image_prompts()->placeholder());
  return std::make_shared<const ChatTemplate>(std::move(chosen));
}

const std::shared_ptr<const ImagePrompts>& OpenModel::image_prompts() const {
  return image_prompts_.get([&]() -> std::shared_ptr<const ImagePrompts> {
    const ModelFamily* known = find_family();
    if (!known || !known->vision_language) return nullptr;
    return std::make_shared<const ImagePrompts>(checkpoint_, *architecture().sees(), tokenizer());
  });
}

std::unique_ptr<Model> load_model(Device& device, const OpenModel& model,
                                  const ModelOptions& options) {
  return model.architecture().load(device, options);
}

}  // namespace mulciber
