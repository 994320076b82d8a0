// Token choice on the device: the best continuations of each row, and one step of beam search.
#pragma once

#include <compare>
#include <optional>
#include <span>
#include <vector>

#include "ops/control.h"
#include "runtime/program.h"
#include "shaders/beam.h"

namespace mulciber {

/// Rules for the next token. They are in control, so that changing them needs no new recording.
struct TokenRules {
  /// A list (ControlLayout::add_list) of ids whose log probability becomes -inf.
  ControlArray<uint32_t> banned;
  /// Index of the last token fed, one for all rows or one for each; the chosen token has the next
  /// index.
  ControlArray<uint32_t> position;
  /// Indices whose token is forced to one id (with log probability 0), and the index from which on
  /// `ends` may be chosen. One element for all rows, or one for every rules_rows rows, rules_stride
  /// words apart.
  ControlArray<shader::PositionRules> by_position;
  uint32_t rules_rows = 0, rules_stride = 0;  // 0: one for all rows
  /// A list of ids that are banned for the first positions. None: no array.
  std::optional<ControlArray<uint32_t>> ends = {};
  /// (rows, forbidden_row): ids that are banned for one row alone, forbidden_first + position + 1
  /// of them for each row. None: no array.
  std::optional<ControlArray<uint32_t>> forbidden = {};
  uint32_t forbidden_row = 0, forbidden_first = 0;

  uint32_t banned_capacity() const { return banned.count - 1; }
};

/// Computes log-softmax over each row, applies the rules and returns the k best. Order: larger
/// value first, then smaller id. logits: (rows, vocabulary) f32, or wider: further columns are
/// ignored; result: (rows, k, 2) u32: bits of the f32 log probability, id. k up to 64 and up to the
/// vocabulary; k = 1 is arg max. Where the rules leave fewer than k ids the rest have value -inf,
/// smallest ids first. A row with NaN or infinity among its logits, banned ids included, has value
/// -inf and id 0xffffffff k times, unless an id is forced. vocabulary: 0 for all columns of the
/// logits.
Tensor top_k(ProgramBuilder& builder, const Tensor& logits, uint32_t k, const Tensor& control,
             const TokenRules& rules, uint64_t vocabulary = 0);

/// The capacities for which a search is planned.
struct BeamRoom {
  uint32_t banned = 0;    // BeamSettings::banned
  uint32_t ends = 1;      // BeamSettings::ends
  uint32_t words = 0;     // BeamSettings::words
  uint32_t word_ids = 0;  // for all words together
  bool ngrams = false;    // BeamSettings::ngram
  auto operator<=>(const BeamRoom&) const = default;
};

/// Positions of the state of beam search in control; shaders/beam.h explains each array. Made by
/// plan_beam_state().
struct BeamStateLayout {
  uint32_t batch = 1, beams = 1;
  uint32_t context = 1;                         // most tokens of a hypothesis, start token included
  ControlArray<shader::BeamSearch> search;      // one element
  ControlArray<shader::BeamItem> items;         // (batch)
  ControlArray<shader::BeamFinished> finished;  // (batch, beams)
  ControlArray<uint32_t> positions;             // (batch * beams)
  ControlArray<uint32_t> tokens;                // (batch * beams)
  ControlArray<float> scores;                   // (batch * beams)
  ControlArray<uint32_t> ancestry;              // (batch * beams, context)
  ControlArray<uint32_t> history_tokens, history_parents;  // (context, batch * beams) each
  ControlArray<uint32_t> banned, ends;                     // lists
  BeamRoom room;
  ControlArray<uint32_t> words;      // 1 + room.words + room.word_ids; none without words
  ControlArray<uint32_t> forbidden;  // (batch * beams, forbidden_row())

  uint32_t forbidden_row() const { return room.words + (room.ngrams ? context : 0); }

