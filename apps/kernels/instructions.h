// Disassembly of each instruction set, read as far as counting needs: what an instruction does, and
// which may follow it.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/kernels/inner_loop.h"

namespace mulciber::apps {

/// A class of work: a counter of InnerLoop.
using Work = uint32_t InnerLoop::*;

struct Operation {
  Work work;
  double multiply_adds = 0;  // for each lane; of matrix instructions: in all
};

struct Instruction {
  InnerLoop counts = {};
  // Of a machine without multiply-adds: a product and a sum make one.
  uint32_t products = 0, sums = 0;
  bool ends = false;                 // what stands behind it follows only by a jump
  std::vector<size_t> targets = {};  // others that may follow

  void add(Operation operation, uint32_t times = 1) {
    counts.*operation.work += times;
    counts.multiply_adds += operation.multiply_adds * times;
  }
};

/// A program, entered at its first instruction. Parsers fill it from the top of the text.
class Program {
 public:
  /// A new instruction, or `times` alike in a row. It stays where it is until the next.
  Instruction& issue(uint32_t times = 1) {
    code_.emplace_back().counts.instructions = times;
    return code_.back();
  }
  Instruction& issue(Operation operation, uint32_t times = 1) {
    Instruction& instruction = issue(times);
    instruction.add(operation, times);
    return instruction;
  }
  /// The next instruction is called so.
  void label(std::string_view name) { labels_.insert_or_assign(std::string(name), code_.size()); }
  /// The last instruction may go to that one, which may stand further down. Nowhere: it ends here.
  void jump(std::string_view name) { jumps_.emplace_back(code_.size() - 1, name); }

  /// All instructions, jumps resolved. Those whose target is unknown go nowhere.
  std::vector<Instruction> take();
  std::vector<Instruction>& code() { return code_; }

 private:
  std::vector<Instruction> code_;
  std::map<std::string, size_t, std::less<>> labels_;
  std::vector<std::pair<size_t, std::string>> jumps_;
};

/// has_scratch: as inner_loop() is told.
Program amd_program(std::string_view text, bool has_scratch);          // RADV
Program nvidia_program(std::string_view text);                         // NVK
Program intel_program(std::string_view text, uint32_t subgroup_size);  // ANV, hasvk
Program adreno_program(std::string_view text);                         // Turnip
Program valhall_program(std::string_view text);                        // panvk
Program bifrost_program(std::string_view text);                        // panvk
Program v3d_program(std::string_view text);                            // v3dv

/// The next line of a text, taken off its front; false at the end.
bool next_line(std::string_view& text, std::string_view& line);
std::string_view trimmed(std::string_view text);
/// The first word of a line, taken off its front together with blanks; "" at the end.
std::string_view next_word(std::string_view& line);
/// The part of a text before a character; all of it where there is none.
std::string_view before(std::string_view text, char c);
bool contains(std::string_view text, std::string_view part);
/// The number at the start of a text; 0 where there is none.
int number_in(std::string_view text);
/// Whether a text begins with one of the words.
template <typename... Words>
bool begins(std::string_view text, Words... words) {
  return (text.starts_with(words) || ...);
}
/// m * n * k of a name like "16x16x16" or "m16n8k16"; 0 where it holds none.
double shape_product(std::string_view name);

}  // namespace mulciber::apps
