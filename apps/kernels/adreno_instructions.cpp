// adreno_program() of instructions.h: reads Adreno code in the form of Turnip's "IR3 Assembly".
// Flags stand before the name: (rpt1) issues the instruction once more for the next registers,
// (nop3) waits after it. The driver's own count includes both.
//   l48:
//   (sy)(rpt1)mad.f32 r8.x, r1.x, (r)r2.x, (r)r8.x
//   br p0.y, #l1028
#include "apps/kernels/instructions.h"

namespace mulciber::apps {
namespace {

/// Removes a flag: "(rpt1)mad.f32" becomes "mad.f32".
void without_flag(std::string_view& text) {
  text = trimmed(text.substr(std::min(text.find(')'), text.size() - 1) + 1));
}

/// Whether all lanes share the result: in registers r48 to r55, or in their predicate up0.
bool one_for_all(std::string_view result) {
  if (begins(result, "up", "ur")) return true;
  while (result.starts_with('(')) without_flag(result);
  if (begins(result, "hr")) result.remove_prefix(1);
  return result.starts_with('r') && number_in(result.substr(1)) >= 48;
}

double adreno_multiply_adds(std::string_view name) {
  if (begins(name, "mad.f")) return 1;
  if (begins(name, "dp2acc")) return 2;
  return begins(name, "dp4acc") ? 4 : 0;
}

Work work_of(std::string_view name, std::string_view operands) {
  if (begins(name, "nop", "sleep")) return &InnerLoop::nops;
  if (begins(name, "br", "jump", "call", "ret", "kill", "end", "shps", "shpe", "getone", "getlast",
             "pred", "bar", "fence", "bany", "ball", "chmask", "chsh", "cchmask") &&
      !begins(name, "brcst"))
    return &InnerLoop::control;
  if (begins(name, "ldp", "stp")) return &InnerLoop::scratch;
  if (begins(name, "ldl", "stl") || (begins(name, "atomic") && contains(operands, "l[")))
    return &InnerLoop::shared;
  if (begins(name, "ldc", "stc", "stsc", "push_consts")) return &InnerLoop::scalar;
  if (begins(name, "isam", "sam", "ldib", "stib", "ldg", "stg", "ldk", "atomic", "resinfo",
             "getsize", "resbase"))
    return &InnerLoop::memory;
  if (one_for_all(operands)) return &InnerLoop::scalar;
  return adreno_multiply_adds(name) > 0 ? &InnerLoop::fma : &InnerLoop::arithmetic;
}

}  // namespace

Program adreno_program(std::string_view text) {
  Program program;
  for (std::string_view line; next_line(text, line);) {
    line = trimmed(line);
    // These are the heading, constants, and figures at the end.
    if (line.empty() || begins(line, ";", "@", "Native")) continue;
    if (line.ends_with(':')) {
      program.label(line.substr(0, line.size() - 1));
      continue;
    }
    uint32_t times = 1, nops = 0;
    while (line.starts_with('(')) {
      if (line.starts_with("(rpt")) times += static_cast<uint32_t>(number_in(line.substr(4)));
      if (line.starts_with("(nop")) nops = static_cast<uint32_t>(number_in(line.substr(4)));
      without_flag(line);
    }
    const std::string_view name = next_word(line);
    const Work work = work_of(name, line);
    Instruction& instruction =
        program.issue({work, work == &InnerLoop::fma ? adreno_multiply_adds(name) : 0}, times);
    instruction.counts.instructions += nops;
    instruction.counts.nops += nops;
    instruction.ends = begins(name, "jump", "end", "ret");
    if (const size_t target = line.find("#l"); target != line.npos)
      program.jump(line.substr(target + 1));
  }
  return program;
}

}  // namespace mulciber::apps
