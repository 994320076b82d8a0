// SPIR-V as words: the specification's numbers, and a walk over instructions, for code that reads
// and rewrites modules.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "mulciber/error.h"

namespace mulciber::spirv {

using Words = std::vector<uint32_t>;
/// An instruction: its opcode and length in the first word, then its operands.
using Instruction = std::span<const uint32_t>;

// SPIR-V 1.6 specification, sections 2.3 and 3.
enum : uint32_t {
  kMagic = 0x07230203,
  kVersion14 = 0x00010400,
  kHeaderWords = 5,
  kBoundWord = 3,  // header word of the bound: above every id

  kOpEntryPoint = 15,
  kOpExecutionMode = 16,
  kOpTypeBool = 20,
  kOpTypeInt = 21,
  kOpTypeFloat = 22,
  kOpTypeVector = 23,
  kOpTypeSampledImage = 27,
  kOpTypeArray = 28,
  kOpTypeRuntimeArray = 29,
  kOpTypeStruct = 30,
  kOpTypePointer = 32,
  kOpConstant = 43,
  kOpConstantNull = 46,
  kOpSpecConstant = 50,
  kOpFunction = 54,
  kOpFunctionEnd = 56,
  kOpFunctionCall = 57,
  kOpVariable = 59,
  kOpLoad = 61,
  kOpStore = 62,
  kOpAccessChain = 65,
  kOpInBoundsAccessChain = 66,
  kOpDecorate = 71,
  kOpMemberDecorate = 72,
  kOpCompositeConstruct = 80,
  kOpCompositeExtract = 81,
  kOpIAdd = 128,
  kOpISub = 130,
  kOpIMul = 132,
  kOpUDiv = 134,
  kOpUMod = 137,
  kOpSelect = 169,
  kOpIEqual = 170,
  kOpUGreaterThan = 172,
  kOpULessThan = 176,
  kOpControlBarrier = 224,
  kOpMemoryBarrier = 225,
  kOpPhi = 245,
  kOpLoopMerge = 246,
  kOpLabel = 248,
  kOpBranch = 249,
  kOpBranchConditional = 250,
  kOpReturn = 253,
  kOpExecutionModeId = 331,

  kDecorationSpecId = 1,
  kDecorationArrayStride = 6,
  kDecorationBuiltIn = 11,
  kDecorationBinding = 33,
  kDecorationOffset = 35,

  kBuiltInNumWorkgroups = 24,
  kBuiltInWorkgroupSize = 25,
  kBuiltInWorkgroupId = 26,
  kBuiltInLocalInvocationId = 27,
  kBuiltInGlobalInvocationId = 28,
  kBuiltInLocalInvocationIndex = 29,
  kBuiltInSubgroupId = 40,

  kClassInput = 1,
  kClassUniform = 2,
  kClassWorkgroup = 4,
  kClassPrivate = 6,
  kClassPushConstant = 9,
  kClassStorageBuffer = 12,

  kScopeWorkgroup = 2,
  kAcquireReleaseWorkgroupMemory = 0x108,
};

/// Calls `visit` with opcode and words of each instruction. Throws KernelError where the module is
/// truncated.
template <typename Visit>
void for_each_instruction(std::span<const uint32_t> module, const Visit& visit) {
  for (size_t at = kHeaderWords; at < module.size();) {
    const uint32_t length = module[at] >> 16;
    if (length == 0 || at + length > module.size()) throw KernelError("", "truncated module", "");
    visit(module[at] & 0xffff, Instruction(module.subspan(at, length)));
    at += length;
  }
}

/// Appends an instruction.
inline void emit(Words& to, uint32_t op, std::initializer_list<uint32_t> operands) {
  to.push_back(op | static_cast<uint32_t>(operands.size() + 1) << 16);
  to.insert(to.end(), operands);
}

}  // namespace mulciber::spirv
