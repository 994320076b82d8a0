// What stands behind the handles of the C interface, and the guard around its calls.
#pragma once

#include <memory>
#include <new>
#include <string>
#include <vector>

#include "mulciber/embedding.h"
#include "mulciber/mulciber_c.h"
#include "mulciber/text_encoder.h"

struct MulciberContext {
  std::string message;
  // What the last mulciber_requirements() points to.
  mulciber::Requirements requirements;
  std::vector<MulciberRequirement> list;
  std::vector<const char*> extensions;
  std::string obstacles;
};
struct MulciberDevice {
  std::shared_ptr<mulciber::Device> device;
};
struct MulciberModel {
  std::shared_ptr<const mulciber::OpenModel> model;
};
struct MulciberTranslator {
  mulciber::Translator translator;
};
struct MulciberGenerator {
  mulciber::TextGenerator generator;
};
struct MulciberTextEncoder {
  mulciber::TextEncoder encoder;
};
struct MulciberTask {
  std::unique_ptr<mulciber::FrameTask> task;
  mulciber::TranslationTask* translation = nullptr;  // one of the three
  mulciber::GenerationTask* generation = nullptr;
  mulciber::AttentionTask* attention = nullptr;
  std::string text = {};
};

namespace mulciber::c {

inline MulciberStatus status_of(const DeviceError& error) {
  switch (error.kind()) {
    case DeviceError::Kind::kUnavailable: return MULCIBER_ERROR_UNAVAILABLE;
    case DeviceError::Kind::kOutOfMemory: return MULCIBER_ERROR_OUT_OF_MEMORY;
    case DeviceError::Kind::kLost: return MULCIBER_ERROR_DEVICE_LOST;
    case DeviceError::Kind::kFailed: break;
  }
  return MULCIBER_ERROR_DEVICE;
}

inline MulciberStatus failed(MulciberContext* context, MulciberStatus status, const char* message) {
  try {
    context->message = message;
  } catch (...) {
    context->message.clear();  // no memory for the words
  }
  return status;
}

/// Turns exceptions into a status and the context's message.
template <typename Call>
MulciberStatus guarded(MulciberContext* context, const Call& call) {
  if (!context) return MULCIBER_ERROR_SETTING;
  try {
    call();
    return MULCIBER_OK;
  } catch (const DeviceError& error) {
    return failed(context, status_of(error), error.what());
  } catch (const KernelError& error) {
    return failed(context, MULCIBER_ERROR_KERNEL, error.what());
  } catch (const ModelError& error) {
    return failed(context, MULCIBER_ERROR_MODEL, error.what());
  } catch (const Error& error) {
    return failed(context, MULCIBER_ERROR_SETTING, error.what());
  } catch (const std::bad_alloc&) {
    return failed(context, MULCIBER_ERROR_OUT_OF_MEMORY, "the host has no memory left");
  } catch (const std::exception& error) {
    return failed(context, MULCIBER_ERROR_HOST, error.what());
  } catch (...) {
    return failed(context, MULCIBER_ERROR_HOST, "an exception of a type that is not known");
  }
}

}  // namespace mulciber::c
