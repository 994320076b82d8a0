// A model that the server answers with: what any thread may read of it, and what belongs to the
// engine's.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/cli/language_model.h"
#include "models/families/open_model.h"
#include "mulciber/batch_generator.h"
#include "mulciber/batch_translator.h"
#include "mulciber/model_loader.h"
#include "mulciber/text_encoder.h"
#include "mulciber/transcriber.h"
#include "mulciber/translator.h"

namespace mulciber::apps::serve {

struct ServedModel {
  std::string id;  // what requests call it
  std::string path;
  std::shared_ptr<const OpenModel> files;
  int64_t created = 0;  // when it was opened, in seconds since 1970

  // Fixed once it was loaded for the first time, so that every thread may read them.
  std::optional<Capability> offers;            // what the server does with it
  std::shared_ptr<const Tokenizer> tokenizer;  // nullptr where it reads no text
  std::shared_ptr<const ChatTemplate> chat_template;
  uint32_t context = 0, vocabulary = 0;
  uint32_t width = 0;              // of vectors
  uint32_t layers = 0, heads = 0;  // of a language model
  bool sees = false;               // pictures, which chats may show it
  std::string device;
  Sampling default_sampling;
  std::vector<std::string> languages;      // of speech
  std::vector<AdapterFile> adapters;       // that requests may name
  std::shared_ptr<const OpenModel> draft;  // that proposes what it says; none: none does

  bool has_adapter(const std::string& name) const;

  // One of these, unless the device is lost; used by the thread of the engine alone.
  std::unique_ptr<BatchGenerator> generator;
  std::optional<PipelineWarmup> warmup;  // of the generator's pipelines, while some are left
  bool warm = false;                     // none is left
  std::unique_ptr<TextEncoder> encoder;
  std::unique_ptr<Translator> translator;
  std::unique_ptr<BatchTranslator> translations;  // of the translator
  std::unique_ptr<Transcriber> transcriber;

  /// "continues text", as `mulciber inspect` says it.
  const char* does() const;
  /// Takes it off the device.
  void unload();
};

struct ModelSettings {
  LanguageModelOptions language;  // but for its `model`
  std::string chat_template;      // in place of that of the files
  uint32_t sequences = 8;         // texts that grow, or are translated, at once
  uint32_t cache_tokens = 0;      // BatchGeneratorOptions::cache_tokens
  uint32_t proposal_rows = 0;     // BatchGeneratorOptions::proposal_rows
  bool verbose = false;
};

/// argument: a file or folder, or NAME=FILE|DIR. Opens its files. Throws ModelError.
std::unique_ptr<ServedModel> open_served(const std::string& argument);

/// argument: NAME=PATH or MODEL:NAME=PATH. Adds an adapter to what is loaded with that model, or
/// with the only language model there is. Throws SettingError.
void add_adapter(std::span<const std::unique_ptr<ServedModel>> models, const std::string& argument);

/// argument: a file or folder, or MODEL=FILE|DIR. Gives that model, or the only language model
/// there is, a draft model. Throws SettingError, ModelError.
void add_draft(std::span<const std::unique_ptr<ServedModel>> models, const std::string& argument);

/// Throws ApiError (400), naming the field, where one of the ids of tokens is none of the model's.
void check_ids(const ServedModel& model, const std::string& field, std::span<const uint32_t> ids);

/// Loads it onto the device, for the first time or again. Throws ModelError where it does nothing
/// that this server offers, DeviceError.
void load_served(ServedModel& model, const std::shared_ptr<Device>& device,
                 const ModelSettings& settings);

}  // namespace mulciber::apps::serve
