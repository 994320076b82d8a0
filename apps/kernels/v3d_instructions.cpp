// v3d_program() of instructions.h: reads Broadcom V3D code in the form of v3dv's "QPU": a word
// holds an operation of the unit of sums, one of the unit of products, and signals. Branches give a
// distance in bytes, eight to a word.
//   fadd rf1, rf0, rf17   ; fmul rf2, rf3, rf4   ; thrsw; ldunif
//   bu.anyap  -616, r:unif
#include <set>

#include "apps/kernels/instructions.h"

namespace mulciber::apps {
namespace {

constexpr int kDelaySlots = 3;

/// Finds accesses to scratch. Spilled registers and private arrays lie behind one register, which
/// the program computes at its start from the numbers of its thread (tidx) and lane (eidx). All
/// other addresses, shared memory's too, are of plain memory.
class ScratchBase {
 public:
  /// Whether the operation with that name and these operands addresses scratch.
  bool addressed(std::string_view name, std::string_view operands) {
    const std::string_view result = before(operands, ',');
    std::string_view sources = operands.substr(result.size());
    if (result.starts_with("tmua")) {
      const std::string* base = derived_in(sources);
      if (base == nullptr) return false;
      if (base_.empty()) base_ = *base;
      return *base == base_;
    }
    if (!base_.empty()) return false;
    if (begins(name, "tidx", "eidx") || derived_in(sources) != nullptr) {
      derived_.insert(std::string(result));
    } else {
      derived_.erase(std::string(result));
    }
    return false;
  }
  /// A signal writes the register behind its dot: "ldunifrf.rf18".
  void signalled(std::string_view signal) {
    const size_t dot = signal.find('.');
    if (dot != signal.npos) derived_.erase(std::string(signal.substr(dot + 1)));
  }

 private:
  const std::string* derived_in(std::string_view sources) const {
    while (!sources.empty()) {
      sources = trimmed(sources.substr(1));
      if (const auto found = derived_.find(std::string(before(sources, ',')));
          found != derived_.end())
        return &*found;
      sources = sources.substr(std::min(sources.find(','), sources.size()));
    }
    return nullptr;
  }

  std::set<std::string, std::less<>> derived_;
  std::string base_;
};

}  // namespace

Program v3d_program(std::string_view text) {
  Program program;
  ScratchBase scratch;
  uint32_t data = 0;                             // written for a store whose address follows
  std::vector<std::pair<size_t, int>> branches;  // word, distance in words
  std::vector<bool> always;
  for (std::string_view line; next_line(text, line);) {
    line = trimmed(line);
    if (line.empty()) continue;
    Instruction& word = program.issue();
    if (begins(line, "b ", "bu ", "b.", "bu.")) {
      const std::string_view name = next_word(line);
      word.add({&InnerLoop::control});
      branches.emplace_back(program.code().size() - 1, number_in(line) / 8);
      always.push_back(!contains(name, "."));
      continue;
    }
    bool waits = true;  // signals alone: waits for a load, a uniform, another thread
    for (int unit = 0; unit < 2; ++unit) {
      std::string_view operands = trimmed(before(line, ';'));
      line.remove_prefix(std::min(before(line, ';').size() + 1, line.size()));
      const std::string_view name = next_word(operands);
      const bool spills = scratch.addressed(name, operands);
      if (name.empty() || begins(name, "nop", "tmuwt")) continue;
      waits = false;
      if (begins(operands, "tmud")) {
        ++data;
      } else if (begins(operands, "tmua")) {
        const Work work = spills ? &InnerLoop::scratch : &InnerLoop::memory;
        word.counts.*work += 1 + data;
        data = 0;
      } else if (begins(name, "barrierid")) {
        word.add({&InnerLoop::control});
      } else if (begins(name, "fmul")) {
        ++word.products;
      } else if (begins(name, "fadd", "fsub")) {
        ++word.sums;
      } else {
        word.add({&InnerLoop::arithmetic});
      }
    }
    while (!line.empty()) {
      scratch.signalled(trimmed(before(line, ';')));
      line.remove_prefix(std::min(before(line, ';').size() + 1, line.size()));
    }
    if (waits) word.add({&InnerLoop::nops});
  }
  // The three words behind a branch are still executed.
  for (size_t i = 0; i < branches.size(); ++i) {
    const auto [from, distance] = branches[i];
    const size_t last = from + kDelaySlots;
    const auto target = static_cast<ptrdiff_t>(last) + 1 + distance;
    if (last >= program.code().size() || target < 0) continue;
    program.code()[last].ends = always[i];
    program.code()[last].targets.push_back(
        std::min(static_cast<size_t>(target), program.code().size() - 1));
  }
  return program;
}

}  // namespace mulciber::apps
