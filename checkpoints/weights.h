// Loads the weights of a model from the tensors of a checkpoint: the tensors that a model needs,
// their form, and the conversion. WeightSink hides their destination.
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
  kExperts,  // experts' matrices (experts, rows, columns): like kMatrix, of one type
  kVector,   // norms and biases: f32
};

/// Storage of matrices on the device: the type of the file, or f16 for all.
enum class MatrixStorage { kAsInFile, kF16 };

/// The conversion from a tensor of the file to a weight.
enum class SourceForm {
  kAsInFile,
  kTransposed,  // the file holds (columns, rows), or for experts (experts, columns, rows)
  kPlusOne,     // the file holds the weight minus 1
  kMinusExp,    // the file holds the logarithm of the weight, which is below 0
  /// The file holds a convolution, (rows, channels, taps), and so does `shape`; the weight has
  /// (rows, taps * channels), tap by tap.
  kTapByTap,
  kZeros,  // no tensor: zeros, for a kVector
  kOnes,   // no tensor: ones, for a kVector
};

/// One tensor of the file.
struct WeightSource {
  std::vector<std::string> names;  // names in files; the first existing one is read
  Shape shape;                     // shape in the file, but see the members below
  SourceForm form = SourceForm::kAsInFile;
  /// The source is a part of a matrix of rows_in_file rows: those from first_row on. 0: `shape` is
  /// the whole matrix. With experts in one tensor, each expert's matrix is read like this; only
  /// adapters do so.
  uint64_t rows_in_file = 0, first_row = 0;
  /// A vector of the file with a factor for each row (in one dimension: for each element), in f32.
  /// Only for kAsInFile.
  std::vector<std::string> row_scales = {};
};

/// One weight of a model: its sources, one after the other, rows below rows. Sources of one type
/// make one tensor. Where types differ the weight becomes several tensors, one below the other,
/// each in the type of its file. Interleaved sources and experts become f32 instead, which holds
/// every value; experts become f16 where some of them are in blocks.
struct WeightSpec {
  std::string name;
  WeightRole role;
  Shape shape;
  std::vector<WeightSource> sources;
  /// Number of consecutive sources whose rows are interleaved: the first row of each, then the
  /// second row of each, and so on; a row of a one-dimensional source is an element.
  uint32_t interleaved = 1;
  bool interleaves_elements = false;  // elements instead of rows, for sources of any dimensions
  /// Allows a kMatrix to have another column order than the file if that keeps it in blocks. Its
  /// last segment is then the order: (columns) u32, column i is the file's order[i].
  bool any_column_order = false;
};

/// Every weight of a model, once: the loader checks, predicts and uploads this list.
using WeightTable = std::vector<WeightSpec>;

/// Receives the bytes of weights that are on the device or on their way, and the bytes of all.
using WeightProgress = std::function<void(uint64_t done, uint64_t total)>;

/// One stored tensor of a weight: a weight whose sources differ in type has several.
struct WeightSegment {
  DataType type;
  Shape shape;
  uint64_t bytes() const { return shape.rows() * row_bytes(type, shape.columns()); }
};

/// Returns the segments of a weight, in order. family: for messages ("marian"). Throws ModelError
/// naming a tensor that is missing or whose shape contradicts the configuration.
std::vector<WeightSegment> weight_segments(const WeightSpec& spec, const Checkpoint& checkpoint,
                                           const std::string& family, MatrixStorage storage);

/// Bytes that the weights take on the device, each segment rounded up like the allocator does.
/// Throws as weight_segments() does.
uint64_t weight_bytes(const WeightTable& table, const Checkpoint& checkpoint,
                      const std::string& family, MatrixStorage storage);

/// Destination of weights, such as device memory (models/core/device_weights.h).
class WeightSink {
 public:
  virtual ~WeightSink() = default;
  /// Begins a weight of these segments. They belong in one piece of memory, each at a multiple of
  /// kWeightAlignment, so that one dispatch can bind them all.
  virtual void begin(const std::string& name, std::span<const WeightSegment> segments) = 0;
  /// Writes bytes of one of its segments, from `offset`. Every byte of every segment is written
  /// once, in order.
  virtual void write(size_t segment, uint64_t offset, std::span<const std::byte> bytes) = 0;
};

/// Memory of weights is allocated in multiples of this many bytes, to which the allocator rounds
/// up.
constexpr uint64_t kWeightAlignment = 256;
constexpr uint64_t aligned_weight_bytes(uint64_t bytes) {
  return (bytes + kWeightAlignment - 1) / kWeightAlignment * kWeightAlignment;
}

/// Reads every weight of a table from the mapped files, part by part.
class WeightReader {
 public:
  /// family: for messages ("marian"). The arguments outlive the reader. Throws as weight_bytes()
  /// does.
  WeightReader(const WeightTable& table, const Checkpoint& checkpoint, std::string family,
               MatrixStorage storage, WeightSink& sink);
  ~WeightReader();

  /// Converts weights piece by piece and gives the sink at most `bytes`, but at least one piece (of
  /// at most 1 MiB and a row, where it is converted). False: all is read. Throws what the sink
  /// throws.
  bool step(uint64_t bytes);
  /// Bytes read so far, in the device's form, including alignment.
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
  size_t spec_ = 0;  // index in the table
  std::unique_ptr<Open> open_;
  uint64_t done_ = 0, total_ = 0;
};

/// Reads every weight of a table from the mapped files, converts it piece by piece and gives it to
/// `sink`. family: for messages ("marian"). Throws as weight_bytes() does, and what the sink
/// throws.
void read_weights(const WeightTable& table, const Checkpoint& checkpoint, const std::string& family,
                  MatrixStorage storage, WeightSink& sink, const WeightProgress& progress = {});

}  // namespace mulciber
