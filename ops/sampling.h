// Chooses the next token of each sequence on the device, so that a decode step needs nothing from
// the CPU.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "mulciber/sampling.h"
#include "ops/control.h"
#include "runtime/program.h"
#include "shaders/sample.h"

namespace mulciber {

/// The positions of the state of `rows` sequences in control; shaders/sample.h explains each array.
/// Other ops read the state: embedding `tokens`, rope_append and append_cache `positions`,
/// attention `positions` as key counts with 1 extra.
struct SampleStateLayout {
  uint32_t rows = 1, history_capacity = 1;
  uint32_t bias_capacity = 0;
  uint32_t mask_words = 0;  // words of a row's mask without its first word; 0: no masks
  uint32_t ring = 1;        // tokens per row in `progress`; later ones overwrite the oldest
  ControlArray<uint32_t> positions, tokens, fed, counts, stopped;  // (rows) each
  ControlArray<shader::SampleSettings> settings;                   // (rows)
  ControlArray<uint32_t> history;                                  // (rows, history_capacity)
  ControlArray<uint32_t> biases;                                   // (rows, 1 + 2 * bias_capacity)
  ControlArray<uint32_t> masks;                                    // (rows, 1 + mask_words)
  ControlArray<uint32_t> banned, stops;                            // lists

  /// The history of one row.
  ControlArray<uint32_t> history_of(uint32_t row) const {
    return history.part(uint64_t{row} * history_capacity, history_capacity);
  }
  ControlArray<uint32_t> mask_of(uint32_t row) const {
    return masks.part(uint64_t{row} * (1 + mask_words), 1 + mask_words);
  }
  uint32_t progress_words() const;
  /// Words of `progress`: number of tokens in a row's history, whether the row is stopped, and
  /// token `number` of its history.
  uint32_t progress_count(uint32_t row) const { return 2 * row; }
  uint32_t progress_stopped(uint32_t row) const { return 2 * row + 1; }
  uint32_t progress_token(uint32_t row, uint32_t number) const {
    return 2 * rows + row * ring + number % ring;
  }
};
/// Assigns positions in `control`. Throws ShapeError when the state would be empty or larger than a
/// tensor. mask_ids: ids of a mask; 0: rows have no masks.
SampleStateLayout plan_sample_state(ControlLayout& control, uint32_t rows,
                                    uint32_t history_capacity, uint32_t banned_capacity,
                                    uint32_t stop_capacity, uint32_t ring = 1,
                                    uint32_t bias_capacity = 0, uint32_t mask_ids = 0);

/// Pairs of an id and a number to add to its logit, each id once; -infinity makes an id impossible.
using LogitBiases = std::vector<std::pair<uint32_t, float>>;
/// Writes the biases of a row. Throws SettingError where the layout has too little room.
void set_biases(ControlWords& control, const SampleStateLayout& layout, uint32_t row,
                const LogitBiases& biases);

/// One bit for each id, 32 in a word: ids with 0 are impossible. Empty: all are possible.
using IdMask = std::vector<uint32_t>;
/// Writes the mask of a row and returns whether it changed. Throws ShapeError where the layout has
/// room for another number of ids.
bool set_mask(ControlWords& control, const SampleStateLayout& layout, uint32_t row,
              std::span<const uint32_t> mask);

/// A sequence before the step that its first choice follows.
struct SampleRow {
  Sampling sampling = {};
  uint32_t stream = 0;  // differs between sequences of one seed
  /// The row stops when its next token would be at this position; usually the context.
  uint32_t last_position = 0xffffffff;
  uint32_t last_count = 0xffffffff;  // ... or when its history has this many tokens
  /// Tokens so far, including the whole prompt; only the latest are kept where there is no room.
  std::vector<uint32_t> history = {};
  uint32_t position = 0;  // position of the first token that the step feeds
  uint32_t fed = 1;       // tokens of this step: the first choice is at position + fed
  uint32_t token = 0;     // the token, where `fed` is 1
  bool idle = false;      // the row takes no part
  LogitBiases biases = {};
  IdMask mask = {};
};

/// Writes the state. Throws ShapeError when it does not fit the layout, SettingError when a setting
/// is out of its range.
void initialize_sample_state(ControlWords& control, const SampleStateLayout& layout,
                             std::span<const SampleRow> rows, std::span<const uint32_t> banned = {},
                             std::span<const uint32_t> stops = {});
/// One row's sampling settings, stream and limits in the form that kernels read. Throws
/// SettingError when a value is out of its range.
shader::SampleSettings sample_settings(const SampleRow& row);

/// Chooses a token for each row by Sampling: the first id, in order of ids, at which the running
/// sum of probabilities exceeds u. u in (0, 1) comes from Philox 4x32-10 (Salmon et al. 2011,
/// doi:10.1145/2063384.2063405) with the seed as key and (tokens of the history, stream, 0, 0) as
/// counter: it depends neither on the row nor on how many steps are submitted at once. A filter
/// keeps or drops ids of equal logits together. A logit of -infinity makes an id impossible; where
/// no id is possible, id 0 is chosen. Sums are f32. logits: (rows, vocabulary) f32, one row for
/// each sequence; penalties, then biases, bans and masks, are written into them. control: u32,
/// holds the state. For a running row the choice goes to `tokens` and to the end of the history,
/// `positions` grows by `fed`, and `fed` becomes 1. The row is stopped (`stopped` is set, `fed`
/// becomes 0) by a choice among `stops`, or when its position or history reaches the settings'
/// last. A row with NaN or infinity among its logits, banned ids included, stops without a choice.
/// A stopped row changes no more: keys and values of its last token are written to their old
/// positions, and a recurrent state stays unchanged because no token counts. progress: u32,
/// layout.progress_words() or more; may be host-visible memory. Two dispatches. Vocabularies up to
/// 2^19. Throws ShapeError naming the layer.
void sample(ProgramBuilder& builder, const Tensor& logits, const Tensor& control,
            const SampleStateLayout& layout, const Tensor& progress);

/// Does the first dispatch alone: applies penalties, bans and masks to the logits. The result has
/// for each chunk of a row its largest logit and the sum of exp((logit - largest) / temperature):
/// (rows, chunks, 2) f32. (A temperature of 0 counts as 1.) A chunk without possible ids has
/// -infinity and 0, one with NaN or infinity 0 and -1.
Tensor sample_scan(ProgramBuilder& builder, const Tensor& logits, const Tensor& control,
                   const SampleStateLayout& layout);

}  // namespace mulciber
