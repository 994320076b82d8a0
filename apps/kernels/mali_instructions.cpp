// valhall_program() and bifrost_program() of instructions.h: read Mali code in the form of panvk's
// "Assembly".
// Valhall: an instruction per line, branches by distance.
//   FMA.f32 r13, r9, r7, ^r13
//   BRANCHZ.eq.reconverge 0x0, offset:-51
// Bifrost: clauses of tuples. A line with * begins a tuple: one operation for the unit of
// multiply-adds, one (+) for the unit of sums and messages.
//   clause_5:
//       *FMA.f32 r1:t0, r2, r3, r1
//       +LOAD.i32.wls t1, r4, #0.x, @r5
#include <map>

#include "apps/kernels/instructions.h"

namespace mulciber::apps {
namespace {

Operation mali_operation(std::string_view name, std::string_view operands) {
  if (begins(name, "NOP.end")) return {&InnerLoop::control};
  if (begins(name, "NOP")) return {&InnerLoop::nops};
  if (begins(name, "BRANCH", "JUMP", "BARRIER", "DISCARD")) return {&InnerLoop::control};
  if (contains(name, ".tl")) return {&InnerLoop::scratch};
  if (contains(name, ".wls")) return {&InnerLoop::shared};
  if (begins(name, "LOAD", "STORE", "LD_", "ST_", "LEA_", "ATOM", "ACMPXCHG", "AXCHG", "TEX",
             "BLEND"))
    return {&InnerLoop::memory};
  // A single product is a multiply-add with minus zero.
  if (begins(name, "FMA.") && !operands.ends_with("0x0.neg") && !operands.ends_with("#0.neg"))
    return {&InnerLoop::fma, contains(name, ".v2f16") ? 2.0 : 1.0};
  return {&InnerLoop::arithmetic};
}

/// Tracks the upper halves of addresses, which come from the hardware's own registers.
class AddressHalves {
 public:
  /// The class of work of a load or store, by its address.
  Work work_of(std::string_view operands) const {
    if (const Work work = named(operands); work != nullptr) return work;
    // "@r9, ^r14, offset:0": the address is the pair of registers that begins with r14.
    std::string_view address =
        trimmed(operands.substr(std::min(operands.find(','), operands.size())));
    const auto found = halves_.find(register_in(address) + 1);
    return found == halves_.end() ? &InnerLoop::memory : found->second;
  }
  /// Records a write: an instruction writes its first operand.
  void written(std::string_view name, std::string_view operands) {
    std::string_view results = before(operands, ',');
    const std::string_view source = operands.substr(std::min(results.size() + 1, operands.size()));
    Work work = nullptr;
    if (begins(name, "MOV")) {
      work = named(source);
      if (const auto known = halves_.find(register_in(source));
          work == nullptr && known != halves_.end())
        work = known->second;
    }
    while (!results.empty()) {  // "@r4:r5"
      const int result = register_in(before(results, ':'));
      if (work != nullptr) {
        halves_[result] = work;
      } else {
        halves_.erase(result);
      }
      results.remove_prefix(std::min(before(results, ':').size() + 1, results.size()));
    }
  }

 private:
  static Work named(std::string_view operands) {
    if (contains(operands, "thread_local_pointer")) return &InnerLoop::scratch;
    if (contains(operands, "workgroup_local_pointer")) return &InnerLoop::shared;
    return nullptr;
  }
  static int register_in(std::string_view operand) {
    operand = operand.substr(std::min(operand.find_first_not_of(" ,^@"), operand.size()));
    return operand.starts_with('r') ? number_in(operand.substr(1)) : -9;
  }

  std::map<int, Work> halves_;
};

}  // namespace

Program valhall_program(std::string_view text) {
  Program program;
  AddressHalves halves;
  for (std::string_view line; next_line(text, line);) {
    line = trimmed(line);
    if (line.empty()) continue;
    const auto here = static_cast<int>(program.code().size());
    program.label(std::to_string(here));
    const std::string_view name = next_word(line);
    Operation operation = mali_operation(name, line);
    if (begins(name, "LOAD", "STORE", "ATOM")) operation.work = halves.work_of(line);
    if (!begins(name, "STORE", "BRANCH", "BARRIER", "NOP")) halves.written(name, line);
    program.issue(operation).ends = begins(name, "NOP.end");
    if (const size_t offset = line.find("offset:");
        begins(name, "BRANCHZ") && offset != line.npos) {
      // Distances count from the next instruction. A branch on a constant zero is always taken.
      program.jump(std::to_string(here + 1 + number_in(line.substr(offset + 7))));
      program.code().back().ends = line.starts_with("0x0,") && contains(name, ".eq");
    }
  }
  return program;
}

Program bifrost_program(std::string_view text) {
  Program program;
  for (std::string_view line; next_line(text, line);) {
    line = trimmed(line);
    if (line.starts_with("clause_")) program.label(before(line, ':'));
    if (!begins(line, "*", "+")) continue;
    const bool second = line.starts_with('+');
    line.remove_prefix(1);
    const std::string_view name = next_word(line);
    const Operation operation = mali_operation(name, line);
    // Empty halves do not count, but a tuple of two empty halves is a wait.
    if (!second || program.code().empty()) program.issue();
    Instruction& tuple = program.code().back();
    const bool empty = tuple.counts.nops > 0;
    if (operation.work != &InnerLoop::nops) {
      if (second && empty) tuple.counts.nops = 0;
      tuple.add(operation);
    } else if (!second) {
      tuple.add(operation);
    }
    if (begins(name, "JUMP", "BRANCH")) {
      tuple.ends = begins(name, "JUMP");
      if (const size_t target = line.find("clause_"); target != line.npos)
        program.jump(line.substr(target));
    }
  }
  return program;
}

}  // namespace mulciber::apps
