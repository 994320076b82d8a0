// Choosing the next token of each sequence on the device, so that a step of decoding needs nothing
// of the host.
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

/// Where the state of `rows` sequences stands in control; shaders/sample.h says what each array
/// holds. Other ops read it: embedding takes `tokens`, rope_append and append_cache take
/// `positions`, attention takes `positions` as key counts with 1 extra.
struct SampleStateLayout {
  uint32_t rows = 1, history_capacity = 1;
  uint32_t bias_capacity = 0;
  uint32_t mask_words = 0;  // of a row's mask, without the one before it; 0: there is none
  uint32_t ring = 1;  // chosen tokens of a row that `progress` holds: later ones take their place
  ControlArray<uint32_t> positions, tokens, fed, counts, stopped;  // (rows) each
  ControlArray<shader::SampleSettings> settings;                   // (rows)
  ControlArray<uint32_t> history;                                  // (rows, history_capacity)
  ControlArray<uint32_t> biases;                                   // (rows, 1 + 2 * bias_capacity)
  ControlArray<uint32_t> masks;                                    // (rows, 1 + mask_words)
  ControlArray<uint32_t> banned, stops;                            // lists

  /// Of one row.
  ControlArray<uint32_t> history_of(uint32_t row) const {
    return history.part(uint64_t{row} * history_capacity, history_capacity);
  }
  ControlArray<uint32_t> mask_of(uint32_t row) const {
    return masks.part(uint64_t{row} * (1 + mask_words), 1 + mask_words);
  }
  uint32_t progress_words() const;
  /// Words of progress: tokens of a row's history, whether it is stopped, and token `number` of its
  /// history.
  uint32_t progress_count(uint32_t row) const { return 2 * row; }
  uint32_t progress_stopped(uint32_t row) const { return 2 * row + 1; }
  uint32_t progress_token(uint32_t row, uint32_t number) const {
    return 2 * rows + row * ring + number % ring;
  }
};
/// Takes room from `control`. Throws ShapeError when the state would be empty or larger than a
/// tensor. mask_ids: ids of a mask; 0: rows have none.
SampleStateLayout plan_sample_state(ControlLayout& control, uint32_t rows,
                                    uint32_t history_capacity, uint32_t banned_capacity,
                                    uint32_t stop_capacity, uint32_t ring = 1,
                                    uint32_t bias_capacity = 0, uint32_t mask_ids = 0);

/// Ids, each once, and what is added to their logits; -infinity makes one impossible.
using LogitBiases = std::vector<std::pair<uint32_t, float>>;
/// Writes those of a row. Throws SettingError where the layout has no room for so many.
void set_biases(ControlWords& control, const SampleStateLayout& layout, uint32_t row,
                const LogitBiases& biases);

/// A bit for each id, 32 to a word: where it is 0, the id is impossible. Empty: all are possible.
using IdMask = std::vector<uint32_t>;
/// Writes that of a row, and says whether it was another before. Throws ShapeError where the layout
/// has room for another number of ids.
bool set_mask(ControlWords& control, const SampleStateLayout& layout, uint32_t row,
              std::span<const uint32_t> mask);

/// A sequence before the step that the first choice follows.
struct SampleRow {
  Sampling sampling = {};
  uint32_t stream = 0;  // another for each sequence of one seed
  /// The row stops when the token to be fed next stands at this position; usually the
  /// context.
  uint32_t last_position = 0xffffffff;
  uint32_t last_count = 0xffffffff;  // ... or when its history has come to so many tokens
  /// Its tokens so far, the prompt whole; the latest are kept where there is no room.
  std::vector<uint32_t> history = {};
  uint32_t position = 0;  // of the first token that the step feeds
  uint32_t fed = 1;       // tokens it feeds: the first choice stands at position + fed
  uint32_t token = 0;     // where that is one: the token
  bool idle = false;      // takes no part
  LogitBiases biases = {};
  IdMask mask = {};
};

/// Writes the state. Throws ShapeError when something does not fit the layout, SettingError when a
/// setting is out of its range.
void initialize_sample_state(ControlWords& control, const SampleStateLayout& layout,
                             std::span<const SampleRow> rows, std::span<const uint32_t> banned = {},
                             std::span<const uint32_t> stops = {});
/// One row's sampling, stream and lasts as kernels read them. Throws SettingError when one is out
/// of its range.
shader::SampleSettings sample_settings(const SampleRow& row);

/// Chooses a token for each row, as Sampling says: the first id, in their order, at which the sum
/// of probabilities up to it passes u. u in (0, 1) comes from Philox 4x32-10 (Salmon et al. 2011,
/// doi:10.1145/2063384.2063405) with the seed as key and (tokens of the history, stream, 0, 0) as
/// counter: it depends neither on the row nor on how many steps are submitted at once. Ids of equal
/// logits stay or go together. -infinity is a logit that makes an id impossible; where nothing is
/// possible the choice is id 0. Sums are f32. logits: (rows, vocabulary) f32, one
/// row for each sequence; penalties, then biases, bans and masks, are written into them. control:
/// u32, holds the state. A running row: its choice goes to `tokens` and to the end of the history,
/// `positions` grows by `fed`, `fed` becomes 1; a choice that is one of `stops`, and a position or
/// a history that comes to the settings' last, set `stopped`, and `fed` becomes 0. A row with NaN
/// or infinity among its logits, banned ids included, stops without a choice. A stopped row changes
/// no more: keys and values of its last token are written where they stand, and a state stays as it
/// is, because no token counts. progress: u32, layout.progress_words() or more, which may be host
/// memory. Two dispatches. Vocabularies up to 2^19. Throws ShapeError naming the layer.
void sample(ProgramBuilder& builder, const Tensor& logits, const Tensor& control,
            const SampleStateLayout& layout, const Tensor& progress);

/// The first dispatch alone: penalties, bans and masks onto the logits; the result says of each
/// chunk of a row its largest logit and the sum of exp((logit - largest) / temperature): (rows,
/// chunks, 2) f32. (The temperature counts as 1 where it is 0.) A chunk without possible ids has
/// -infinity and 0, one with NaN or infinity 0 and -1.
Tensor sample_scan(ProgramBuilder& builder, const Tensor& logits, const Tensor& control,
                   const SampleStateLayout& layout);

}  // namespace mulciber
