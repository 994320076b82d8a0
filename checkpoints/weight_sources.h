// Where the values of weights stand in a checkpoint's files, and how they become those that the
// device holds.
#pragma once

#include <algorithm>
#include <optional>

#include "base/blocks.h"
#include "checkpoints/weights.h"

namespace mulciber {

// Conversion goes through host memory in pieces of this many elements.
constexpr uint64_t kPieceElements = 256 * 1024;

/// A source as the file has it.
struct Found {
  const CheckpointTensor* tensor = nullptr;  // null: zeros
  /// Of MXFP4 in two tensors: the exponents of blocks of 32, whose numbers `tensor` holds, the
  /// lower four bits first. Source: Open Compute Project 2023, "OCP Microscaling Formats (MX)
  /// Specification", version 1.0; the names are those of gpt-oss.
  const CheckpointTensor* exponents = nullptr;
};

/// Neighbouring sources of one type.
struct SourceRange {
  size_t first, count;
};

struct Resolved {
  std::vector<Found> sources;
  std::vector<const CheckpointTensor*> scales;  // null: none
  std::vector<WeightSegment> segments;
  std::vector<SourceRange> ranges;  // of each segment
  /// What the last segment, without sources, holds; null: there is no such segment.
  const std::vector<uint32_t>* column_order = nullptr;
};

/// Of a weight. Throws ModelError naming a tensor that is missing or whose shape is not the
/// configuration's.
Resolved resolve(const WeightSpec& spec, const Checkpoint& checkpoint, const std::string& family,
                 MatrixStorage storage);

/// A source as it will lie on the device.
struct Converted {
  const CheckpointTensor* tensor;  // null: zeros
  SourceForm form;
  DataType type;
  uint64_t rows, columns;     // of the result
  uint64_t skipped;           // elements of the file before the first
  uint64_t taps = 1;          // of a convolution
  uint64_t matrices = 1;      // one below the other, each with its share of the rows
  std::vector<float> scales;  // of rows, or of elements; or empty
  const CheckpointTensor* exponents = nullptr;  // as Found

  /// Stored as in the file, byte by byte where there are no blocks.
  bool as_it_is() const {
    return form == SourceForm::kAsInFile && !exponents && device_type(tensor->type) == type &&
           !is_block_type(type) && scales.empty();
  }

  /// Whether elements are asked for by whole rows.
  bool by_rows() const {
    return form == SourceForm::kTransposed || form == SourceForm::kTapByTap || is_block_type(type);
  }

  /// Elements [first, first + count), whole rows where by_rows() says so.
  std::vector<float> floats(uint64_t first, uint64_t count) const;

  /// Whole blocks as GGUF has them, where number i and number i + 16 share a byte.
  std::vector<std::byte> mxfp4_blocks(uint64_t first, uint64_t count) const;

  /// Those elements as the device holds them.
  std::vector<std::byte> bytes(uint64_t first, uint64_t count) const;

  /// Elements converted at a time: whole rows where that matters.
  uint64_t piece() const {
    const uint64_t in_rows = std::max<uint64_t>(kPieceElements / columns, 1) * columns;
    return by_rows() ? in_rows : kPieceElements;
  }
};

}  // namespace mulciber
