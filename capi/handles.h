// The objects behind the handles of the C interface, and the guard around its calls.
#pragma once

#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "mulciber/embedding.h"
#include "mulciber/image_task.h"
#include "mulciber/mulciber_c.h"
#include "mulciber/text_encoder.h"

struct MulciberContext {
  std::string message;
  mulciber::DeviceDescription description;  // storage of mulciber_describe_device()'s result
  // Storage that the result of the last mulciber_query_requirements() points to.
  mulciber::Requirements requirements;
  std::vector<MulciberRequirement> list;
  std::vector<const char*> extensions;
  std::string obstacles;
  std::shared_ptr<const void> unplaced;  // storage of mulciber_enable_features()'s result
};
struct MulciberDevice {
  std::shared_ptr<mulciber::Device> device;
};
struct MulciberModel {
  std::shared_ptr<const mulciber::OpenModel> model;
  mutable std::shared_ptr<const void> described = {};  // storage of mulciber_describe_model()
};
struct MulciberTranslator {
  mulciber::Translator translator;
  mutable std::shared_ptr<const void> described = {};  // texts of its last report
};
struct MulciberGenerator {
  mulciber::TextGenerator generator;
  std::optional<std::vector<mulciber::AdapterScale>> adapters = {};  // mulciber_use_adapters()
  std::shared_ptr<const void> described = {};  // storage of the last description
};
struct MulciberGrammar {
  mulciber::Grammar grammar;
};
struct MulciberTextEncoder {
  mulciber::TextEncoder encoder;
  mutable std::shared_ptr<const void> described = {};  // texts of its last report
};
struct MulciberTask {
  std::unique_ptr<mulciber::FrameTask> task;
  mulciber::TranslationTask* translation = nullptr;  // one of these five is set
  mulciber::GenerationTask* generation = nullptr;
  mulciber::AttentionTask* attention = nullptr;
  mulciber::EmbeddingTask* embedding = nullptr;
  mulciber::ImageTask* image = nullptr;
  std::string text = {};
  std::shared_ptr<const void> shown = {};  // storage of the last call's result
};

namespace mulciber::c {

/// Calls `call` with `data`, and turns exceptions into a status and the context's message.
MulciberStatus guarded_call(MulciberContext* context, void (*call)(const void* data),
                            const void* data);

/// Guards a lambda. The code that catches exceptions is compiled once for all lambdas.
template <typename Call>
MulciberStatus guarded(MulciberContext* context, const Call& call) {
  return guarded_call(
      context, [](const void* data) { (*static_cast<const Call*>(data))(); }, &call);
}

[[noreturn]] void refuse_null(const char* name);
/// Refuses a number that is no enumerator. type: the enumeration, whose values the caller can give.
[[noreturn]] void refuse_enumerator(const char* name, int64_t value, const char* type);
/// Refuses a task of another kind. lacks: what the function gives and this task does not have.
/// remedy: functions that begin tasks which have it.
[[noreturn]] void refuse_task(const MulciberTask& task, const char* lacks, const char* remedy);
/// Copies the part of a caller's structure that both versions know. size: bytes of the structure in
/// this version.
void copy_any_version(void* to, const void* from, size_t size, const char* name);

}  // namespace mulciber::c
