// amd_program() of instructions.h: reads AMD GCN and RDNA code in the form of RADV's "Assembly": a
// label BB7: per block, an instruction per line.
#include "apps/kernels/instructions.h"

namespace mulciber::apps {
namespace {

/// The multiply-adds of one lane that a vector instruction makes; 0 for other instructions.
double amd_multiply_adds(std::string_view name) {
  name.remove_prefix(2);
  if (name.starts_with("dual_")) name.remove_prefix(5);
  const bool packed = name.starts_with("pk_");
  if (packed) name.remove_prefix(3);
  if (begins(name, "fma", "mac_", "mad_f", "mad_mix", "madak", "madmk", "mad_legacy"))
    return packed ? 2 : 1;
  if (begins(name, "dot2")) return 2;
  if (begins(name, "dot4")) return 4;
  return begins(name, "dot8") ? 8 : 0;
}

Operation amd_operation(std::string_view name, std::string_view operands, bool has_scratch) {
  if (begins(name, "v_wmma", "v_swmmac", "v_mfma", "v_smfma"))
    return {&InnerLoop::matrix, shape_product(name)};
  if (name.starts_with("v_")) {
    const double multiply_adds = amd_multiply_adds(name);
    return {multiply_adds > 0 ? &InnerLoop::fma : &InnerLoop::arithmetic, multiply_adds};
  }
  // Values that RADV spills to shared memory lie at the lane's number.
  if (contains(name, "_addtid_")) return {&InnerLoop::scratch};
  if (name.starts_with("ds_")) return {&InnerLoop::shared};
  if (name.starts_with("scratch_")) return {&InnerLoop::scratch};
  if (begins(name, "s_wait", "s_nop", "s_delay_alu", "s_clause", "s_sleep", "s_set_inst_prefetch",
             "s_inst_prefetch"))
    return {&InnerLoop::nops};
  if (begins(name, "s_cbranch", "s_branch", "s_endpgm", "s_barrier", "s_sendmsg", "s_setprio",
             "s_setpc"))
    return {&InnerLoop::control};
  if (name.starts_with("s_")) return {&InnerLoop::scalar};
  // GCN before scratch_ instructions addresses scratch without a lane register, by a scalar offset.
  // Loads of one address for all lanes look the same in a shader without scratch.
  if (has_scratch && name.starts_with("buffer_") && contains(operands, ", off, s[") &&
      contains(operands, "], s"))
    return {&InnerLoop::scratch};
  return {&InnerLoop::memory};  // buffer_, global_, flat_, image_
}

}  // namespace

Program amd_program(std::string_view text, bool has_scratch) {
  Program program;
  Operation last = {&InnerLoop::nops};
  for (std::string_view line; next_line(text, line);) {
    line = trimmed(before(line, ';'));
    if (line.empty()) continue;
    if (line.ends_with(':')) {
      program.label(line.substr(0, line.size() - 1));
      continue;
    }
    constexpr std::string_view kRepeated = "(then repeated ";
    if (line.starts_with(kRepeated)) {
      const auto times = static_cast<uint32_t>(number_in(line.substr(kRepeated.size())));
      program.issue(last, times);
      continue;
    }
    const size_t second = line.find(" :: ");  // RDNA 3 issues two operations at once
    std::string_view first = line.substr(0, second);
    const std::string_view name = next_word(first);
    last = amd_operation(name, first, has_scratch);
    Instruction& instruction = program.issue(last);
    if (second != line.npos) {
      std::string_view other = line.substr(second + 4);
      const std::string_view other_name = next_word(other);
      instruction.add(amd_operation(other_name, other, has_scratch));
    }
    instruction.ends = begins(name, "s_branch", "s_endpgm", "s_setpc");
    if (begins(name, "s_cbranch", "s_branch")) program.jump(first);
  }
  return program;
}

}  // namespace mulciber::apps
