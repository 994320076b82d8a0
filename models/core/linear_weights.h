// Weights of a linear layer, which may concatenate several matrices of the file.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "checkpoints/weights.h"

namespace mulciber {

/// Names that files may use for a weight, or for a layer without ".weight"; the first present one
/// is read.
using WeightNames = std::vector<std::string>;

inline WeightNames with_prefixes(std::span<const char* const> prefixes, const std::string& part) {
  WeightNames names;
  for (const char* prefix : prefixes) names.push_back(prefix + part);
  return names;
}

inline WeightNames with_ending(WeightNames names, const char* ending) {
  for (std::string& name : names) name += ending;
  return names;
}

/// Names with the ending, then without it: some files name single tensors without an ending.
inline WeightNames any_ending(const WeightNames& names, const char* ending) {
  WeightNames any = with_ending(names, ending);
  any.insert(any.end(), names.begin(), names.end());
  return any;
}

struct LinearPart {
  WeightNames names;
  uint64_t rows;
  uint64_t rows_in_file = 0, first_row = 0;  // for a part of a taller matrix
};

/// NAME.weight, (rows of all parts, columns). interleaved: interleaves the rows, row 0 of every
/// part, then row 1 of every part, and so on.
inline WeightSpec linear_matrix(const std::string& name, const std::vector<LinearPart>& parts,
                                uint64_t columns, bool interleaved = false,
                                SourceForm form = SourceForm::kAsInFile) {
  WeightSpec spec = {name + ".weight", WeightRole::kMatrix, {}, {}};
  if (interleaved) spec.interleaved = static_cast<uint32_t>(parts.size());
  uint64_t rows = 0;
  for (const LinearPart& part : parts) {
    rows += part.rows;
    spec.sources.push_back({with_ending(part.names, ".weight"),
                            {part.rows, columns},
                            form,
                            part.rows_in_file,
                            part.first_row});
  }
  spec.shape = {rows, columns};
  return spec;
}

/// NAME.bias, (rows of all parts).
inline WeightSpec linear_bias(const std::string& name, const std::vector<LinearPart>& parts,
                              bool interleaved = false) {
  WeightSpec spec = {name + ".bias", WeightRole::kVector, {}, {}};
  if (interleaved) spec.interleaved = static_cast<uint32_t>(parts.size());
  uint64_t rows = 0;
  for (const LinearPart& part : parts) {
    rows += part.rows;
    spec.sources.push_back({with_ending(part.names, ".bias"),
                            {part.rows},
                            SourceForm::kAsInFile,
                            part.rows_in_file,
                            part.first_row});
  }
  spec.shape = {rows};
  return spec;
}

}  // namespace mulciber
