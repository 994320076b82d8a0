#include "runtime/spirv_grid.h"

#include <algorithm>
#include <initializer_list>
#include <map>

#include "mulciber/error.h"

namespace mulciber {
namespace {

using Words = std::vector<uint32_t>;
using Instruction = std::span<const uint32_t>;

// SPIR-V 1.6 specification, section 3.
enum : uint32_t {
  kOpEntryPoint = 15,
  kOpExecutionMode = 16,
  kOpTypeBool = 20,
  kOpTypeInt = 21,
  kOpTypeVector = 23,
  kOpTypePointer = 32,
  kOpConstant = 43,
  kOpFunction = 54,
  kOpFunctionEnd = 56,
  kOpFunctionCall = 57,
  kOpVariable = 59,
  kOpLoad = 61,
  kOpStore = 62,
  kOpAccessChain = 65,
  kOpInBoundsAccessChain = 66,
  kOpDecorate = 71,
  kOpCompositeConstruct = 80,
  kOpCompositeExtract = 81,
  kOpIAdd = 128,
  kOpIMul = 132,
  kOpUDiv = 134,
  kOpUMod = 137,
  kOpULessThan = 176,
  kOpControlBarrier = 224,
  kOpPhi = 245,
  kOpLoopMerge = 246,
  kOpLabel = 248,
  kOpBranch = 249,
  kOpBranchConditional = 250,
  kOpReturn = 253,
  kOpExecutionModeId = 331,
  kDecorationBuiltIn = 11,
  kBuiltInNumWorkgroups = 24,
  kBuiltInWorkgroupSize = 25,
  kBuiltInWorkgroupId = 26,
  kBuiltInLocalInvocationId = 27,
  kBuiltInGlobalInvocationId = 28,
  kClassInput = 1,
  kClassPrivate = 6,
  kScopeWorkgroup = 2,
  kAcquireReleaseWorkgroupMemory = 0x108,
  kVersion14 = 0x00010400,
};

void emit(Words& to, uint32_t op, std::initializer_list<uint32_t> operands) {
  to.push_back(op | static_cast<uint32_t>(operands.size() + 1) << 16);
  to.insert(to.end(), operands);
}

class Spreader {
 public:
  Spreader(std::span<const uint32_t> module, const std::array<uint32_t, 3>& grid,
           const std::array<uint32_t, 3>& dispatched)
      : module_(module),
        grid_(grid),
        dispatched_(dispatched),
        bound_(module.size() > 4 ? module[3] : 0) {}

  Words spread() {
    visit([&](uint32_t op, Instruction w) { look(op, w); });
    if (entry_ == 0 || vector_ == 0 ||
        (builtin(kBuiltInGlobalInvocationId) && !builtin(kBuiltInWorkgroupSize)))
      throw KernelError("", "a module without a grid to spread", "");
    make_declarations();
    make_entry();
    out_.assign(module_.begin(), module_.begin() + 5);
    visit([&](uint32_t op, Instruction w) { copy(op, w); });
    out_.insert(out_.end(), main_.begin(), main_.end());
    out_[3] = bound_;
    return std::move(out_);
  }

 private:
  template <typename Visit>
  void visit(const Visit& visit_one) {
    for (size_t at = 5; at < module_.size();) {
      const uint32_t length = module_[at] >> 16;
      if (length == 0 || at + length > module_.size())
        throw KernelError("", "truncated module", "");
      visit_one(module_[at] & 0xffff, module_.subspan(at, length));
      at += length;
    }
  }

  uint32_t fresh() { return bound_++; }
  uint32_t builtin(uint32_t which) const {
    const auto found = builtins_.find(which);
    return found == builtins_.end() ? 0 : found->second;
  }
  /// Variables that become private: what the module sees of the grid.
  bool is_virtual(uint32_t id) const {
    return id != 0 && (id == builtin(kBuiltInWorkgroupId) || id == builtin(kBuiltInNumWorkgroups) ||
                       id == builtin(kBuiltInGlobalInvocationId));
  }

  void look(uint32_t op, Instruction w) {
    switch (op) {
      case kOpEntryPoint: entry_ = w[2]; break;
      case kOpDecorate:
        if (w[2] == kDecorationBuiltIn) builtins_[w[3]] = w[1];
        break;
      case kOpTypeBool: bool_ = w[1]; break;
      case kOpTypeInt:
        if (w[2] == 32 && w[3] == 0) uint_ = w[1];
        break;
      case kOpTypeVector:
        if (w[2] == uint_ && w[3] == 3) vector_ = w[1];
        break;
      case kOpTypePointer: pointers_[{w[2], w[3]}] = w[1]; break;
      case kOpFunction:
        if (w[2] == entry_) function_ = {w[1], w[4]};
        break;
      default: break;
    }
  }

