// One step of beam search, or of greedy search with one beam. One workgroup serves the whole batch,
// because it counts the unfinished items.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "interface.h"
#include "beam.h"
#define BUFFER_COUNT 3
#include "buffers.glsl"

layout(constant_id = BEAM_BEAMS) const uint BEAMS = 1;

PARAMS(BeamStepParams)
BUFFER(0, readonly, candidates, uint)
// Control, under the types of its contents.
BUFFER(1, coherent, state, uint)
BUFFER(1, coherent, searches, BeamSearch)
BUFFER(1, coherent, items, BeamItem)
BUFFER(1, coherent, finished, BeamFinished)
BUFFER(2, writeonly, progress, uint)

#define NEVER uintBitsToFloat(0xff800000u)  // log of 0
#define NO_ID 0xffffffffu                   // marks a row whose logits are not finite

#define SEARCH AT(searches, params.search)
#define ITEM(I) AT(items, params.items + (I))
#define FINISHED(I, RANK) AT(finished, params.finished + (I)*BEAMS + (RANK))

shared uint unfinished;
shared uint furthest;  // largest position of an unfinished item

// length ^ penalty, exact for the common penalties 0 and 1.
float normalizer(uint generated, float penalty) {
  float size = float(max(generated, 1u));
  if (penalty == 0.0) return 1.0;
  return penalty == 1.0 ? size : pow(size, penalty);
}

// Keeps the best BEAMS, best first; of equal ones the older comes first.
void add_finished(uint item, float score, uint generated, uint row, uint step, uint end) {
  uint count = ITEM(item).count;
  uint rank = count;
  while (rank > 0 && score > FINISHED(item, rank - 1).score) --rank;
  if (rank == BEAMS) return;
  count = min(count + 1, BEAMS);
  for (uint i = count - 1; i > rank; --i) FINISHED(item, i) = FINISHED(item, i - 1);
  FINISHED(item, rank) = BeamFinished(score, generated, row, step, end);
  ITEM(item).count = count;
  ITEM(item).worst = FINISHED(item, count - 1).score;
}

bool ends_text(uint token) {
  uint count = min(AT(state, params.ends), params.ends_room);
  for (uint i = 1; i <= count; ++i) {
    if (AT(state, params.ends + i) == token) return true;
  }
  return false;
}

// Chooses the continuations of one item. Returns whether it is unfinished.
bool advance(uint item, uint position) {
  uint first_row = item * BEAMS;
  uint rows = params.batch * BEAMS;
  uint pad = SEARCH.pad;
  uint last_position = ITEM(item).last_position;
  float penalty = SEARCH.length_penalty;
  uint early = SEARCH.early_stopping;
  uint chosen = position + 1;  // also the number of ids that continued hypotheses have generated
  bool at_limit = chosen >= last_position;
  float divisor = normalizer(chosen, penalty);

  // Candidates of a row are sorted, so the best of all is among the first remaining ones of the
  // rows.
  uint head[BEAMS];
  float running[BEAMS];
  bool lost = false;
  for (uint beam = 0; beam < BEAMS; ++beam) {
    head[beam] = 0;
    lost = lost || AT(candidates, (first_row + beam) * params.candidates * 2 + 1) == NO_ID;
    running[beam] = uintBitsToFloat(AT(state, params.scores + first_row + beam));
  }
  uint next_token[BEAMS];
  uint next_parent[BEAMS];
  float next_score[BEAMS];
  uint next_count = 0;
  for (uint rank = 0; rank < BEAMS || next_count < BEAMS; ++rank) {
    float best = NEVER;
    uint best_beam = BEAMS;
    uint best_token = 0;
    for (uint beam = 0; beam < BEAMS; ++beam) {
      if (head[beam] >= params.candidates) continue;
      uint entry = ((first_row + beam) * params.candidates + head[beam]) * 2;
      float sum = running[beam] + uintBitsToFloat(AT(candidates, entry));
      if (sum > best) {
        best = sum;
        best_beam = beam;
        best_token = AT(candidates, entry + 1);
      }
    }
    if (best_beam == BEAMS) break;  // no candidate of finite log probability is left
    ++head[best_beam];
    if (ends_text(best_token)) {
      if (rank < BEAMS) {
        add_finished(item, best / divisor, chosen, first_row + best_beam, position, best_token);
      }
    } else if (next_count < BEAMS) {
      if (at_limit && rank < BEAMS) {
        add_finished(item, best / divisor, chosen, first_row + next_count, chosen, NO_ID);
      }
      next_token[next_count] = best_token;
      next_parent[next_count] = first_row + best_beam;
      next_score[next_count] = best;
      ++next_count;
    }
  }

  // Without any continuation, hypotheses end here so that they are not lost.
  if (next_count == 0) {
    for (uint beam = 0; beam < BEAMS && ITEM(item).count == 0; ++beam) {
      if (running[beam] > NEVER) {
        add_finished(item, running[beam] / normalizer(position, penalty), position,
                     first_row + beam, position, NO_ID);
      }
    }
  }

  // Tests whether the item ends its search.
  uint count = ITEM(item).count;
  bool done = at_limit || next_count == 0 || lost;
  if (BEAMS == 1) {
    done = done || count == 1;
  } else if (!done && count == BEAMS) {
    uint reach = early == BEAM_STOP_NEVER && penalty > 0.0 ? last_position : chosen;
    float hope = next_score[0] / normalizer(reach, penalty);
    done = early == BEAM_STOP_EARLY || !(hope > ITEM(item).worst);
  }

  // Writes this step's history even if the item is finished: its results are read through it.
  for (uint beam = 0; beam < BEAMS; ++beam) {
    bool there = beam < next_count;
    uint row = first_row + beam;
    uint entry = chosen * rows + row;
    AT(state, params.tokens + row) = there && !done ? next_token[beam] : pad;
    AT(state, params.scores + row) = floatBitsToUint(there ? next_score[beam] : NEVER);
    if (chosen < params.context) {
      AT(state, params.history_tokens + entry) = there ? next_token[beam] : pad;
      AT(state, params.history_parents + entry) = there ? next_parent[beam] : row;
    }
    AT(state, params.positions + row) = chosen;
  }
  ITEM(item).status = lost ? BEAM_NOT_FINITE : done ? BEAM_DONE : BEAM_SEARCHES;
  return !done;
}

