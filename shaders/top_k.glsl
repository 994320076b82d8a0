// Common parts of the top_k kernels: the order of candidates, the rules, and the output. The kernel
// must declare params (TopKParams), LOGIT(i) of all rows, and the buffers control and result
// before.
#ifndef MULCIBER_TOP_K_GLSL
#define MULCIBER_TOP_K_GLSL

#include "logits.glsl"

struct Choice {
  float value;
  uint id;
};

bool goes_before(Choice a, Choice b) {
  return a.value > b.value || (a.value == b.value && a.id < b.id);
}
Choice better(Choice a, Choice b) { return goes_before(a, b) ? a : b; }
// Whether the order puts (value, id) after `last`.
bool follows(float value, uint id, Choice last) {
  return value < last.value || (value == last.value && id > last.id);
}

// Rules for the current row; NO_ID: none.
uint chosen = 0, rules = 0;                    // the position being chosen; a word of control
bool too_early = false;                        // too early to end
uint first_forbidden = 0, last_forbidden = 0;  // words of control, the last one exclusive

// Must be called for a row before its rules are used.
void read_rules(uint row) {
  uint search_row = params.result_row + row;
  chosen = AT(control, params.position + search_row * params.position_stride) + 1;
  rules = params.rules + search_row / params.rules_rows * params.rules_stride;
  too_early = chosen < AT(control, rules + 4);
  first_forbidden = params.forbidden + search_row * params.forbidden_row;
  last_forbidden = first_forbidden + min(params.forbidden_first + chosen, params.forbidden_row);
}

// list: word of control with the number of ids, then the ids.
bool is_listed(uint id, uint list, uint room) {
  if (room == 0) return false;
  uint count = min(AT(control, list), room);
  for (uint i = 1; i <= count; ++i) {
    if (AT(control, list + i) == id) return true;
  }
  return false;
}

bool is_banned(uint id) {
  for (uint i = first_forbidden; i < last_forbidden; ++i) {
    if (AT(control, i) == id) return true;
  }
  if (too_early && is_listed(id, params.ends, params.ends_room)) return true;
  return is_listed(id, params.banned, params.banned_capacity);
}

// Takes (value, id) if it is better than the current best and no rule forbids it. Rules are checked
// only for ids that would win, which are few.
void consider(inout Choice best, float value, uint id) {
  if (value > NEVER && goes_before(Choice(value, id), best) && !is_banned(id))
    best = Choice(value, id);
}

// The only id allowed at the position being chosen, or NO_ID.
uint forced_id() {
  if (AT(control, rules) == chosen) return AT(control, rules + 1);
  return AT(control, rules + 2) == chosen ? AT(control, rules + 3) : NO_ID;
}

void write_choice(uint out_row, uint rank, float log_probability, uint id) {
  AT(result, (out_row + rank) * 2) = floatBitsToUint(log_probability);
  AT(result, (out_row + rank) * 2 + 1) = id;
}

// Writes the results of a row with NaN or infinity among its logits.
void write_lost(uint out_row, uint rank) { write_choice(out_row, rank, NEVER, NO_ID); }

// Writes the forced id first, then the smallest other ids.
void write_forced(uint out_row, uint rank, uint forced) {
  if (rank == 0) {
    write_choice(out_row, rank, 0.0, forced);
  } else {
    write_choice(out_row, rank, NEVER, rank <= forced ? rank - 1 : rank);
  }
}

// Fills the ranks from `rank` on with ids of log probability -inf, smallest first. This is rare:
// fewer than k ids are possible.
void write_impossible(uint first, uint out_row, uint rank) {
  for (uint id = 0; rank < params.k; ++id) {
    bool possible = sanitized(LOGIT(first + id)) > NEVER && !is_banned(id);
    if (!possible) write_choice(out_row, rank++, NEVER, id);
  }
}

#endif
