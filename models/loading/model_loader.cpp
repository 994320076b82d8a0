// Incremental loading.
#include "mulciber/model_loader.h"

#include <utility>

#include "models/adapters/adapters.h"
#include "models/adapters/weights_load.h"
#include "models/core/device_weights.h"
#include "models/encoding/text_encoder_impl.h"
#include "models/families/open_model.h"
#include "models/generation/generator_options.h"
#include "models/generation/text_generator_impl.h"
#include "models/translation/translator_impl.h"
#include "models/vision/image_runner.h"
#include "mulciber/error.h"
#include "runtime/public_devices.h"

namespace mulciber {

struct ModelLoader::Impl {
  std::shared_ptr<Device> device;
  std::shared_ptr<const OpenModel> model;  // source of the weights
  GeneratorOptions options;
  std::shared_ptr<WeightsLoad> weights;
  Progress progress;

  Impl(std::shared_ptr<Device> on, std::shared_ptr<const OpenModel> opened,
       const GeneratorOptions& wanted)
      : device(given(std::move(on), "ModelLoader")), model(std::move(opened)), options(wanted) {
    const Architecture& architecture = model->architecture();
    const bool decoder = model->capabilities().has(Capability::kContinueText);
    const ModelOptions loading = decoder ? model_options(options, architecture.extents().context)
                                         : model_options(options.load);
    architecture.check_plan(*device, loading);
    weights = start_weights(*device, architecture.declare().table(), model->checkpoint(),
                            model_type(model->checkpoint()), loading);
    progress.total = weights->total();
  }
  /// Hands the weights over, once.
  std::shared_ptr<WeightsLoad> take(Capability capability) {
    model->require(capability);
    if (!progress.complete || !weights)
      throw SettingError("ModelLoader", weights ? "is not complete" : "has given its model away",
                         "ask for the model once, when step() says that all is there");
    options.on_plan = nullptr;  // it was called already
    return std::exchange(weights, nullptr);
  }
};

ModelLoader::ModelLoader(std::shared_ptr<Device> device, std::shared_ptr<const OpenModel> model,
                         const GeneratorOptions& options)
    : impl_(std::make_unique<Impl>(std::move(device), std::move(model), options)) {}

ModelLoader::~ModelLoader() = default;
ModelLoader::ModelLoader(ModelLoader&&) noexcept = default;
ModelLoader& ModelLoader::operator=(ModelLoader&&) noexcept = default;

ModelLoader::Progress ModelLoader::step(uint64_t bytes) {
  Impl& impl = *impl_;
  if (impl.progress.complete) return impl.progress;
  impl.progress.complete = !impl.weights->step(bytes);
  impl.progress.done = impl.weights->done();
  if (impl.options.load.on_progress)
    impl.options.load.on_progress(impl.progress.done, impl.progress.total);
  return impl.progress;
}

ModelLoader::Progress ModelLoader::progress() const { return impl_->progress; }

Translator ModelLoader::translator() {
  auto made = std::make_shared<Translator::Impl>(impl_->device);
  made->load(*impl_->model, impl_->options.load, impl_->take(Capability::kTranslate));
  return Translator(std::move(made));
}

TextGenerator ModelLoader::generator() {
  auto made = std::make_shared<TextGenerator::Impl>(impl_->device);
  std::shared_ptr<WeightsLoad> weights = impl_->take(Capability::kContinueText);
  made->start(impl_->model, impl_->options, std::move(weights));
  return TextGenerator(std::move(made));
}

TextEncoder ModelLoader::text_encoder() {
  auto made = std::make_shared<TextEncoder::Impl>();
  made->open(impl_->device, *impl_->model, impl_->options.load,
             impl_->take(Capability::kEncodeText));
  return TextEncoder(std::move(made));
}

ImageEncoder ModelLoader::image_encoder() {
  ImageRunner::require(*impl_->model, Capability::kEncodeImages);
  return {impl_->device, *impl_->model, impl_->options.load,
          impl_->take(Capability::kEncodeImages)};
}

ImageClassifier ModelLoader::image_classifier() {
  ImageRunner::require(*impl_->model, Capability::kClassifyImages);
  return {impl_->device, *impl_->model, impl_->options.load,
          impl_->take(Capability::kClassifyImages)};
}

ImageTextMatcher ModelLoader::image_text_matcher() {
  return {impl_->device, *impl_->model, impl_->options.load, impl_->take(Capability::kMatch)};
}

ImageTextReader ModelLoader::image_text_reader() {
  return {impl_->device, *impl_->model, impl_->options.load,
          impl_->take(Capability::kReadImageText)};
}

Transcriber ModelLoader::transcriber() {
  return {impl_->device, *impl_->model, impl_->options.load, impl_->take(Capability::kHear)};
}

uint64_t pipelines_made(Device& device) { return device.counters().pipelines; }

}  // namespace mulciber
