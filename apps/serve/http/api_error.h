// An answer that says what is wrong with a request, as OpenAI's interface words it.
#pragma once

#include <exception>
#include <string>

namespace mulciber::apps::serve {

/// Thrown while a request is read or answered. `status`: of HTTP. `type`, `code` and `param` as in
/// OpenAI's error objects: "invalid_request_error", "context_length_exceeded", "messages".
class ApiError : public std::exception {
 public:
  ApiError(int status, std::string message, std::string param = {}, std::string code = {});

  const char* what() const noexcept override { return message_.c_str(); }
  int status() const { return status_; }
  const std::string& param() const { return param_; }
  const std::string& code() const { return code_; }
  /// Seconds after which another attempt makes sense; 0: none is named.
  int retry_after() const { return retry_after_; }
  ApiError& retry_after(int seconds) {
    retry_after_ = seconds;
    return *this;
  }

  /// {"error": {"message", "type", "param", "code"}} on one line.
  std::string json() const;

 private:
  int status_;
  std::string message_, param_, code_;
  int retry_after_ = 0;
};

/// Thrown when the client has closed its connection: there is nobody to answer.
struct ClientGone : ApiError {
  /// The status is what logs call this, since nginx.
  ClientGone() : ApiError(499, "the client closed the connection", "", "client_gone") {}
};

/// What a request holds that cannot be used: 400, with the field's name.
[[noreturn]] void refuse(const std::string& param, const std::string& message,
                         const std::string& code = {});

/// What any exception becomes: the library's ModelError and SettingError are the request's fault
/// (400), a DeviceError the server's (503).
ApiError to_api_error(const std::exception& error);

}  // namespace mulciber::apps::serve
