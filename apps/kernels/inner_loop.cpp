#include "apps/kernels/inner_loop.h"

#include <algorithm>

#include "apps/kernels/instructions.h"

namespace mulciber::apps {
namespace {

/// Instructions of one loop, by index.
struct Loop {
  size_t head;
  std::vector<size_t> tails = {};  // instructions that jump back to the head
  std::vector<bool> holds = {};
  size_t size = 0;
  double own = 0;  // multiply-adds outside the loops inside it
};

std::vector<std::vector<size_t>> followers(const std::vector<Instruction>& code) {
  std::vector<std::vector<size_t>> next(code.size());
  for (size_t i = 0; i < code.size(); ++i) {
    next[i] = code[i].targets;
    if (!code[i].ends && i + 1 < code.size()) next[i].push_back(i + 1);
  }
  return next;
}

/// Finds loops: an edge back to an instruction that is still on the path of a depth-first walk
/// closes one. Compilers make reducible code of shaders, so the edge's target is the loop's only
/// entry. Instructions that the walk never reaches (nops that align a loop, behind a jump) get no
/// edges afterwards.
std::vector<Loop> loop_heads(std::vector<std::vector<size_t>>& next) {
  std::vector<Loop> loops;
  enum : uint8_t { kNew, kOnPath, kDone };
  std::vector<uint8_t> state(next.size(), kNew);
  std::vector<std::pair<size_t, size_t>> path = {{0, 0}};  // instruction, next edge to try
  state[0] = kOnPath;
  while (!path.empty()) {
    auto& [at, edge] = path.back();
    if (edge == next[at].size()) {
      state[at] = kDone;
      path.pop_back();
      continue;
    }
    const size_t from = at, to = next[at][edge++];
    if (state[to] == kNew) {
      state[to] = kOnPath;
      path.emplace_back(to, 0);
    } else if (state[to] == kOnPath) {
      auto known =
          std::find_if(loops.begin(), loops.end(), [&](const Loop& l) { return l.head == to; });
      if (known == loops.end()) known = loops.insert(loops.end(), {to});
      known->tails.push_back(from);
    }
  }
  for (size_t i = 0; i < next.size(); ++i) {
    if (state[i] == kNew) next[i].clear();
  }
  return loops;
}

/// Fills the natural loop: all instructions that reach a tail without passing the head.
void fill(Loop& loop, const std::vector<std::vector<size_t>>& previous) {
  loop.holds.assign(previous.size(), false);
  loop.holds[loop.head] = true;
  std::vector<size_t> open = loop.tails;
  while (!open.empty()) {
    const size_t at = open.back();
    open.pop_back();
    if (loop.holds[at]) continue;
    loop.holds[at] = true;
    open.insert(open.end(), previous[at].begin(), previous[at].end());
  }
  loop.size = static_cast<size_t>(std::count(loop.holds.begin(), loop.holds.end(), true));
}

double multiply_adds(const Instruction& i) {
  return i.counts.multiply_adds + (i.products + i.sums) / 2.0;
}

std::optional<InnerLoop> count(const std::vector<Instruction>& code) {
  if (code.empty()) return {};
  std::vector<std::vector<size_t>> next = followers(code), previous(code.size());
  std::vector<Loop> loops = loop_heads(next);
  for (size_t i = 0; i < code.size(); ++i) {
    for (const size_t to : next[i]) previous[to].push_back(i);
  }
  for (Loop& loop : loops) fill(loop, previous);
  // Inner loops come first, so that the first loop that holds an instruction is the innermost.
  std::stable_sort(loops.begin(), loops.end(),
                   [](const Loop& a, const Loop& b) { return a.size < b.size; });
  for (size_t i = 0; i < code.size(); ++i) {
    const auto innermost =
        std::find_if(loops.begin(), loops.end(), [&](const Loop& l) { return l.holds[i]; });
    if (innermost != loops.end()) innermost->own += multiply_adds(code[i]);
  }
  const auto chosen = std::max_element(loops.begin(), loops.end(),
                                       [](const Loop& a, const Loop& b) { return a.own < b.own; });
  if (chosen == loops.end() || chosen->own == 0) return {};

  InnerLoop sum;
  uint32_t products = 0, sums = 0;
  for (size_t i = 0; i < code.size(); ++i) {
    if (!chosen->holds[i]) continue;
    const InnerLoop& counts = code[i].counts;
    for (const Work work :
         {&InnerLoop::instructions, &InnerLoop::fma, &InnerLoop::matrix, &InnerLoop::arithmetic,
          &InnerLoop::memory, &InnerLoop::shared, &InnerLoop::scalar, &InnerLoop::control,
          &InnerLoop::nops, &InnerLoop::scratch})
      sum.*work += counts.*work;
    sum.multiply_adds += counts.multiply_adds;
    products += code[i].products;
    sums += code[i].sums;
  }
  const uint32_t pairs = std::min(products, sums);
  sum.multiply_adds += pairs;
  sum.fma += 2 * pairs;
  sum.arithmetic += products + sums - 2 * pairs;
  if (sum.multiply_adds == 0) return {};
  return sum;
}

/// A matrix instruction of AMD or NVIDIA works for the whole subgroup: each lane gets its share.
void share(std::vector<Instruction>& code, uint32_t subgroup_size) {
  for (Instruction& instruction : code) {
    if (instruction.counts.matrix > 0) instruction.counts.multiply_adds /= subgroup_size;
  }
}

}  // namespace

std::optional<InnerLoop> inner_loop(std::string_view representation, std::string_view text,
                                    uint32_t subgroup_size, bool has_scratch) {
  Program program;
  if (subgroup_size == 0) return {};
  if (representation == "NAK assembly") {
    program = nvidia_program(text);
  } else if (representation == "GEN Assembly") {
    return count(intel_program(text, subgroup_size).take());
  } else if (representation == "IR3 Assembly") {
    program = adreno_program(text);
  } else if (representation.starts_with("QPU")) {
    program = v3d_program(text);
  } else if (representation == "Assembly") {
    // Two drivers use this name for their assembly.
    const std::string_view first = trimmed(text);
    program = first.starts_with("BB")        ? amd_program(text, has_scratch)
              : first.starts_with("clause_") ? bifrost_program(text)
                                             : valhall_program(text);
  }
  std::vector<Instruction> code = program.take();
  share(code, subgroup_size);
  return count(code);
}

}  // namespace mulciber::apps
