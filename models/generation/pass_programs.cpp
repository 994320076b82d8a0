#include "models/generation/pass_programs.h"

#include <algorithm>

#include "base/clock.h"
#include "models/core/recently_used.h"

namespace mulciber {
namespace {

constexpr size_t kPassProgramsKept = 96;

}  // namespace

PassTensors add_rows_pass(ProgramBuilder& builder, const DecoderNetwork& network,
                          const BatchLayout& layout, const BatchTensors& tensors,
                          const RowsPass& pass) {
  if (pass.selected_as != pass.rows) builder.select_as(pass.rows, pass.selected_as);
  return build_decoder_pass(builder, network, part_of(layout, pass.first, pass.rows),
                            part_of(tensors, network, pass.first, pass.rows), pass.pass);
}

uint64_t PassPrograms::predict_bytes(const Capabilities& device, const DecoderNetwork& network,
                                     const BatchLayout& layout, const BatchTensors& tensors,
                                     std::span<const RowsPass> planned) {
  uint64_t most = 0;
  for (const RowsPass& pass : planned) {
    ProgramBuilder builder(device, "plan");
    add_rows_pass(builder, network, layout, tensors, pass);
    most = std::max(most, builder.plan().arena_bytes);
  }
  return most;
}

PassPrograms::PassPrograms(const DecoderState& state, std::span<const RowsPass> planned)
    : state_(state),
      arena_(state.device().memory().allocate(
          predict_bytes(state.device().capabilities(), state.network(), state.layout(),
                        state.tensors(), planned),
          MemoryUsage::kActivations)) {}

PassPrograms::Built& PassPrograms::built(const RowsPass& pass) {
  if (Built* found =
          recently_used(programs_, [&](const Built& built) { return built.pass == pass; }))
    return *found;
  const auto start = Clock::now();
  if (programs_.size() >= kPassProgramsKept) programs_.pop_back();
  // A pass over several tokens or without a choice feeds a prompt.
  const bool step = pass.pass.length == 1 && pass.pass.result == PassOutput::kChoice;
  ProgramBuilder builder(state_.device(), step ? "decode step" : "prefill");
  const PassTensors kept =
      add_rows_pass(builder, state_.network(), state_.layout(), state_.tensors(), pass);
  // Passes that were not planned for need less, unless split-K partial sums need room of their own.
  const bool fits = builder.plan().arena_bytes <= arena_.size();
  programs_.push_front({pass, builder.build(fits ? arena_.view() : BufferView{}), kept});
  build_seconds_ += seconds_since(start);
  return programs_.front();
}

}  // namespace mulciber