  uint32_t pointer_to(uint32_t storage_class, uint32_t type) {
    uint32_t& id = pointers_[{storage_class, type}];
    if (id == 0) {
      id = fresh();
      emit(declarations_, kOpTypePointer, {id, storage_class, type});
    }
    return id;
  }
  uint32_t constant(uint32_t value) {
    const uint32_t id = fresh();
    emit(declarations_, kOpConstant, {uint_, id, value});
    return id;
  }
  uint32_t input(uint32_t which) {
    const uint32_t id = fresh();
    emit(declarations_, kOpVariable, {pointer_to(kClassInput, vector_), id, kClassInput});
    emit(decorations_, kOpDecorate, {id, kDecorationBuiltIn, which});
    interface_.push_back(id);
    return id;
  }

  void make_declarations() {
    if (bool_ == 0) {
      bool_ = fresh();
      emit(declarations_, kOpTypeBool, {bool_});
    }
    const uint32_t to_vector = pointer_to(kClassPrivate, vector_);
    private_element_ = pointer_to(kClassPrivate, uint_);
    for (const uint32_t which :
         {kBuiltInWorkgroupId, kBuiltInNumWorkgroups, kBuiltInGlobalInvocationId}) {
      if (const uint32_t id = builtin(which); id != 0) {
        emit(declarations_, kOpVariable, {to_vector, id, kClassPrivate});
        if (module_[1] >= kVersion14) interface_.push_back(id);
      }
    }
    group_ = input(kBuiltInWorkgroupId);
    if (builtin(kBuiltInGlobalInvocationId) != 0) {
      invocation_ = builtin(kBuiltInLocalInvocationId);
      if (invocation_ == 0) invocation_ = input(kBuiltInLocalInvocationId);
    }
  }

  /// for (i = this workgroup's number; i < workgroups of the grid; i += workgroups dispatched) {
  /// set; main(); barrier(); }
  void make_entry() {
    const uint32_t start = fresh(), header = fresh(), test = fresh(), body = fresh(),
                   next = fresh(), end = fresh();
    const uint32_t gx = constant(grid_[0]), gy = constant(grid_[1]), gz = constant(grid_[2]);
    const uint32_t total = constant(grid_[0] * grid_[1] * grid_[2]);
    const uint32_t dx = constant(dispatched_[0]), dxy = constant(dispatched_[0] * dispatched_[1]);
    const uint32_t step = constant(dispatched_[0] * dispatched_[1] * dispatched_[2]);
    const uint32_t scope = constant(kScopeWorkgroup),
                   semantics = constant(kAcquireReleaseWorkgroupMemory);
    const auto value = [&](uint32_t op, uint32_t type, std::initializer_list<uint32_t> operands) {
      const uint32_t id = fresh();
      main_.push_back(op | static_cast<uint32_t>(operands.size() + 3) << 16);
      main_.insert(main_.end(), {type, id});
      main_.insert(main_.end(), operands);
      return id;
    };
    const auto label = [&](uint32_t id) { emit(main_, kOpLabel, {id}); };

    new_entry_ = fresh();
    emit(main_, kOpFunction, {function_[0], new_entry_, 0, function_[1]});
    label(start);
    const uint32_t own = value(kOpLoad, vector_, {group_});
    const uint32_t x = value(kOpCompositeExtract, uint_, {own, 0}),
                   y = value(kOpCompositeExtract, uint_, {own, 1});
    const uint32_t z = value(kOpCompositeExtract, uint_, {own, 2});
    const uint32_t row = value(kOpIAdd, uint_, {x, value(kOpIMul, uint_, {y, dx})});
    const uint32_t first = value(kOpIAdd, uint_, {row, value(kOpIMul, uint_, {z, dxy})});
    if (const uint32_t counts = builtin(kBuiltInNumWorkgroups); counts != 0)
      emit(main_, kOpStore, {counts, value(kOpCompositeConstruct, vector_, {gx, gy, gz})});
    emit(main_, kOpBranch, {header});
    label(header);
    const uint32_t i = fresh(), following = fresh();
    emit(main_, kOpPhi, {uint_, i, first, start, following, next});
    emit(main_, kOpLoopMerge, {end, next, 0});
    emit(main_, kOpBranch, {test});
    label(test);
    emit(main_, kOpBranchConditional, {value(kOpULessThan, bool_, {i, total}), body, end});
    label(body);
    const uint32_t lines = value(kOpUDiv, uint_, {i, gx});
    const uint32_t group =
        value(kOpCompositeConstruct, vector_,
              {value(kOpUMod, uint_, {i, gx}), value(kOpUMod, uint_, {lines, gy}),
               value(kOpUDiv, uint_, {lines, gy})});
    if (const uint32_t id = builtin(kBuiltInWorkgroupId); id != 0)
      emit(main_, kOpStore, {id, group});
    if (const uint32_t id = builtin(kBuiltInGlobalInvocationId); id != 0) {
      const uint32_t begin = value(kOpIMul, vector_, {group, builtin(kBuiltInWorkgroupSize)});
      emit(main_, kOpStore,
           {id, value(kOpIAdd, vector_, {begin, value(kOpLoad, vector_, {invocation_})})});
    }
    value(kOpFunctionCall, function_[0], {entry_});
    // The next turn writes to shared memory that others may still read.
    emit(main_, kOpControlBarrier, {scope, scope, semantics});
    emit(main_, kOpBranch, {next});
    label(next);
    emit(main_, kOpIAdd, {uint_, following, i, step});
    emit(main_, kOpBranch, {header});
    label(end);
    emit(main_, kOpReturn, {});
    emit(main_, kOpFunctionEnd, {});
  }

