// nvidia_program() of instructions.h: reads NVIDIA code in the form of NVK's "NAK assembly": each
// block names the blocks that may follow it.
//   block 7 L13 [6] -> {
//   @!p0  r8 = ffma.ftz r38 r46 r8   // delay=1
//   } -> [8, 9]
#include "apps/kernels/instructions.h"

namespace mulciber::apps {
namespace {

Operation nvidia_operation(std::string_view name, std::string_view result) {
  if (begins(name, "hmma", "imma", "qmma", "bmma"))
    return {&InnerLoop::matrix, shape_product(name)};
  // These are registers and predicates of the uniform datapath.
  if (begins(result, "ur", "up") || begins(name, "ldc", "r2ur")) return {&InnerLoop::scalar};
  if (begins(name, "ffma2", "hfma2")) return {&InnerLoop::fma, 2};
  if (begins(name, "ffma", "hfma", "dfma")) return {&InnerLoop::fma, 1};
  if (begins(name, "idp4", "dp4a")) return {&InnerLoop::fma, 4};
  if (begins(name, "idp2")) return {&InnerLoop::fma, 2};
  if (begins(name, "ldsm", "shfl", "ld.shared", "st.shared", "atom.shared"))
    return {&InnerLoop::shared};
  if (begins(name, "ld.local", "st.local")) return {&InnerLoop::scratch};
  if (begins(name, "ld.", "st.", "atom", "red", "tex", "tld", "suld", "sust", "suatom", "cctl"))
    return {&InnerLoop::memory};
  if (begins(name, "nop", "depbar")) return {&InnerLoop::nops};
  if (begins(name, "bra", "bssy", "bsync", "bclear", "bar", "membar", "exit", "ssy", "sync", "pbk",
             "brk", "pcnt", "cont", "warpsync", "brx", "bmov"))
    return {&InnerLoop::control};
  return {&InnerLoop::arithmetic};
}

}  // namespace

Program nvidia_program(std::string_view text) {
  Program program;
  for (std::string_view line; next_line(text, line);) {
    line = trimmed(before(line, '/'));
    if (line.starts_with("block")) {
      next_word(line);
      program.label(next_word(line));
      program.issue(0);  // a placeholder for a block that may be empty
      continue;
    }
    if (line.starts_with('}')) {
      // The list of followers is complete, so that no block falls through to the one below.
      if (program.code().empty()) continue;
      program.code().back().ends = true;
      line = line.substr(std::min(line.find('['), line.size()));
      while (!line.empty()) {
        line.remove_prefix(1);
        line = trimmed(line);
        program.jump(line.substr(0, line.find_first_of(",]")));
        line = line.substr(std::min(line.find(','), line.size()));
      }
      continue;
    }
    if (line.empty()) continue;
    if (line.starts_with('@')) next_word(line);
    std::string_view result;
    if (const size_t equals = line.find(" = "); equals != line.npos) {
      result = trimmed(line.substr(0, equals));
      line = line.substr(equals + 3);
    }
    program.issue(nvidia_operation(next_word(line), result));
  }
  return program;
}

}  // namespace mulciber::apps
