// Choosing tokens on the device: the best continuations of each row, and one step of beam search.
#pragma once

#include <compare>
#include <optional>
#include <span>
#include <vector>

#include "ops/control.h"
#include "runtime/program.h"
#include "shaders/beam.h"

namespace mulciber {

/// Rules on the next token, standing in control so that they need no new recording.
struct TokenRules {
  /// A list (ControlLayout::add_list) of ids whose log probability becomes -inf.
  ControlArray<uint32_t> banned;
  /// Index of the token just fed, one for all rows or one for each; the one being chosen is the
  /// next.
  ControlArray<uint32_t> position;
  /// As the token of an index only one id, with log probability 0; and from where on `ends` are
  /// chosen. Of all rows, or of the first `rules_rows`; those of the next begin rules_stride words
  /// later.
  ControlArray<shader::PositionRules> by_position;
  uint32_t rules_rows = 0, rules_stride = 0;  // 0: one for all rows
  /// A list of ids that count as banned for the first positions. None: no array.
  std::optional<ControlArray<uint32_t>> ends = {};
  /// (rows, forbidden_row): ids that count as banned for that row alone, forbidden_first +
  /// position + 1 of each row. None: no array.
  std::optional<ControlArray<uint32_t>> forbidden = {};
  uint32_t forbidden_row = 0, forbidden_first = 0;

  uint32_t banned_capacity() const { return banned.count - 1; }
};

/// log-softmax over each row, then the rules, then the k best. Order: larger value first, then
/// smaller id. logits: (rows, vocabulary) f32, or wider: what follows is not looked at; result:
/// (rows, k, 2) u32: bits of the f32 log probability, id. k up to 64 and up to the vocabulary; k =
/// 1 is arg max. Where fewer than k ids are left after the rules the rest have value -inf, smallest
/// ids first. A row with NaN or infinity among its logits, banned ids included, has value -inf and
/// id 0xffffffff k times, unless an id is forced. vocabulary: 0 for all columns of the logits.
Tensor top_k(ProgramBuilder& builder, const Tensor& logits, uint32_t k, const Tensor& control,
             const TokenRules& rules, uint64_t vocabulary = 0);

/// What a search is planned for.
struct BeamRoom {
  uint32_t banned = 0;    // BeamSettings::banned
  uint32_t ends = 1;      // BeamSettings::ends
  uint32_t words = 0;     // BeamSettings::words
  uint32_t word_ids = 0;  // of all words together
  bool ngrams = false;    // BeamSettings::ngram
  auto operator<=>(const BeamRoom&) const = default;
};

/// Where beam search keeps its state in control; shaders/beam.h says what each array holds. Made by
/// plan_beam_state().
struct BeamStateLayout {
  uint32_t batch = 1, beams = 1;
  uint32_t context = 1;                         // most tokens of a hypothesis, start token included
  ControlArray<shader::BeamSearch> search;      // one
  ControlArray<shader::BeamItem> items;         // (batch)
  ControlArray<shader::BeamFinished> finished;  // (batch, beams)
  ControlArray<uint32_t> positions;             // (batch * beams)
  ControlArray<uint32_t> tokens;                // (batch * beams)
  ControlArray<float> scores;                   // (batch * beams)
  ControlArray<uint32_t> ancestry;              // (batch * beams, context)
  ControlArray<uint32_t> history_tokens, history_parents;  // (context, batch * beams) each
  ControlArray<uint32_t> banned, ends;                     // lists
  BeamRoom room;
  ControlArray<uint32_t> words;      // 1 + room.words + room.word_ids, none without words
  ControlArray<uint32_t> forbidden;  // (batch * beams, forbidden_row())

  uint32_t forbidden_row() const { return room.words + (room.ngrams ? context : 0); }

