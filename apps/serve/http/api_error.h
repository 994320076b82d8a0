// An error response in the format of OpenAI's API.
#pragma once

#include <exception>
#include <string>

namespace mulciber::apps::serve {

/// Thrown while a request is read or answered. `status`: HTTP's. `type`, `code` and `param` as in
/// OpenAI's error objects: "invalid_request_error", "context_length_exceeded", "messages".
class ApiError : public std::exception {
 public:
  ApiError(int status, std::string message, std::string param = {}, std::string code = {});

  const char* what() const noexcept override { return message_.c_str(); }
  int status() const { return status_; }
  const std::string& param() const { return param_; }
  const std::string& code() const { return code_; }
  /// Seconds after which another attempt makes sense; 0: the response names none.
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

/// Thrown when the client has closed its connection, so that no response can be sent.
struct ClientGone : ApiError {
  /// nginx introduced this status for logs.
  ClientGone() : ApiError(499, "the client closed the connection", "", "client_gone") {}
};

/// Throws the error for a part of a request that cannot be used: 400, with the field's name.
[[noreturn]] void refuse(const std::string& param, const std::string& message,
                         const std::string& code = {});

/// Converts any exception: the library's ModelError and SettingError are the request's fault (400),
/// a DeviceError is the server's (503).
ApiError to_api_error(const std::exception& error);

}  // namespace mulciber::apps::serve
