// Rows of the weight table for a linear layer, which may concatenate several matrices of the file.
#pragma once

#include <string>
#include <vector>

#include "checkpoints/weights.h"

namespace mulciber {

/// Names that files may use for a weight, or for a layer without ".weight"; the first present one
/// is read.
using WeightNames = std::vector<std::string>;

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

/// Adds NAME.weight, (rows of all parts, columns), and NAME.bias if `bias`. interleaved: interleave
/// the rows, row 0 of every part, then row 1 of every part, and so on. any_column_order: sets
/// WeightSpec::any_column_order; the product must then get Linear::column_order.
inline void add_linear(WeightTable& table, const std::string& name,
                       const std::vector<LinearPart>& parts, uint64_t columns, bool bias,
                       bool interleaved = false, SourceForm form = SourceForm::kAsInFile,
                       bool any_column_order = false) {
  uint64_t rows = 0;
  for (const LinearPart& part : parts) rows += part.rows;
  const auto sources = static_cast<uint32_t>(interleaved ? parts.size() : 1);
  WeightSpec matrix = {name + ".weight", WeightRole::kMatrix, {rows, columns}, {}, sources};
  matrix.any_column_order = any_column_order;
  WeightSpec vector = {name + ".bias", WeightRole::kVector, {rows}, {}, sources};
  for (const LinearPart& part : parts) {
    matrix.sources.push_back({with_ending(part.names, ".weight"),
                              {part.rows, columns},
                              form,
                              part.rows_in_file,
                              part.first_row});
    vector.sources.push_back({with_ending(part.names, ".bias"),
                              {part.rows},
                              SourceForm::kAsInFile,
                              part.rows_in_file,
                              part.first_row});
  }
  table.push_back(std::move(matrix));
  if (bias) table.push_back(std::move(vector));
}

}  // namespace mulciber