  /// What top_k needs to know.
  TokenRules rules() const {
    return {.banned = banned,
            .position = positions,
            .by_position = items.field(&shader::BeamItem::rules),
            .rules_rows = beams,
            .rules_stride = items.kWords,
            .ends = ends,
            .forbidden = forbidden,
            .forbidden_row = forbidden_row(),
            .forbidden_first = room.words};
  }
};
/// Takes room from `control`. Throws ShapeError when the state would be empty or too large.
BeamStateLayout plan_beam_state(ControlLayout& control, uint32_t batch, uint32_t beams,
                                uint32_t context, const BeamRoom& room);

enum class EarlyStopping : uint32_t { kHeuristic = 0, kEarly = 1, kNever = 2 };  // BEAM_STOP_*

struct BeamSettings {
  uint32_t start = 0;          // token at position 0
  std::vector<uint32_t> ends;  // ids that end a hypothesis
  uint32_t pad = 0;
  uint32_t max_length = 1;  // tokens of the longest hypothesis, start token included
  float length_penalty = 1;
  EarlyStopping early_stopping = EarlyStopping::kHeuristic;
  std::vector<uint32_t> banned;
  shader::ForcedToken forced_first = {0xffffffff, 0}, forced_last = {0xffffffff, 0};
  /// Sequences of one or more ids that never occur; the start token counts.
  std::vector<std::vector<uint32_t>> words;
  uint32_t least_length = 0;  // tokens before the end, start token included
  uint32_t ngram = 0;         // no n-gram of that length occurs twice; 0: any may
};

/// Writes the state before the first step. Throws ShapeError when the settings do not fit the
/// layout.
void initialize_beam_state(ControlWords& control, const BeamStateLayout& layout,
                           const BeamSettings& settings);
/// Between steps: an item begins in the place of one that is done, whatever the others have come
/// to. Of the settings that differ from item to item count max_length, least_length, forced_first
/// and forced_last; the others must be those of the search. Throws ShapeError as above.
void begin_item(ControlWords& control, const BeamStateLayout& layout, uint32_t item,
                const BeamSettings& settings);
/// Between steps: a place that nobody has, of which steps compute as little as can be. Its search
/// ends there.
void free_item(ControlWords& control, const BeamStateLayout& layout, uint32_t item);
/// How many items still search; written to the state, where beam_step counts them.
uint32_t count_unfinished(ControlWords& control, const BeamStateLayout& layout);

struct Hypothesis {
  std::vector<uint32_t> ids;  // after the start token; the end included where there is one
  float score = 0;            // sum of log probabilities / length ^ penalty
};
/// The finished hypotheses of an item, best first. control: as read back. Throws ShapeError when it
/// holds no state of that layout.
std::vector<Hypothesis> finished_hypotheses(const BeamStateLayout& layout,
                                            const ControlWords& control, uint32_t item);

/// The hypotheses that go on, best first, with the scores that they would have if they ended now;
/// none of an item that searches no more. control: as read back between steps. Throws ShapeError as
/// finished_hypotheses() does.
std::vector<Hypothesis> running_hypotheses(const BeamStateLayout& layout,
                                           const ControlWords& control, uint32_t item);

/// The state of a search of which only `items` go on, in that order, as one planned for
/// fewer: whatever names a row names its new one. Between steps; the other places are of items that
/// are done. `to` is planned as `from` but for the batch, which has room for `items`. Throws
/// ShapeError where that is not so, or `control`, as read back, holds no such state.
void keep_items(const BeamStateLayout& from, const ControlWords& control,
                std::span<const uint32_t> items, const BeamStateLayout& to, ControlWords& kept);

/// One step for every item of the batch, as transformers' generate does it: of the best
/// continuations over all beams, those that end and rank among the first `beams` become finished
/// results, the best `beams` others go on; early stopping and length penalty from the settings; at
/// the last position the running ones become results too. With beams = 1 this is greedy search. An
/// item with a row of ids 0xffffffff ends as BEAM_NOT_FINITE. Each item goes on from its own
/// position. Updates tokens, scores, ancestry, history, positions and unfinished in `control`, and
/// writes how many are unfinished to `progress`: (1) u32, which may be host memory. candidates:
/// (batch * beams, k, 2) u32 from top_k, k being `beams` and the number of ends at least, or 1 with
/// one beam, or the vocabulary.
void beam_step(ProgramBuilder& builder, const Tensor& candidates, const Tensor& control,
               const BeamStateLayout& layout, const Tensor& progress);

/// Before a step: the state that a decoder carries from step to step goes, beam by beam, where the
/// last beam_step put the hypotheses. Before the first step, and for items that are done, it stays.
/// control, layout: as beam_step has them. state: (..., batch * beams, columns), several states of
/// all rows one after the other; f32 or u32. Throws ShapeError naming the layer.
void follow_beams(ProgramBuilder& builder, const Tensor& control, const BeamStateLayout& layout,
                  const Tensor& state);

}  // namespace mulciber
