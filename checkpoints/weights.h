// From the tensors of a checkpoint to the weights of a model: what a model asks for, in which form,
// and the way there. Where the weights end up is behind WeightSink.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/data_type.h"
#include "base/shape.h"
#include "checkpoints/checkpoint.h"

namespace mulciber {

enum class WeightRole {
  kMatrix,  // keeps the type of the file where the device has it (f32, f16, bf16, blocks), else f32
  kExperts,  // matrices of experts, (experts, rows, columns): as kMatrix, of one type
  kVector,   // norms and biases: f32
};

/// Storage of matrices on the device: as in the file, or everything that is not f16 converted to
/// it.
enum class MatrixStorage { kAsInFile, kF16 };

/// How the values of a tensor of the file become those of a weight.
enum class SourceForm {
  kAsInFile,
  kTransposed,  // the file holds (columns, rows), or of experts (experts, columns, rows)
  kPlusOne,     // the file holds the weight less 1
  kMinusExp,    // the file holds the logarithm of the weight, which is below 0
  /// The file holds a convolution, (rows, channels, taps), and so does `shape`; the weight has
  /// (rows, taps * channels), tap by tap.
  kTapByTap,
  kZeros,  // the file holds nothing: zeros, of a kVector
  kOnes,   // likewise ones
};

/// One tensor of the file.
struct WeightSource {
  std::vector<std::string> names;  // what files call it; the first one present is read
  Shape shape;                     // of the file, but for what follows
  SourceForm form = SourceForm::kAsInFile;
  /// Of a taller matrix, which has that many rows: those from `first_row` on. 0: `shape` is all of
  /// it. Of experts in one tensor: of each one's matrix, for adapters alone.
  uint64_t rows_in_file = 0, first_row = 0;
  /// A vector of the file with a factor for each row (of one dimension: for each element). Of
  /// kAsInFile, in f32.
  std::vector<std::string> row_scales = {};
};

/// One weight of a model: its sources, one after the other, rows below rows. Sources of one type
/// make one tensor. Where their types differ the weight becomes several, one below the other, each
/// in the type of its file; those whose rows take turns, and experts, become f32 then, which holds
/// every value, or experts of which some are in blocks f16.
struct WeightSpec {
  std::string name;
  WeightRole role;
  Shape shape;
  std::vector<WeightSource> sources;
  /// Of each group of so many sources the first row of every one, then the second of every one,
  /// ...; elements are the rows of sources of one dimension. 1: no turns.
  uint32_t in_turns = 1;
  bool turns_by_element = false;  // likewise elements, of sources of any dimensions
  /// Of a kMatrix: its columns may come in another order than in the file, if that keeps it in
  /// blocks. Its last segment is then that order: (columns) u32, in column i the file's order[i].
  bool any_column_order = false;
};

/// Every weight of a model, once: what the loader checks, predicts and uploads.
using WeightTable = std::vector<WeightSpec>;

/// Called with the bytes of weights that are on the device, or on their way, and of all.
using WeightProgress = std::function<void(uint64_t done, uint64_t total)>;

/// One tensor of a weight as it is stored: a weight whose sources differ in type has several.
struct WeightSegment {
  DataType type;
  Shape shape;
  uint64_t bytes() const { return shape.rows() * row_bytes(type, shape.columns()); }
};

/// The segments of a weight, in order. family: for messages ("marian"). Throws ModelError naming a
/// tensor that is missing or whose shape is not the configuration's.
std::vector<WeightSegment> weight_segments(const WeightSpec& spec, const Checkpoint& checkpoint,
                                           const std::string& family, MatrixStorage storage);

/// Bytes the weights take on the device, each segment rounded up as the allocator does. Throws as
/// weight_segments().
uint64_t weight_bytes(const WeightTable& table, const Checkpoint& checkpoint,
                      const std::string& family, MatrixStorage storage);

/// Where weights go: device memory, say (models/core/device_weights.h).
class WeightSink {
 public:
  virtual ~WeightSink() = default;
  /// A weight of these segments follows. They belong in one piece of memory, each at a multiple of
  /// kWeightAlignment, so that one dispatch can bind them all.
  virtual void begin(const std::string& name, std::span<const WeightSegment> segments) = 0;
  /// Bytes of one of its segments, from `offset`. Every byte of every segment is written once, in
  /// order.
  virtual void write(size_t segment, uint64_t offset, std::span<const std::byte> bytes) = 0;
};

/// Bytes; memory of weights is given out in multiples of this, as the allocator rounds it up.
constexpr uint64_t kWeightAlignment = 256;
constexpr uint64_t aligned_weight_bytes(uint64_t bytes) {
  return (bytes + kWeightAlignment - 1) / kWeightAlignment * kWeightAlignment;
}

/// Reads every weight of a table from the mapped files, a part at a time.
class WeightReader {
 public:
  /// family: for messages ("marian"). What is given outlives the reader. Throws as weight_bytes().
  WeightReader(const WeightTable& table, const Checkpoint& checkpoint, std::string family,
               MatrixStorage storage, WeightSink& sink);
  ~WeightReader();

  /// Converts weights piece by piece and hands the sink no more than `bytes`, but at least one
  /// piece (of 1 MiB and a row at most, where it is converted). False: there is no more. Throws
  /// what the sink throws.
  bool step(uint64_t bytes);
  /// Bytes as the device has them, alignment included.
  uint64_t done() const { return done_; }
  uint64_t total() const { return total_; }

 private:
  struct Open;
  void open_segment();
  void close_segment();

  const WeightTable& table_;
  const Checkpoint& checkpoint_;
  std::string family_;
  MatrixStorage storage_;
  WeightSink& sink_;
  size_t spec_ = 0;  // of the table
  std::unique_ptr<Open> open_;
  uint64_t done_ = 0, total_ = 0;
};

/// Reads every weight of a table from the mapped files, converts it piece by piece and hands it to
/// `sink`. family: for messages ("marian"). Throws as weight_bytes(), and what the sink throws.
void read_weights(const WeightTable& table, const Checkpoint& checkpoint, const std::string& family,
                  MatrixStorage storage, WeightSink& sink, const WeightProgress& progress = {});

}  // namespace mulciber
