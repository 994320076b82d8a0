// Finds the values of weights in a checkpoint's files and converts them to the device's form.
#pragma once

#include <algorithm>
#include <optional>

#include "base/blocks.h"
#include "checkpoints/weights.h"

namespace mulciber {

// Conversion uses pieces of this many elements in CPU memory.
constexpr uint64_t kPieceElements = 256 * 1024;

/// A source in the file.
struct Found {
  const CheckpointTensor* tensor = nullptr;  // null: zeros
  /// MXFP4 in two tensors: the exponents of blocks of 32, whose numbers `tensor` holds, lower four
  /// bits first. Source: Open Compute Project 2023, "OCP Microscaling Formats (MX) Specification",
  /// version 1.0; the names are those of gpt-oss.
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
  std::vector<SourceRange> ranges;  // one for each segment
  /// Content of the last segment, which has no sources; null: there is no such segment.
  const std::vector<uint32_t>* column_order = nullptr;
};

/// Finds the sources of a weight. Throws ModelError naming a tensor that is missing or whose shape
/// contradicts the configuration.
Resolved resolve(const WeightSpec& spec, const Checkpoint& checkpoint, const std::string& family,
                 MatrixStorage storage);

/// A source in the form that it has on the device.
struct Converted {
  const CheckpointTensor* tensor;  // null: zeros
  SourceForm form;
  DataType type;
  uint64_t rows, columns;                       // rows and columns of the result
  uint64_t skipped;                             // elements of the file before the first used one
  uint64_t taps = 1;                            // taps of a convolution
  uint64_t matrices = 1;                        // stacked matrices, with equal numbers of rows
  std::vector<float> scales;                    // for rows, or for elements; or empty
  const CheckpointTensor* exponents = nullptr;  // see Found

  /// Whether the source is copied from the file byte by byte, without blocks.
  bool as_it_is() const {
    return form == SourceForm::kAsInFile && !exponents && device_type(tensor->type) == type &&
           !is_block_type(type) && scales.empty();
  }

  /// Whether elements must be read by whole rows.
  bool by_rows() const {
    return form == SourceForm::kTransposed || form == SourceForm::kTapByTap || is_block_type(type);
  }

  /// Elements [first, first + count); whole rows where by_rows().
  std::vector<float> floats(uint64_t first, uint64_t count) const;

  /// Whole blocks in GGUF's form, where numbers i and i + 16 share a byte.
  std::vector<std::byte> mxfp4_blocks(uint64_t first, uint64_t count) const;

  /// Elements [first, first + count) in the device's form.
  std::vector<std::byte> bytes(uint64_t first, uint64_t count) const;

  /// Number of elements to convert at a time: whole rows where by_rows().
  uint64_t piece() const {
    const uint64_t in_rows = std::max<uint64_t>(kPieceElements / columns, 1) * columns;
    return by_rows() ? in_rows : kPieceElements;
  }
};

}  // namespace mulciber
