// Reads files of outside vectors: members of an entry, its tensors, and the allowed distance of a
// device's number from a recorded one. The format: docs/reference/conformance-vectors.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "checkpoints/json.h"
#include "checkpoints/safetensors.h"
#include "conformance/op_case.h"

namespace mulciber::conformance {

/// A tensor of the file, widened to double.
struct Recorded {
  std::vector<uint64_t> shape;
  std::vector<double> values;
  bool narrow = false;  // it was rounded to f32

  std::vector<float> floats() const { return {values.begin(), values.end()}; }
  double largest() const;
};

/// The first extent of a tensor. Throws ModelError when the tensor is missing or has none.
uint64_t recorded_rows(const SafetensorsFile& file, const std::string& name);
/// Throws ModelError when the tensor is missing or neither F32 nor F64.
Recorded read_recorded(const SafetensorsFile& file, const std::string& name);
/// Throws ModelError also when the tensor has another shape.
Recorded read_recorded(const SafetensorsFile& file, const std::string& name,
                       const std::vector<uint64_t>& shape);
/// An I64 tensor: lengths, ids. Throws ModelError when one of them is not below `limit`.
std::vector<uint32_t> read_numbers(const SafetensorsFile& file, const std::string& name,
                                   const std::vector<uint64_t>& shape, uint64_t limit);

/// A member that is a count. Throws Json::exception when it is missing, below `least` or
/// unreasonably large.
uint64_t extent(const Json& entry, const char* key, uint64_t least);
/// The member `key`, or `other` where that is missing; otherwise like extent().
uint64_t extent_or(const Json& entry, const char* key, const char* other, uint64_t least);
/// The name of an entry. Throws Json::exception when it has none.
std::string name_of(const Json& entry);
/// A member that is an object, or an empty object.
Json member(const Json& entry, const char* key);
/// A member that is text, or "".
std::string text(const Json& entry, const char* key);

/// An input of a case that does not depend on the seed.
CaseInput recorded_input(Shape shape, std::vector<double> values, DataType type);

/// Allowed error as a share of the largest recorded value of a tensor: with only f32 storage, and
/// where something is stored in f16.
constexpr double kShare32 = 1e-5, kShare16 = 2e-3;

}  // namespace mulciber::conformance
