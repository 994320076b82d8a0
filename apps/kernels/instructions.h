// Reads the disassembly of each instruction set as far as counting needs: the work of an
// instruction, and the instructions that may follow it.
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
  double multiply_adds = 0;  // for each lane; for matrix instructions: in all
};

struct Instruction {
  InnerLoop counts = {};
  // For a machine without multiply-adds: a product and a sum count as one.
  uint32_t products = 0, sums = 0;
  bool ends = false;                 // the next instruction follows only by a jump
  std::vector<size_t> targets = {};  // other instructions that may follow

  void add(Operation operation, uint32_t times = 1) {
    counts.*operation.work += times;
    counts.multiply_adds += operation.multiply_adds * times;
  }
};

/// A program, entered at its first instruction. Parsers fill it from the top of the text.
class Program {
 public:
  /// Adds an instruction, or `times` equal ones in a row. The reference is valid until the next
  /// call.
  Instruction& issue(uint32_t times = 1) {
    code_.emplace_back().counts.instructions = times;
    return code_.back();
  }
  Instruction& issue(Operation operation, uint32_t times = 1) {
    Instruction& instruction = issue(times);
    instruction.add(operation, times);
    return instruction;
  }
  /// Gives the next instruction a name.
  void label(std::string_view name) { labels_.insert_or_assign(std::string(name), code_.size()); }
  /// Adds a jump from the last instruction to a name, which may be defined later. A name that is
  /// never defined ends the program here.
  void jump(std::string_view name) { jumps_.emplace_back(code_.size() - 1, name); }

  /// Returns all instructions with jumps resolved. Jumps to unknown names have no target.
  std::vector<Instruction> take();
  std::vector<Instruction>& code() { return code_; }

 private:
  std::vector<Instruction> code_;
  std::map<std::string, size_t, std::less<>> labels_;
  std::vector<std::pair<size_t, std::string>> jumps_;
};

/// has_scratch: see inner_loop().
Program amd_program(std::string_view text, bool has_scratch);          // RADV
Program nvidia_program(std::string_view text);                         // NVK
Program intel_program(std::string_view text, uint32_t subgroup_size);  // ANV, hasvk
Program adreno_program(std::string_view text);                         // Turnip
Program valhall_program(std::string_view text);                        // panvk
Program bifrost_program(std::string_view text);                        // panvk
Program v3d_program(std::string_view text);                            // v3dv

/// Takes the next line off the front of a text; false at the end.
bool next_line(std::string_view& text, std::string_view& line);
std::string_view trimmed(std::string_view text);
/// Takes the first word and the blanks around it off the front of a line; "" at the end.
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
