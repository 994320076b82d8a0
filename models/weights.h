// From the tensors of a checkpoint to the weights of a model on the device.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "models/checkpoint.h"
#include "runtime/device.h"
#include "runtime/tensor.h"

namespace mulciber {

enum class WeightRole {
  kMatrix,  // keeps the type of the file where the device has it (f32, f16, bf16, blocks), else f32
  kVector,  // norms and biases: f32
};

/// Storage of matrices on the device: as in the file, or everything that is not f16 converted to
/// it.
enum class MatrixStorage { kAsInFile, kF16 };

/// How the values of a tensor of the file become those of a weight.
enum class SourceForm {
  kAsInFile,
  kTransposed,  // the file holds (columns, rows)
  kPlusOne,     // the file holds the weight less 1
};

/// One tensor of the file. Its elements are those of `shape`, whatever leading 1s the file adds.
struct WeightSource {
  std::vector<std::string> names;  // what files call it; the first one present is read
  Shape shape;                     // as the weight has it, not as the file does
  SourceForm form = SourceForm::kAsInFile;
};

/// One weight of a model: its sources, one after the other, rows below rows. Sources of one type
/// make one tensor. Where their types differ the weight becomes several, one below the other, each
/// in the type of its file; those to be interleaved become f32 then, which holds every value.
struct WeightSpec {
  std::string name;
  WeightRole role;
  Shape shape;
  std::vector<WeightSource> sources;
  bool interleaved = false;  // the first row of every source, then the second of every source, ...
};

/// Every weight of a model, once: what the loader checks, predicts and uploads.
using WeightTable = std::vector<WeightSpec>;

/// Bytes the weights take on the device, each rounded up as the allocator does.
/// Throws ModelError naming a tensor that is missing or whose shape is not the configuration's.
uint64_t weight_bytes(const WeightTable& table, const Checkpoint& checkpoint,
                      const std::string& family, MatrixStorage storage);

/// Called with the bytes of weights that are on the device, or on their way, and of all.
using WeightProgress = std::function<void(uint64_t done, uint64_t total)>;

/// The weights of a model in device memory. Nothing of them stays on the host.
class Weights {
 public:
  /// Reads the mapped files piece by piece through a bounded staging ring.
  /// family: for messages ("marian"). Throws as weight_bytes(), and DeviceError.
  Weights(Device& device, const WeightTable& table, const Checkpoint& checkpoint,
          const std::string& family, MatrixStorage storage, const WeightProgress& progress = {});

  /// Adds a weight that is computed and not read.
  void add(Device& device, const std::string& name, Shape shape, std::span<const float> values);

  /// Throws ShapeError when the table has no weight of that name, or when it stands in several
  /// tensors.
  const Tensor& operator[](const std::string& name) const;
  /// The tensors of a weight whose sources may differ in type, rows below rows.
  const std::vector<Tensor>& parts(const std::string& name) const;
  bool has(const std::string& name) const { return tensors_.count(name) > 0; }
  uint64_t bytes() const { return bytes_; }

 private:
  std::vector<Buffer> buffers_;
  std::map<std::string, std::vector<Tensor>> tensors_;
  uint64_t bytes_ = 0;
};

/// Throws DeviceError kOutOfMemory when `bytes` (of `what`, for the message) are above `limit`, or
/// above what the device has available where limit is 0.
void require_memory(Device& device, uint64_t bytes, uint64_t limit, const std::string& what);

}  // namespace mulciber