  /// The rules that top_k reads.
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
/// Assigns positions in `control`. Throws ShapeError when the state would be empty or too large.
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
  /// Sequences of one or more ids that never occur; they may begin with the start token.
  std::vector<std::vector<uint32_t>> words;
  uint32_t least_length = 0;  // tokens before the end, start token included
  uint32_t ngram = 0;         // no n-gram of this length occurs twice; 0: no rule
};

/// Writes the state before the first step. Throws ShapeError when the settings do not fit the
/// layout.
void initialize_beam_state(ControlWords& control, const BeamStateLayout& layout,
                           const BeamSettings& settings);
/// Starts a new item in the slot of a finished one, between two steps and whatever other items have
/// reached. Only max_length, least_length, forced_first and forced_last may differ from item to
/// item; the other settings must be those of the search. Throws ShapeError as
/// initialize_beam_state() does.
void begin_item(ControlWords& control, const BeamStateLayout& layout, uint32_t item,
                const BeamSettings& settings);
/// Empties a slot between two steps: its search ends, and steps compute as little for it as
/// possible.
void free_item(ControlWords& control, const BeamStateLayout& layout, uint32_t item);
/// Counts the items that still search, and writes the number to the state, where beam_step updates
/// it.
uint32_t count_unfinished(ControlWords& control, const BeamStateLayout& layout);

struct Hypothesis {
  std::vector<uint32_t> ids;  // after the start token; includes the end where there is one
  float score = 0;            // sum of log probabilities / length ^ penalty
};
/// The finished hypotheses of an item, best first. control: as read back. Throws ShapeError when it
/// does not hold a state of that layout.
std::vector<Hypothesis> finished_hypotheses(const BeamStateLayout& layout,
                                            const ControlWords& control, uint32_t item);

/// The unfinished hypotheses, best first, with the scores that they would have if they ended now;
/// none for an item whose search has ended. control: as read back between steps. Throws ShapeError
/// as finished_hypotheses() does.
std::vector<Hypothesis> running_hypotheses(const BeamStateLayout& layout,
                                           const ControlWords& control, uint32_t item);

/// Converts the state of a search to one planned for fewer items, which holds only `items`, in that
/// order; row numbers in the state are changed to the new rows. Call it between steps; all other
/// items must be done. `to` is planned like `from` except for the batch, which has room for
/// `items`. Throws ShapeError where it is not, or where `control`, as read back, holds no such
/// state.
void keep_items(const BeamStateLayout& from, const ControlWords& control,
                std::span<const uint32_t> items, const BeamStateLayout& to, ControlWords& kept);

/// Does one step for every item of the batch, as transformers' generate does it: among the best
/// continuations over all beams, those that end and rank among the first `beams` become finished
/// results, and the best `beams` others continue. Early stopping and length penalty come from the
/// settings; at the last position the unfinished hypotheses become results too. With beams = 1 this
/// is greedy search. An item with a row of ids 0xffffffff ends as BEAM_NOT_FINITE. Each item
/// continues from its own position. Updates tokens, scores, ancestry, history, positions and
/// unfinished in `control`, and writes the number of unfinished items to `progress`: (1) u32, which
/// may be host-visible memory. candidates: (batch * beams, k, 2) u32 from top_k; k is at least
/// `beams` plus the number of ends, or 1 with one beam, or the vocabulary.
void beam_step(ProgramBuilder& builder, const Tensor& candidates, const Tensor& control,
               const BeamStateLayout& layout, const Tensor& progress);

/// Before a step, moves the state that a decoder carries from step to step to the beams to which
/// the last beam_step moved the hypotheses. Before the first step, and for finished items, it
/// stays. control, layout: see beam_step(). state: (..., batch * beams, columns), several states of
/// all rows one after the other; f32 or u32. Throws ShapeError naming the layer.
void follow_beams(ProgramBuilder& builder, const Tensor& control, const BeamStateLayout& layout,
                  const Tensor& state);

}  // namespace mulciber
