// The program of one case, with its inputs on the device between guard bytes, so that what a kernel
// writes where it should not, or does not write where it should, shows.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "conformance/op_case.h"
#include "runtime/program.h"

namespace mulciber::conformance {

struct Placement {
  uint64_t guard_bytes = 0;  // before and after every buffer; a multiple of 256
  uint64_t seed = 0;         // of the offsets at which buffers start; 0: none
};

class CaseProgram {
 public:
  /// `row` is forced for its op; null leaves every choice to selection.
  /// Throws KernelError or ShapeError when the device or the row cannot serve the case.
  CaseProgram(Device& device, const OpCase& op_case, const Kernel* row, Placement placement = {});

  Program& program() { return *program_; }
  const std::vector<Tensor>& outputs() const { return outputs_; }

  /// Writes the inputs, and poison (runtime/memory_guard.h) over everything else.
  void fill(const std::vector<HostTensor>& inputs);
  /// The outputs' bytes after a run.
  std::vector<std::vector<std::byte>> read_outputs();
  /// Where a byte changed that no tensor of the program owns, or "" when none did. (One read back
  /// per buffer: call it when the results are settled.)
  std::string damage();

  /// Device bytes of output `index`, for fault injection.
  BufferView output_view(size_t index) const { return program_->view(outputs_[index]); }
  /// Device bytes of the guard behind the last input.
  BufferView guard_view() const;

 private:
  struct Guarded {
    Buffer buffer;
    BufferView inside;
  };
  Guarded allocate(uint64_t bytes, uint64_t random);

  Device& device_;
  Placement placement_;
  std::vector<Guarded> inputs_;
  std::vector<Tensor> outputs_;
  std::unique_ptr<Program> program_;
};

/// The bytes of a tensor as the device stores it.
std::vector<std::byte> to_bytes(const HostTensor& tensor);
/// The numbers in such bytes, of a tensor of so many columns.
std::vector<double> values_of(const std::vector<std::byte>& bytes, DataType type, uint64_t columns);

}  // namespace mulciber::conformance
