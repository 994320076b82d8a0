// Typed errors. Every message says what failed, where, and what to do about it.
#pragma once

#include <stdexcept>
#include <string>

#include "mulciber/export.h"

namespace mulciber {

/// Base of every error the library throws. The library never prints, aborts or exits.
/// what() joins the parts: "WHERE: WHAT; REMEDY".
class MULCIBER_API Error : public std::runtime_error {
 public:
  /// where: the file, tensor, layer, option or device concerned; may be empty.
  /// problem: what is wrong, with the numbers. remedy: what the reader can do; may be empty.
  Error(std::string where, std::string problem, std::string remedy);

  const std::string& where() const { return where_; }
  const std::string& problem() const { return problem_; }
  const std::string& remedy() const { return remedy_; }

 private:
  std::string where_, problem_, remedy_;
};

/// No device, a missing feature, out of device memory, or a lost device.
class MULCIBER_API DeviceError : public Error {
 public:
  enum class Kind { kUnavailable, kOutOfMemory, kLost, kFailed };
  DeviceError(Kind kind, std::string where, std::string problem, std::string remedy = {});
  Kind kind() const { return kind_; }

 private:
  Kind kind_;
};

/// No kernel variant serves a problem on this device, or a shader module is malformed.
class MULCIBER_API KernelError : public Error {
 public:
  using Error::Error;
};

/// An invalid setting, such as an unknown word in a list of limits.
class MULCIBER_API SettingError : public Error {
 public:
  using Error::Error;
};

/// Tensors whose shapes or types do not fit the operation, named by layer.
class MULCIBER_API ShapeError : public Error {
 public:
  using Error::Error;
};

/// A checkpoint, configuration, tokenizer or input text that cannot be used.
class MULCIBER_API ModelError : public Error {
 public:
  using Error::Error;
};

/// Logits that are NaN or infinite: a weight holds such a value, or activations exceed the range of
/// their type.
class MULCIBER_API LogitsError : public ModelError {
 public:
  using ModelError::ModelError;
};

}  // namespace mulciber
