#include "apps/serve/engine/served_model.h"

#include <algorithm>

#include <fmt/format.h>

#include <ctime>
#include <filesystem>
#include <functional>
#include <tuple>
#include <utility>

#include "apps/cli/progress.h"
#include "apps/serve/http/api_error.h"
#include "checkpoints/file_name.h"
#include "checkpoints/json.h"
#include "models/encoding/sentence_config.h"
#include "mulciber/error.h"

namespace mulciber::apps::serve {
namespace {

// The capabilities for which the server has endpoints.
constexpr Capability kServed[] = {Capability::kContinueText, Capability::kTranslate,
                                  Capability::kRewriteText, Capability::kEncodeText,
                                  Capability::kHear};

void load_language_model(ServedModel& model, const std::shared_ptr<Device>& device,
                         const ModelSettings& settings) {
  BatchGeneratorOptions options;
  options.generator = generator_options(settings.language);
  options.generator.sequences = settings.sequences;
  options.cache_tokens = settings.cache_tokens;
  options.draft_rows = settings.draft_rows;
  options.draft = model.draft;
  options.generator.load.adapters = model.adapters;
  std::optional<Progress> progress;
  options.generator.load.on_progress = [&](uint64_t done, uint64_t total) {
    if (!progress) progress.emplace(fmt::format("loading {}, MiB", model.id), total >> 20);
    progress->update(done >> 20);
    if (done == total) progress->finish();
  };
  model.generator = std::make_unique<BatchGenerator>(device, model.files, options);
}

/// The name and path in NAME=PATH, or a path alone, whose name is empty.
std::pair<std::string, std::string> name_and_path(const std::string& argument) {
  const size_t equals = argument.find('=');
  const bool named = equals != std::string::npos && equals > 0 &&
                     argument.substr(0, equals).find('/') == std::string::npos &&
                     !std::filesystem::exists(argument);
  if (!named) return {"", argument};
  return {argument.substr(0, equals), argument.substr(equals + 1)};
}

/// The language model with that name; without a name the only one. refuse: throws.
ServedModel& language_model(std::span<const std::unique_ptr<ServedModel>> models,
                            const std::string& name,
                            const std::function<void(const std::string&)>& refuse) {
  ServedModel* chosen = nullptr;
  for (const auto& model : models) {
    const bool continues = model->files->capabilities().has(Capability::kContinueText);
    if (!continues || (!name.empty() && model->id != name)) continue;
    if (chosen) refuse("could be of several models");
    chosen = model.get();
  }
  if (!chosen)
    refuse(name.empty() ? "is of no model that continues text"
                        : fmt::format("names no language model '{}'", printable(name)));
  return *chosen;
}

/// Fills in the fields that any thread may read.
void describe(ServedModel& model, Capability offers, const std::string& chat_template) {
  switch (offers) {
    case Capability::kContinueText:
      model.context = model.generator->context();
      model.vocabulary = model.generator->vocabulary();
      model.layers = model.files->architecture().extents().decoder_layers;
      model.heads = model.files->architecture().extents().decoder_heads;
      model.default_sampling = model.generator->default_sampling();
      model.chat_template = chat_template.empty() ? model.files->chat_template()
                                                  : model.files->choose_template(chat_template);
      model.sees = model.files->image_prompts() != nullptr;
      break;
    case Capability::kEncodeText:
      model.context = model.encoder->max_tokens();
      model.width = model.encoder->width();
      break;
    case Capability::kHear: model.languages = model.transcriber->languages(); break;
    default: break;
  }
  if (offers != Capability::kHear) model.tokenizer = model.files->tokenizer();
  model.offers = offers;
}

}  // namespace

const char* ServedModel::does() const {
  if (offers == Capability::kEncodeText) return row_of(*offers).does;
  const CapabilitySet capabilities = files->capabilities();
  for (const Capability capability : kServed)
    if (capabilities.has(capability)) return row_of(capability).does;
  return "does nothing that is served";
}

std::unique_ptr<ServedModel> open_served(const std::string& argument) {
  auto model = std::make_unique<ServedModel>();
  std::tie(model->id, model->path) = name_and_path(argument);
  if (model->id.empty()) model->id = name_of_path(argument);
  model->files = open_model(model->path);
  model->created = std::time(nullptr);
  return model;
}

bool ServedModel::has_adapter(const std::string& name) const {
  return std::ranges::find(adapters, name, &AdapterFile::name) != adapters.end();
}

void add_adapter(std::span<const std::unique_ptr<ServedModel>> models,
                 const std::string& argument) {
  const auto refuse = [&](const std::string& problem) {
    throw SettingError("lora", fmt::format("'{}' {}", printable(argument), problem),
                       "give NAME=PATH, or MODEL:NAME=PATH where several models are served");
  };
  const size_t equals = argument.find('=');
  if (equals == argument.npos || equals + 1 == argument.size()) refuse("has no path");
  std::string name = argument.substr(0, equals), wanted;
  if (const size_t colon = name.rfind(':'); colon != name.npos) {
    wanted = name.substr(0, colon);
    name.erase(0, colon + 1);
  }
  if (name.empty()) refuse("has no name");
  // A request gives the adapter's scale.
  language_model(models, wanted, refuse)
      .adapters.push_back({.path = argument.substr(equals + 1), .name = name, .scale = 0});
}

void add_draft(std::span<const std::unique_ptr<ServedModel>> models, const std::string& argument) {
  const auto refuse = [&](const std::string& problem) {
    throw SettingError("draft", fmt::format("'{}' {}", printable(argument), problem),
                       "give a path, or MODEL=PATH where several models are served");
  };
  const auto [wanted, path] = name_and_path(argument);
  language_model(models, wanted, refuse).draft = open_model(path);
}

void check_ids(const ServedModel& model, const std::string& field, std::span<const uint32_t> ids) {
  // A model may choose ids without text, and clients may send them back.
  const auto tokens = static_cast<uint32_t>(model.tokenizer->vocab_size());
  const uint32_t count = model.vocabulary > 0 ? model.vocabulary : tokens;
  const auto beyond = std::ranges::find_if(ids, [&](uint32_t id) { return id >= count; });
  if (beyond != ids.end())
    refuse(field, fmt::format("{} has the token id {}, and the model's are below {}", field,
                              *beyond, count));
}

void load_served(ServedModel& model, const std::shared_ptr<Device>& device,
                 const ModelSettings& settings) {
  if (!model.offers) model.device = describe(*device).name;
  const LoadOptions load = generator_options(settings.language).load;
  const CapabilitySet capabilities = model.files->capabilities();
  // A decoder whose files say how its states are pooled was made for vectors.
  const bool embeds = capabilities.has(Capability::kEncodeText) &&
                      read_sentence_config(model.files->checkpoint()).from_files;
  Capability offers = Capability::kContinueText;
  if (capabilities.has(Capability::kContinueText) && !embeds) {
    load_language_model(model, device, settings);
  } else if (capabilities.has(Capability::kTranslate) ||
             capabilities.has(Capability::kRewriteText)) {
    offers = Capability::kTranslate;
    model.translator = std::make_unique<Translator>(device, model.files, load);
    model.translations = std::make_unique<BatchTranslator>(
        *model.translator, BatchTranslatorOptions{.slots = settings.sequences});
  } else if (capabilities.has(Capability::kEncodeText)) {
    offers = Capability::kEncodeText;
    model.encoder = std::make_unique<TextEncoder>(device, model.files, load);
  } else if (capabilities.has(Capability::kHear)) {
    offers = Capability::kHear;
    model.transcriber = std::make_unique<Transcriber>(device, model.files, load);
  } else {
    throw ModelError(model.path, "is a model that the server has no endpoint for",
                     "give one that continues, translates, embeds or transcribes");
  }
  if (!model.offers) describe(model, offers, settings.chat_template);
}

void ServedModel::unload() {
  warmup.reset();
  warm = false;
  generator.reset();
  encoder.reset();
  translations.reset();
  translator.reset();
  transcriber.reset();
}

}  // namespace mulciber::apps::serve
