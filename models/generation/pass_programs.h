// The programs of a decoder's passes over consecutive rows of its state.
#pragma once

#include <list>
#include <span>

#include "models/generation/decoder_programs.h"
#include "runtime/program.h"

namespace mulciber {

/// A pass over rows [first, first + rows) of a state.
struct RowsPass {
  uint32_t first = 0, rows = 1;
  /// Kernels are chosen as for so many rows, so that a row's result does not depend on how many
  /// take part.
  uint32_t selected_as = 1;
  DecoderPass pass;
  auto operator<=>(const RowsPass&) const = default;
};

/// Adds the nodes of a pass. The state's layout and tensors are those of all rows.
PassTensors add_rows_pass(ProgramBuilder& builder, const DecoderNetwork& network,
                          const BatchLayout& layout, const BatchTensors& tensors,
                          const RowsPass& pass);

/// Builds programs when they are first needed, and frees the least recently used one when there are
/// many. One runs at a time, because all use one arena. Must not outlive the state.
class PassPrograms {
 public:
  struct Built {
    RowsPass pass;
    Program program;
    PassTensors kept;
  };

  /// planned: passes that the arena has room for; another one that needs more gets its own. The
  /// arena is allocated here.
  PassPrograms(const DecoderState& state, std::span<const RowsPass> planned);
  PassPrograms(const PassPrograms&) = delete;
  /// Device memory that such an arena takes.
  static uint64_t predict_bytes(const Capabilities& device, const DecoderNetwork& network,
                                const BatchLayout& layout, const BatchTensors& tensors,
                                std::span<const RowsPass> planned);

  /// Stays valid until programs of 96 other passes were asked for.
  Built& built(const RowsPass& pass);
  /// Frees all programs, none of which may run.
  void clear() { programs_.clear(); }
  /// The program that built() returned last.
  const Built& latest() const { return programs_.front(); }

  /// Seconds in which programs were built and recorded.
  double build_seconds() const { return build_seconds_; }

 private:
  const DecoderState& state_;
  Buffer arena_;
  std::list<Built> programs_;  // most recently used first
  double build_seconds_ = 0;
};

}  // namespace mulciber
