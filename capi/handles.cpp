// The guard around calls of the C interface, and checks of their arguments.
#include "capi/handles.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "mulciber/error.h"

namespace mulciber::c {
namespace {

MulciberStatus status_of(const DeviceError& error) {
  switch (error.kind()) {
    case DeviceError::Kind::kUnavailable: return MULCIBER_ERROR_UNAVAILABLE;
    case DeviceError::Kind::kOutOfMemory: return MULCIBER_ERROR_OUT_OF_MEMORY;
    case DeviceError::Kind::kLost: return MULCIBER_ERROR_DEVICE_LOST;
    case DeviceError::Kind::kFailed: break;
  }
  return MULCIBER_ERROR_DEVICE;
}

const char* subject_of(const MulciberTask& task) {
  if (task.translation) return "a translation";
  if (task.generation) return "a completion";
  if (task.attention) return "attention maps";
  return task.embedding ? "the embedding of a text" : "the embedding of an image";
}

MulciberStatus failed(MulciberContext* context, MulciberStatus status, const char* message) {
  try {
    context->message = message;
  } catch (...) {
    context->message.clear();  // no memory for the message
  }
  return status;
}

}  // namespace

MulciberStatus guarded_call(MulciberContext* context, void (*call)(const void* data),
                            const void* data) {
  if (!context) return MULCIBER_ERROR_SETTING;
  try {
    call(data);
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
    return failed(context, MULCIBER_ERROR_OUT_OF_MEMORY, "no CPU memory is left");
  } catch (const std::exception& error) {
    return failed(context, MULCIBER_ERROR_APPLICATION, error.what());
  } catch (...) {
    return failed(context, MULCIBER_ERROR_APPLICATION, "an exception of a type that is not known");
  }
}

void refuse_null(const char* name) { throw SettingError(name, "is NULL", "give one"); }

void refuse_enumerator(const char* name, int64_t value, const char* type) {
  throw SettingError(name, fmt::format("is {}", value), fmt::format("give one of {}", type));
}

void refuse_task(const MulciberTask& task, const char* lacks, const char* remedy) {
  throw SettingError("task", fmt::format("computes {}, and has no {}", subject_of(task), lacks),
                     fmt::format("give one of {}", remedy));
}

void copy_any_version(void* to, const void* from, size_t size, const char* name) {
  if (!from) refuse_null(name);
  uint32_t given = 0;
  std::memcpy(&given, from, sizeof given);
  if (given < 2 * sizeof(uint32_t) || given > 16 * size)
    throw SettingError(name, fmt::format("has a size of {}, and one of {} here", given, size),
                       "set size to sizeof");
  std::memcpy(to, from, std::min<size_t>(given, size));
}

}  // namespace mulciber::c