  void copy(uint32_t op, Instruction w) {
    switch (op) {
      case kOpEntryPoint: {
        Words words(w.begin(), w.end());
        words[2] = new_entry_;
        // Behind the name, which ends in the word with a zero byte.
        size_t at = 3;
        while ((words[at] >> 24) != 0) ++at;
        words.erase(std::remove_if(words.begin() + static_cast<std::ptrdiff_t>(at + 1), words.end(),
                                   [&](uint32_t id) { return is_virtual(id); }),
                    words.end());
        words.insert(words.end(), interface_.begin(), interface_.end());
        words[0] = op | static_cast<uint32_t>(words.size()) << 16;
        out_.insert(out_.end(), words.begin(), words.end());
        return;
      }
      case kOpExecutionMode:
      case kOpExecutionModeId:
        out_.insert(out_.end(), {w[0], new_entry_});
        out_.insert(out_.end(), w.begin() + 2, w.end());
        return;
      case kOpDecorate:
        if (!decorations_.empty()) {
          out_.insert(out_.end(), decorations_.begin(), decorations_.end());
          decorations_.clear();
        }
        if (w[2] == kDecorationBuiltIn && is_virtual(w[1])) return;
        break;
      case kOpVariable:
        if (is_virtual(w[2])) return;
        break;
      case kOpFunction:
        out_.insert(out_.end(), declarations_.begin(), declarations_.end());
        declarations_.clear();
        break;
      case kOpAccessChain:
      case kOpInBoundsAccessChain:
        if (is_virtual(w[3])) {
          out_.insert(out_.end(), {w[0], private_element_});
          out_.insert(out_.end(), w.begin() + 2, w.end());
          return;
        }
        break;
      default: break;
    }
    out_.insert(out_.end(), w.begin(), w.end());
  }

  const std::span<const uint32_t> module_;
  const std::array<uint32_t, 3> grid_, dispatched_;
  uint32_t bound_;
  uint32_t entry_ = 0, new_entry_ = 0, bool_ = 0, uint_ = 0, vector_ = 0, private_element_ = 0,
           group_ = 0, invocation_ = 0;
  std::array<uint32_t, 2> function_ = {};  // what main returns, and its type
  std::map<uint32_t, uint32_t> builtins_;
  std::map<std::array<uint32_t, 2>, uint32_t> pointers_;  // by storage class and what they point to
  Words out_, declarations_, decorations_, main_, interface_;
};

}  // namespace

std::vector<uint32_t> spread_grid(std::span<const uint32_t> module,
                                  const std::array<uint32_t, 3>& grid,
                                  const std::array<uint32_t, 3>& dispatched) {
  return Spreader(module, grid, dispatched).spread();
}

}  // namespace mulciber
