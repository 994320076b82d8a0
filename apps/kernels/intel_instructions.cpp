// intel_program() of instructions.h: reads Intel code in the form of ANV's "GEN Assembly". The
// number of lanes stands behind the name, and a message's contents in a line of their own:
//   mad(16)   g11<1>F   g4<8,8,1>F   g6<8,8,1>F   g2<1,1,1>F { align1 1H };
//   send(16)  g36UD     g117UD       nullUD       0x04403500   0x00000000
//             slm MsgDesc: ( load, a32, d32, V4, ...
#include "apps/kernels/instructions.h"

namespace mulciber::apps {
namespace {

Work message_work(std::string_view description) {
  if (contains(description, "gateway") || contains(description, "fence"))
    return &InnerLoop::control;
  if (description.starts_with("slm") || contains(description, "Surface = 254"))
    return &InnerLoop::shared;
  // ANV addresses scratch by a surface state of its own, before Xe-HPG by stateless OWORD blocks.
  if (contains(description, " ss )") ||
      (contains(description, "OWORD block") &&
       (contains(description, "bti 253") || contains(description, "bti 255"))))
    return &InnerLoop::scratch;
  return &InnerLoop::memory;
}

/// The type of an operand: "F" of "g11<1>F".
std::string_view type_of(std::string_view operand) {
  return operand.substr(operand.find_last_of(">0123456789") + 1);
}

/// The multiply-adds of dpas.8x8: eight steps deep, each over the elements in a double word, eight
/// rows.
double matrix_multiply_adds(std::string_view name, int lanes, std::string_view operands) {
  next_word(operands), next_word(operands);
  const std::string_view type = type_of(next_word(operands));
  const double elements = begins(type, "HF", "BF") ? 2 : begins(type, "B", "UB") ? 4 : 1;
  const std::string_view shape = name.substr(std::min(name.find('.') + 1, name.size()));
  const int depth = number_in(shape);
  const int rows = number_in(shape.substr(std::min(shape.find('x') + 1, shape.size())));
  return elements * depth * rows * lanes;
}

}  // namespace

Program intel_program(std::string_view text, uint32_t subgroup_size) {
  Program program;
  bool awaits_description = false;
  for (std::string_view line; next_line(text, line);) {
    const bool goes_on = line.starts_with(' ');
    line = trimmed(line);
    if (line.empty() || goes_on) {
      if (awaits_description && !line.empty()) {
        program.code().back().add({message_work(line)});
        awaits_description = false;
      }
      continue;
    }
    if (line.ends_with(':')) {
      program.label(line.substr(0, line.size() - 1));
      continue;
    }
    const bool uniform = contains(line, "WE_all");  // whatever the mask: not per lane
    if (line.starts_with('(')) next_word(line);     // its predicate
    // The name has two words in "math exp(16)".
    const std::string_view name = trimmed(before(before(line, '('), ';'));
    const int lanes = number_in(line.substr(std::min(line.find('(') + 1, line.size())));
    const double share = static_cast<double>(lanes) / subgroup_size;
    std::string_view operands = line.substr(std::min(line.find(')') + 1, line.size()));
    if (begins(name, "send")) {
      program.issue();
      awaits_description = true;
    } else if (begins(name, "dpas", "sdpas")) {
      program.issue(
          {&InnerLoop::matrix, matrix_multiply_adds(name, lanes, operands) / subgroup_size});
    } else if (begins(name, "sync bar", "wait", "if", "else", "endif", "while", "break", "cont",
                      "halt", "jmpi", "call", "ret", "do", "brd", "brc", "goto", "join")) {
      program.issue({&InnerLoop::control});
      // Other branches jump forward, within the loop or out of it: the loop is the code between.
      if (name == "while") {
        next_word(operands);  // "JIP:"
        program.jump(next_word(operands));
      }
    } else if (begins(name, "sync", "nop")) {
      program.issue({&InnerLoop::nops});
    } else if (uniform) {
      program.issue({&InnerLoop::scalar});
    } else if (name == "dp4a") {
      program.issue({&InnerLoop::fma, 4 * share});
    } else if ((begins(name, "mad", "mac") && !begins(name, "mach", "macl")) &&
               begins(type_of(next_word(operands)), "F", "HF", "BF", "DF")) {
      program.issue({&InnerLoop::fma, share});
    } else {
      program.issue({&InnerLoop::arithmetic});
    }
  }
  return program;
}

}  // namespace mulciber::apps