// The token at a position of the unfinished hypothesis in a row.
uint fed_token(uint row, uint position) {
  uint from = AT(state, params.ancestry + row * params.context + position);
  return AT(state, params.history_tokens + position * (params.batch * BEAMS) + from);
}

// Number of tokens in an unfinished item's hypotheses, including the start and the one just chosen.
uint tokens_of(uint item) { return AT(state, params.positions + item * BEAMS) + 1; }

// Forbids words: the last id of a sequence whose other ids end the hypothesis, which includes its
// start token.
void forbid_words(uint invocation) {
  uint count = params.words_room > 0 ? min(AT(state, params.words), params.words_room) : 0;
  uint rows = params.batch * BEAMS;
  for (uint i = invocation; i < rows * count; i += LOCAL_SIZE) {
    uint row = i / count, word = i - row * count;
    if (ITEM(row / BEAMS).status != BEAM_SEARCHES) continue;
    uint first = word > 0 ? AT(state, params.words + word) : 0;
    uint size = AT(state, params.words + word + 1) - first;
    uint last = params.words + 1 + params.words_room + first + size - 1;
    uint tokens = tokens_of(row / BEAMS);
    bool follows = size <= tokens + 1;
    for (uint back = 1; back < size && follows; ++back) {
      follows = fed_token(row, tokens - back) == AT(state, last - back);
    }
    AT(state, params.forbidden + row * params.forbidden_row + word) =
        follows ? AT(state, last) : NO_ID;
  }
}

// Forbids ids that would repeat an n-gram: those that once followed the hypothesis' last tokens.
void forbid_repeats(uint invocation, uint most) {
  uint ngram = SEARCH.ngram, rows = params.batch * BEAMS;
  for (uint i = invocation; i < rows * most; i += LOCAL_SIZE) {
    uint row = i / most, at = i - row * most;
    uint tokens = tokens_of(row / BEAMS);
    if (at >= tokens || ITEM(row / BEAMS).status != BEAM_SEARCHES) continue;
    bool repeats = ngram > 0 && at + 1 >= ngram;
    for (uint back = 1; back < ngram && repeats; ++back) {
      repeats = fed_token(row, at - back) == fed_token(row, tokens - back);
    }
    AT(state, params.forbidden + row * params.forbidden_row + params.words_room + at) =
        repeats ? fed_token(row, at) : NO_ID;
  }
}

void main() {
  uint invocation = gl_LocalInvocationID.x;
  if (invocation == 0) {
    unfinished = 0;
    furthest = 0;
  }
  memoryBarrierShared();
  barrier();

  for (uint item = invocation; item < params.batch; item += LOCAL_SIZE) {
    if (ITEM(item).status != BEAM_SEARCHES) continue;
    uint position = AT(state, params.positions + item * BEAMS);
    // At a position beyond the cache the CPU asked for a step too many.
    if (position + 1 >= params.context) {
      ITEM(item).status = BEAM_DONE;
    } else if (advance(item, position)) {
      atomicAdd(unfinished, 1);
      atomicMax(furthest, position + 1);
    }
  }
  memoryBarrierShared();
  memoryBarrier();
  barrier();

  // Ancestry follows the hypotheses. Every column is loaded completely before it is written.
  uint columns = furthest;
  uint rows = params.batch * BEAMS;
  uint work = BEAMS > 1 ? params.batch * columns : 0;
  for (uint i = invocation; i < work; i += LOCAL_SIZE) {
    uint item = i / columns;
    uint column = i - item * columns;
    uint chosen = AT(state, params.positions + item * BEAMS);
    if (column >= chosen || ITEM(item).status != BEAM_SEARCHES) continue;
    uint from[BEAMS];
    [[unroll]] for (uint beam = 0; beam < BEAMS; ++beam) {
      uint parent = AT(state, params.history_parents + chosen * rows + item * BEAMS + beam);
      from[beam] = AT(state, params.ancestry + parent * params.context + column);
    }
    [[unroll]] for (uint beam = 0; beam < BEAMS; ++beam) {
      AT(state, params.ancestry + (item * BEAMS + beam) * params.context + column) = from[beam];
    }
  }

  if (params.forbidden_row > 0 && furthest > 0) {
    memoryBarrier();
    barrier();
    forbid_words(invocation);
    if (params.forbidden_row > params.words_room) forbid_repeats(invocation, furthest + 1);
  }

  if (invocation == 0) {
    SEARCH.unfinished = unfinished;
    AT(progress, 0) = unfinished;
  }
}
