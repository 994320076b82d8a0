#include "runtime/spirv_reflection.h"

#include <algorithm>
#include <bit>
#include <map>
#include <string>
#include <unordered_map>

#include "mulciber/error.h"
#include "runtime/spirv_words.h"

namespace mulciber {
namespace {

struct Type {
  uint32_t op = 0;
  uint32_t element = 0;           // vector, array, pointer: what it holds
  uint32_t count = 0;             // vector: components; array: id of the length
  uint32_t bits = 0;              // int, float
  uint32_t storage_class = 0;     // pointer
  std::vector<uint32_t> members;  // struct
};

class Reader {
 public:
  explicit Reader(std::span<const uint32_t> words) : words_(words) {}

  Reflection read() {
    using namespace spirv;
    for_each_instruction(words_, [this](uint32_t op, Instruction w) { visit(op, w); });
    Reflection result;
    result.buffer_count =
        static_cast<uint32_t>(bindings_.empty() ? 0 : bindings_.rbegin()->first + 1);
    for (auto [pointer, storage_class, id] : variables_) {
      const Type& target = types_[types_[pointer].element];
      if (target.op == kOpTypeSampledImage) result.texels.push_back(binding_of(id));
      if (storage_class == kClassWorkgroup) {
        result.shared_memory_bytes += size(types_[pointer].element);
      } else if (storage_class == kClassPushConstant) {
        result.push_constant_bytes = size(types_[pointer].element);
        // buffers.glsl puts an array of addresses first when a kernel reads buffers through them.
        if (!target.members.empty() && types_[target.members[0]].op == kOpTypeArray) {
          result.buffer_address = true;
          result.buffer_count = constants_[types_[target.members[0]].count];
        }
      }
    }
    std::sort(result.texels.begin(), result.texels.end());
    result.specialization_ids = specialization_ids_;
    return result;
  }

 private:
  void visit(uint32_t op, spirv::Instruction w) {
    using namespace spirv;
    switch (op) {
      case kOpTypeInt:
      case kOpTypeFloat: types_[w[1]] = {.op = op, .bits = w[2]}; break;
      case kOpTypeVector: types_[w[1]] = {.op = op, .element = w[2], .count = w[3]}; break;
      case kOpTypeArray: types_[w[1]] = {.op = op, .element = w[2], .count = w[3]}; break;
      case kOpTypeRuntimeArray: types_[w[1]] = {.op = op, .element = w[2]}; break;
      case kOpTypeStruct: {
        Type type{.op = op};
        type.members.assign(w.begin() + 2, w.end());
        types_[w[1]] = type;
        break;
      }
      case kOpTypePointer: types_[w[1]] = {.op = op, .element = w[3], .storage_class = w[2]}; break;
      case kOpConstant:
      case kOpSpecConstant: constants_[w[2]] = w[3]; break;
      case kOpTypeSampledImage: types_[w[1]] = {.op = op}; break;
      case kOpVariable: variables_.push_back({w[1], w[3], w[2]}); break;
      case kOpDecorate:
        if (w[2] == kDecorationBinding) bindings_[w[3]] = w[1];
        if (w[2] == kDecorationSpecId) specialization_ids_.push_back(w[3]);
        if (w[2] == kDecorationArrayStride) strides_[w[1]] = w[3];
        break;
      case kOpMemberDecorate:
        if (w[3] == kDecorationOffset) offsets_[{w[1], w[2]}] = w[4];
        break;
      default: break;
    }
  }

  uint32_t binding_of(uint32_t variable) const {
    const auto found = std::ranges::find_if(
        bindings_, [&](const auto& binding) { return binding.second == variable; });
    if (found == bindings_.end()) throw KernelError("", "has a texel buffer without a binding", "");
    return found->first;
  }

  uint32_t size(uint32_t id) {
    using namespace spirv;
    const Type type = types_[id];
    switch (type.op) {
      case kOpTypeInt:
      case kOpTypeFloat: return type.bits / 8;
      case kOpTypeVector: return type.count * size(type.element);
      case kOpTypeArray: {
        uint32_t stride = strides_.count(id) ? strides_[id] : size(type.element);
        return stride * constants_[type.count];
      }
      case kOpTypeStruct: {
        uint32_t end = 0;
        for (uint32_t i = 0; i < type.members.size(); ++i) {
          auto offset = offsets_.find({id, i});
          uint32_t begin = offset == offsets_.end() ? end : offset->second;
          end = std::max(end, begin + size(type.members[i]));
        }
        return end;
      }
      default: return 0;
    }
  }

  std::span<const uint32_t> words_;
  std::vector<uint32_t> specialization_ids_;
  std::unordered_map<uint32_t, Type> types_;
  std::unordered_map<uint32_t, uint32_t> constants_, strides_;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> offsets_;
  std::map<uint32_t, uint32_t> bindings_;
  struct Variable {
    uint32_t pointer, storage_class, id;
  };
  std::vector<Variable> variables_;
};

}  // namespace

Reflection reflect_spirv(std::string_view id, std::span<const uint32_t> words) {
  if (words.size() < spirv::kHeaderWords || words[0] != spirv::kMagic) {
    throw KernelError(std::string(id), "is not a SPIR-V module", "");
  }
  try {
    return Reader(words).read();
  } catch (const KernelError& error) {
    throw KernelError(std::string(id), error.problem(), "");
  }
}

}  // namespace mulciber
