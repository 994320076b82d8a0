#include "apps/conform/models.h"

#include <fmt/format.h>

#include <algorithm>

#include "conformance/model_cases.h"
#include "models/loading/open_files.h"
#include "models/translation/encoder_decoder_architecture.h"
#include "mulciber/error.h"

namespace mulciber::apps {
namespace {

using namespace conformance;
using Path = std::filesystem::path;

/// The bundled model's folder: share/mulciber/en-de of an installation, or assets/en-de of a source
/// tree around the build folder. Empty where there is none.
Path find_bundled_model() {
  std::error_code ignored;
  Path folder = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
  for (int up = 0; up < 5 && !folder.empty(); ++up, folder = folder.parent_path()) {
    for (const char* place : {"share/mulciber/en-de", "assets/en-de"}) {
      if (std::filesystem::exists(folder / place / "config.json", ignored)) return folder / place;
    }
    if (folder == folder.parent_path()) break;
  }
  return {};
}

NamedArray row_of(std::span<const uint32_t> ids) {
  return {{1, ids.size()}, std::vector<double>(ids.begin(), ids.end())};
}

GenerationSettings search_of(const EncoderDecoderConfig& config, uint32_t beams,
                             uint32_t max_new_tokens) {
  GenerationSettings settings = generation_settings(config.generation, config.context);
  settings.beams = beams;
  settings.n_best = 1;
  settings.max_new_tokens = max_new_tokens;
  return settings;
}

class LoadedMarian : public LoadedTranslation {
 public:
  LoadedMarian(Device& device, const Checkpoint& checkpoint, const EncoderDecoderConfig& config)
      : config_(config), model_(load_encoder_decoder(device, checkpoint, config, {})) {}

  CpuTensor logits(std::span<const uint32_t> source, std::span<const uint32_t> fed) override {
    const NamedArray mask = {{1, source.size()}, std::vector<double>(source.size(), 1)};
    const std::string wanted[] = {"logits"};
    NamedArrays results = model_->forward({{"input_ids", row_of(source)},
                                           {"attention_mask", mask},
                                           {"decoder_input_ids", row_of(fed)}},
                                          wanted);
    NamedArray& logits = results.at("logits");
    return {Shape(std::span<const uint64_t>(logits.shape)),
            DataType::kF32,
            std::move(logits.values),
            {}};
  }

  std::vector<uint32_t> search(std::span<const uint32_t> source, uint32_t beams,
                               uint32_t max_new_tokens) override {
    const std::vector<uint32_t> sources[] = {{source.begin(), source.end()}};
    GenerationRequest request;
    request.sources = sources;
    request.settings = search_of(config_, beams, max_new_tokens);
    return model_->generate(request).items.at(0).at(0).ids;
  }

 private:
  const EncoderDecoderConfig& config_;
  std::unique_ptr<EncoderDecoderModel> model_;
};

class MarianFiles : public TranslationFiles {
 public:
  explicit MarianFiles(const Path& path)
      : checkpoint_(path), config_(read_encoder_decoder_config(checkpoint_)) {}

  const Checkpoint& checkpoint() const override { return checkpoint_; }

  TransformerShape shape() const override {
    if (family_of(checkpoint_).encoder_decoder != &kMarian || !config_.embedding.shared ||
        !config_.output.tied || config_.embedding.norm || config_.norms.final_norm ||
        config_.embedding.positions != Seq2SeqPositions::kSinusoids) {
      throw ModelError(checkpoint_.path().string(),
                       "is a variant that the reference does not define", "");
    }
    return {.encoder = {config_.encoder.layers, config_.encoder.heads, config_.encoder.hidden},
            .decoder = {config_.decoder.layers, config_.decoder.heads, config_.decoder.hidden},
            .width = config_.width,
            .vocabulary = config_.target_vocabulary,
            .norms = config_.norms.place,
            .norm_epsilon = config_.norms.epsilon,
            .activation = config_.feed_forward.activation,
            .scale_embedding = config_.embedding.scale != 1};
  }

  BeamSettings search_settings(uint32_t max_new_tokens) const override {
    const GenerationSettings settings = search_of(config_, 1, max_new_tokens);
    BeamSettings beam = {.start = settings.start,
                         .ends = settings.ends,
                         .pad = settings.pad,
                         .max_length = max_new_tokens + 1,
                         .length_penalty = settings.length_penalty,
                         .early_stopping = settings.early_stopping,
                         .banned = settings.banned};
    if (settings.forced_eos) beam.forced_last = {max_new_tokens, *settings.forced_eos};
    return beam;
  }

  std::unique_ptr<LoadedTranslation> load(Device& device) const override {
    return std::make_unique<LoadedMarian>(device, checkpoint_, config_);
  }

 private:
  Checkpoint checkpoint_;
  EncoderDecoderConfig config_;
};

class Models : public ModelsUnderTest {
 public:
  std::string read(Device& device, const Path& path) const override {
    const OpenModel model = open_files(path);
    const Checkpoint& checkpoint = model.checkpoint();
    if (!checkpoint.has_config()) return "";  // without config.json, or GGUF: all was checked
    if (!model.find_family())
      return fmt::format("no model family `{}`", printable(checkpoint.model_type()));
    load_model(device, model);
    return "";
  }

  std::unique_ptr<TranslationFiles> bundled_translation() const override {
    const Path path = find_bundled_model();
    return path.empty() ? nullptr : std::make_unique<MarianFiles>(path);
  }
};

}  // namespace

const ModelsUnderTest& models_under_test() {
  static const Models models;
  return models;
}

const std::vector<SuiteCase>& suite_with_models() {
  static const std::vector<SuiteCase> cases = [] {
    std::vector<SuiteCase> all = suite();
    std::ranges::move(model_cases(models_under_test()), std::back_inserter(all));
    return all;
  }();
  return cases;
}

}  // namespace mulciber::apps
