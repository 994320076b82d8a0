// A model that the server answers with: fields that any thread may read, and fields that belong to
// the engine's thread.
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
  std::string id;  // the model's name in requests
  std::string path;
  std::shared_ptr<const OpenModel> files;
  int64_t created = 0;  // when its files were opened, in seconds since 1970

  // Fixed after the model was loaded for the first time, so that every thread may read them.
  std::optional<Capability> offers;            // the endpoint's capability
  std::shared_ptr<const Tokenizer> tokenizer;  // nullptr where the model reads no text
  std::shared_ptr<const ChatTemplate> chat_template;
  uint32_t context = 0, vocabulary = 0;
  uint32_t width = 0;              // dimensions of vectors
  uint32_t layers = 0, heads = 0;  // a language model's
  bool sees = false;               // whether chats may have images
  std::string device;
  Sampling default_sampling;
  std::vector<std::string> languages;      // languages of speech
  std::vector<AdapterFile> adapters;       // adapters that requests may name
  std::shared_ptr<const OpenModel> draft;  // the draft model; null: none

  bool has_adapter(const std::string& name) const;

  // One of these is set, unless the device is lost; the engine's thread alone uses it.
  std::unique_ptr<BatchGenerator> generator;
  std::optional<PipelineWarmup> warmup;  // builds the generator's pipelines, while some are left
  bool warm = false;                     // no pipeline is left
  std::unique_ptr<TextEncoder> encoder;
  std::unique_ptr<Translator> translator;
  std::unique_ptr<BatchTranslator> translations;  // over the translator
  std::unique_ptr<Transcriber> transcriber;

  /// "continues text", as `mulciber inspect` calls it.
  const char* does() const;
  /// Takes the model off the device.
  void unload();
};

struct ModelSettings {
  LanguageModelOptions language;  // all but its `model`
  std::string chat_template;      // replaces that of the files
  uint32_t sequences = 8;         // slots: sequences that are decoded or translated at once
  uint32_t cache_tokens = 0;      // BatchGeneratorOptions::cache_tokens
  uint32_t draft_rows = 0;        // BatchGeneratorOptions::draft_rows
  bool verbose = false;
};

/// Opens the files of a model. argument: a file or folder, or NAME=FILE|DIR. Throws ModelError.
std::unique_ptr<ServedModel> open_served(const std::string& argument);

/// Adds an adapter to those that are loaded with a model. argument: NAME=PATH, for the only
/// language model, or MODEL:NAME=PATH. Throws SettingError.
void add_adapter(std::span<const std::unique_ptr<ServedModel>> models, const std::string& argument);

/// Gives a model a draft model. argument: a file or folder, for the only language model, or
/// MODEL=FILE|DIR. Throws SettingError, ModelError.
void add_draft(std::span<const std::unique_ptr<ServedModel>> models, const std::string& argument);

/// Throws ApiError (400), naming the field, where one of the token ids is not the model's.
void check_ids(const ServedModel& model, const std::string& field, std::span<const uint32_t> ids);

/// Loads the model onto the device, for the first time or again. Throws ModelError where it has no
/// capability that this server offers, DeviceError.
void load_served(ServedModel& model, const std::shared_ptr<Device>& device,
                 const ModelSettings& settings);

}  // namespace mulciber::apps::serve
