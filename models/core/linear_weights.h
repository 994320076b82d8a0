// Rows of the weight table for a linear layer, which may be several matrices of the file in one.
#pragma once

#include <string>
#include <vector>

#include "checkpoints/weights.h"

namespace mulciber {

/// What files may call a weight, or a layer without ".weight"; the first one present is read.
using WeightNames = std::vector<std::string>;

inline WeightNames with_ending(WeightNames names, const char* ending) {
  for (std::string& name : names) name += ending;
  return names;
}

/// With the ending, or as they are: some files name single tensors without one.
inline WeightNames any_ending(const WeightNames& names, const char* ending) {
  WeightNames any = with_ending(names, ending);
  any.insert(any.end(), names.begin(), names.end());
  return any;
}

struct LinearPart {
  WeightNames names;
  uint64_t rows;
  uint64_t rows_in_file = 0, first_row = 0;  // where it is part of a taller matrix
};

/// Adds NAME.weight, (rows of all parts, columns), and NAME.bias where there is one. in_turns: row
/// 0 of every part, then row 1 of every part, and so on. any_column_order: as
/// WeightSpec::any_column_order, for a product that Linear::column_order is given to.
inline void add_linear(WeightTable& table, const std::string& name,
                       const std::vector<LinearPart>& parts, uint64_t columns, bool bias,
                       bool in_turns = false, SourceForm form = SourceForm::kAsInFile,
                       bool any_column_order = false) {
  uint64_t rows = 0;
  for (const LinearPart& part : parts) rows += part.rows;
  const auto turns = static_cast<uint32_t>(in_turns ? parts.size() : 1);
  WeightSpec matrix = {name + ".weight", WeightRole::kMatrix, {rows, columns}, {}, turns};
  matrix.any_column_order = any_column_order;
  WeightSpec vector = {name + ".bias", WeightRole::kVector, {rows}, {}, turns};
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
