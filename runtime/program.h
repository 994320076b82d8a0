// A program: a list of nodes that layers build once, with one memory plan and one command buffer
// per layer, replayed for every step.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "runtime/device.h"
#include "runtime/kernel.h"
#include "runtime/memory_plan.h"
#include "runtime/tensor.h"

namespace mulciber {

/// The least work of a node: each byte read once and written once, and arithmetic operations.
struct Work {
  uint64_t bytes = 0;
  uint64_t flops = 0;
};

enum class Access : uint8_t { kRead, kWrite, kReadWrite };

struct BufferUse {
  Tensor tensor;
  Access access;
};

/// A specialization constant of the op (id CONSTANT_OP and up).
struct SpecializationConstant {
  uint32_t id;
  uint32_t value;
  auto operator<=>(const SpecializationConstant&) const = default;
};

/// One dispatch.
struct Node {
  const Kernel* kernel = nullptr;
  std::vector<BufferUse> buffers;  // in the order in which the shader declares them
  std::vector<std::byte> params;   // the op's parameter struct
  std::vector<SpecializationConstant> constants;
  std::array<uint32_t, 3> groups = {1, 1, 1};
  Work work;
  std::string label;   // set by the builder: the layer path
  uint32_t layer = 0;  // set by the builder: index of the command buffer

  template <typename Params>
  void set_params(const Params& value) {
    static_assert(std::is_trivially_copyable_v<Params> && sizeof(Params) % 4 == 0);
    params.resize(sizeof(Params));
    std::memcpy(params.data(), &value, sizeof(Params));
  }
};

class Program;
class Recording;

/// Collects nodes. Ops (ops) and layers append to it. It knows shapes and lifetimes and makes no
/// Vulkan calls.
class ProgramBuilder {
 public:
  ProgramBuilder(Device& device, std::string name);
  /// Makes a builder for a device that is not present: shapes, choices and problems() can be asked,
  /// build() throws. `capabilities` must outlive the builder.
  ProgramBuilder(const Capabilities& capabilities, std::string name);

  const Capabilities& capabilities() const { return capabilities_; }

  /// Makes a tensor in the program's arena. It is alive from the first node that uses it to the
  /// last; other tensors may use its memory outside that time.
  Tensor activation(Shape shape, DataType type = DataType::kF32);
  /// Keeps an arena tensor alive from its first use to past the end of the program: an output.
  void keep(const Tensor& tensor);
  /// Keeps an arena tensor alive from the start of the program: an input that the CPU writes.
  void keep_from_start(const Tensor& tensor);

  /// Prefixes the names of later nodes until the scope ends. Scopes nest: "encoder" then "layers.0"
  /// then "fc1". With `layer` set a new command buffer begins.
  class Scope {
   public:
    Scope(Scope&& other) noexcept : builder_(std::exchange(other.builder_, nullptr)) {}
    ~Scope();

   private:
    friend class ProgramBuilder;
    explicit Scope(ProgramBuilder* builder) : builder_(builder) {}
    ProgramBuilder* builder_;
  };
  [[nodiscard]] Scope scope(std::string name);
  [[nodiscard]] Scope layer(std::string name);
  /// The names of the open scopes, "encoder.layers.0.fc1", for labels and error messages.
  std::string path() const;

  /// Selects the row that serves a problem: the forced one, else the best. Throws KernelError.
  const Kernel& select(const Problem& problem);
  /// Makes select() return `kernel` for its op (tests, benchmarks). select() then throws
  /// KernelError when the row cannot serve the problem.
  void force(const Kernel& kernel);

  /// Declares that this program computes `rows` of a batch of up to `all` rows: kernels and the
  /// splits of sums are chosen from now on as for the whole batch, so that a row's result does not
  /// depend on the number of rows.
  void select_as(uint64_t rows, uint64_t all);
  /// The row count that selection sees in place of `rows`: a multiple of select_as()'s `rows`
  /// becomes that multiple of its `all`.
  uint64_t rows_as(uint64_t rows) const;

  /// Leaves `bytes` free before and after every tensor of the arena, to detect writes outside
  /// tensors. `bytes`: a multiple of 256. For conformance; memory grows.
  void set_guard(uint64_t bytes) { guard_ = bytes; }

  /// Largest number of rows, each of `bytes_per_row`, that one descriptor may cover such that the
  /// next slice starts aligned; at least one aligned step. Ops split larger tensors into several
  /// nodes. Throws ShapeError when a single aligned step is above the device's limit.
  uint64_t rows_per_binding(uint64_t bytes_per_row) const;

  /// Operations that one node may hold so that it ends within a submission's time at this device's
  /// known pace. Ops split larger work into several nodes.
  uint64_t flops_per_node() const;

  /// Appends a node under the current path. Checks bindings and parameters against the shader.
  void add(Node node);

  /// The nodes added so far.
  const std::vector<Node>& nodes() const { return nodes_; }
  /// The problems that select() was asked for so far, including a last one that was refused.
  const std::vector<Problem>& problems() const { return problems_; }

  /// The plan by which build() places every tensor of the arena. Needs no device.
  MemoryPlan plan() const;

  /// Builds the program. arena: memory of at least plan().arena_bytes, which programs share that
  /// never run at the same time; it must outlive them. Without it the program allocates its own.
  Program build(const BufferView& arena = {});

 private:
  friend class Program;
  const Capabilities& capabilities_;
  Device* device_ = nullptr;
  std::string name_;
  std::vector<std::string> path_;
  std::vector<std::string> layer_names_;
  std::vector<bool> path_is_layer_;
  std::vector<Node> nodes_;
  std::vector<Problem> problems_;
  std::vector<PlannedTensor> planned_;  // by arena id
  std::map<Op, const Kernel*> forced_;
  uint64_t guard_ = 0;
  uint64_t rows_ = 0, all_rows_ = 0;  // arguments of select_as()
};

/// A built program. Movable. Must not outlive its device, nor the weights its nodes read.
class Program {
 public:
  Program(Program&&) noexcept;
  Program& operator=(Program&&) noexcept;
  ~Program();

  /// Replays the program `times` times, in submissions bounded by DeviceOptions::submission_ms.
  /// Does not wait.
  Ticket submit(uint32_t times = 1);
  /// Calls submit() and waits.
  void run();
  /// Records all nodes into an application's command buffer, outside a render pass. The caller
  /// submits it.
  void record(VkCommandBuffer commands);
  /// Gives slices the recording (runtime/slices.h).
  Recording& recording();

  /// The memory of an arena tensor (kept tensors hold their value after a run).
  BufferView view(const Tensor& tensor) const;
  /// The whole arena (empty for a program without activations).
  BufferView arena() const;
  const std::string& name() const;
  const std::vector<Node>& nodes() const;
  const MemoryPlan& plan() const;
  /// Work summed over nodes.
  Work work() const;
  /// Number of command buffers, and of the submissions that the last submit() made.
  size_t layer_count() const;
  size_t last_submission_count() const;
  /// Estimated milliseconds of one replay: measured where there were earlier replays.
  double estimated_ms() const;
  /// Milliseconds of device time of the last replay by timestamps, after run(); 0 where the device
  /// has no timestamps.
  double last_ms() const;

 private:
  friend class ProgramBuilder;
  struct Impl;
  explicit Program(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace mulciber
