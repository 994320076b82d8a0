#include "runtime/ops/sequence.h"

#include <fmt/format.h>

#include "mulciber/error.h"
#include "runtime/op.h"
#include "shaders/sequence.h"

namespace mulciber {

uint32_t SequenceStateLayout::progress_words() const { return progress_token(rows - 1, ring - 1) + 1; }
uint32_t SequenceStateLayout::progress_count(uint32_t row) const { return SEQUENCE_PROGRESS_ROWS + row; }
uint32_t SequenceStateLayout::progress_state(uint32_t row) const { return SEQUENCE_PROGRESS_ROWS + rows + row; }
uint32_t SequenceStateLayout::progress_token(uint32_t row, uint32_t number) const {
  return SEQUENCE_PROGRESS_ROWS + 2 * rows + row * ring + number % ring;
}

SequenceStateLayout plan_sequence_state(uint32_t first_word, uint32_t rows, uint32_t capacity,
                                        uint32_t stop_capacity, uint32_t ring) {
  SequenceStateLayout layout;
  layout.rows = rows;
  layout.capacity = capacity;
  layout.stop_capacity = stop_capacity;
  layout.ring = ring;
  uint32_t word = first_word;
  for (uint32_t* field : {&layout.tokens, &layout.positions, &layout.fed, &layout.states, &layout.counts,
                          &layout.limits}) {
    *field = word;
    word += rows;
  }
  layout.steps = word;
  layout.stops = word + 1;
  layout.end = layout.stops + 1 + stop_capacity;
  return layout;
}

void advance_sequences(ProgramBuilder& builder, const Tensor& candidates, const Tensor& control,
                       const SequenceStateLayout& layout, const Tensor& progress) {
  const auto refuse = [&](std::string problem, std::string remedy) {
    throw ShapeError(builder.path() + ": advance", std::move(problem), std::move(remedy));
  };
  if (candidates.type != DataType::kU32 || candidates.shape.rank() != 3 || candidates.shape[0] != layout.rows ||
      candidates.shape[1] == 0 || candidates.shape[2] != 2) {
    refuse(fmt::format("candidates are {} {}", name_of(candidates.type), candidates.shape.to_string()),
           fmt::format("they must be u32 ({}, at least 1, 2)", layout.rows));
  }
  if (control.type != DataType::kU32 || progress.type != DataType::kU32 || layout.end > control.shape.elements() ||
      layout.progress_words() > progress.shape.elements()) {
    refuse(fmt::format("a state that ends at word {} does not fit control {}, or {} words do not fit progress {}",
                       layout.end, control.shape.to_string(), layout.progress_words(),
                       progress.shape.to_string()),
           "both must be u32 and hold what the layout says");
  }
  Node node;
  node.kernel = &builder.select({Op::kAdvance, {DataType::kF32, DataType::kF32}, kAnyShape});
  node.buffers = {{candidates, Access::kRead}, {control, Access::kReadWrite}, {progress, Access::kWrite}};
  node.set_params(shader::AdvanceParams{
      layout.rows, static_cast<uint32_t>(candidates.shape[1]), layout.capacity, layout.ring, layout.tokens,
      layout.positions, layout.fed, layout.states, layout.counts, layout.limits, layout.steps, layout.stops,
      layout.stop_capacity});
  node.work.bytes = uint64_t{layout.rows} * (8 + 6 * 8 + 12);
  builder.add(std::move(node));
}

}  // namespace mulciber
