#include "apps/serve/http/api_error.h"

#include <new>
#include <nlohmann/json.hpp>
#include <utility>

#include "checkpoints/json.h"
#include "mulciber/error.h"

namespace mulciber::apps::serve {
namespace {

const char* type_of(int status) {
  switch (status) {
    case 401: return "authentication_error";
    case 403: return "permission_error";
    case 404: return "not_found_error";
    case 429: return "rate_limit_error";
    default: return status < 500 ? "invalid_request_error" : "server_error";
  }
}

}  // namespace

ApiError::ApiError(int status, std::string message, std::string param, std::string code)
    : status_(status),
      message_(std::move(message)),
      param_(std::move(param)),
      code_(std::move(code)) {}

std::string ApiError::json() const {
  Json error = {{"message", message_}, {"type", type_of(status_)}};
  error["param"] = param_.empty() ? Json(nullptr) : Json(param_);
  error["code"] = code_.empty() ? Json(nullptr) : Json(code_);
  return json_line({{"error", std::move(error)}});
}

void refuse(const std::string& param, const std::string& message, const std::string& code) {
  throw ApiError(400, message, param, code);
}

ApiError to_api_error(const std::exception& error) {
  if (const auto* own = dynamic_cast<const ApiError*>(&error)) return *own;
  if (dynamic_cast<const DeviceError*>(&error) || dynamic_cast<const KernelError*>(&error))
    return {503, error.what(), "", "device_failed"};
  if (const auto* typed = dynamic_cast<const Error*>(&error)) return {400, typed->what()};
  if (dynamic_cast<const std::bad_alloc*>(&error))
    return {503, "the server is out of memory", "", "out_of_memory"};
  return {500, error.what(), "", "internal_error"};
}

}  // namespace mulciber::apps::serve
