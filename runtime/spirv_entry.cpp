#include "runtime/spirv_entry.h"

#include <algorithm>

namespace mulciber::spirv {

EntryWrapper::EntryWrapper(std::span<const uint32_t> module)
    : module_(module), bound_(module.size() > kBoundWord ? module[kBoundWord] : 0) {
  for_each_instruction(module, [&](uint32_t op, Instruction w) { look(op, w); });
  if (entry_ == 0 || uint_ == 0 || vector_ == 0 ||
      (builtin(kBuiltInGlobalInvocationId) && !builtin(kBuiltInWorkgroupSize)))
    throw KernelError("", "a module without a grid", "");
  new_entry_ = fresh();
}

void EntryWrapper::look(uint32_t op, Instruction w) {
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

uint32_t EntryWrapper::builtin(uint32_t which) const {
  const auto found = builtins_.find(which);
  return found == builtins_.end() ? 0 : found->second;
}

uint32_t EntryWrapper::type_of(uint32_t which) const {
  return which == kBuiltInLocalInvocationIndex || which == kBuiltInSubgroupId ? uint_ : vector_;
}

uint32_t EntryWrapper::bool_type() {
  if (bool_ == 0) {
    bool_ = fresh();
    emit(declarations_, kOpTypeBool, {bool_});
  }
  return bool_;
}

uint32_t EntryWrapper::pointer_to(uint32_t storage_class, uint32_t type) {
  uint32_t& id = pointers_[{storage_class, type}];
  if (id == 0) {
    id = fresh();
    emit(declarations_, kOpTypePointer, {id, storage_class, type});
  }
  return id;
}

void EntryWrapper::choose(uint32_t which) {
  const uint32_t id = builtin(which);
  if (id == 0) return;
  chosen_[id] = pointer_to(kClassPrivate, uint_);
  emit(declarations_, kOpVariable, {pointer_to(kClassPrivate, type_of(which)), id, kClassPrivate});
  if (module_[1] >= kVersion14) interface_.push_back(id);
}

uint32_t EntryWrapper::input(uint32_t which) {
  if (const uint32_t id = builtin(which); id != 0 && !is_chosen(id)) return id;
  uint32_t& id = inputs_[which];
  if (id == 0) {
    id = fresh();
    emit(declarations_, kOpVariable, {pointer_to(kClassInput, type_of(which)), id, kClassInput});
    emit(decorations_, kOpDecorate, {id, kDecorationBuiltIn, which});
    interface_.push_back(id);
  }
  return id;
}

uint32_t EntryWrapper::constant(uint32_t value) {
  const uint32_t id = fresh();
  emit(declarations_, kOpConstant, {uint_, id, value});
  return id;
}

uint32_t EntryWrapper::value(uint32_t op, uint32_t type, std::initializer_list<uint32_t> operands) {
  const uint32_t id = fresh();
  body_.push_back(op | static_cast<uint32_t>(operands.size() + 3) << 16);
  body_.insert(body_.end(), {type, id});
  body_.insert(body_.end(), operands);
  return id;
}

uint32_t EntryWrapper::load(uint32_t which) {
  return value(kOpLoad, type_of(which), {input(which)});
}

void EntryWrapper::store(uint32_t which, uint32_t value) {
  if (const uint32_t id = builtin(which); id != 0) add(kOpStore, {id, value});
}

void EntryWrapper::store_global_id(uint32_t group, uint32_t local) {
  const uint32_t begin = value(kOpIMul, vector_, {group, builtin(kBuiltInWorkgroupSize)});
  store(kBuiltInGlobalInvocationId, value(kOpIAdd, vector_, {begin, local}));
}

void EntryWrapper::call_module() { value(kOpFunctionCall, function_[0], {entry_}); }

Words EntryWrapper::finish(uint32_t label) {
  Words out(module_.begin(), module_.begin() + kHeaderWords);
  for_each_instruction(module_, [&](uint32_t op, Instruction w) { copy(op, w, out); });
  emit(out, kOpFunction, {function_[0], new_entry_, 0, function_[1]});
  emit(out, kOpLabel, {label});
  out.insert(out.end(), body_.begin(), body_.end());
  emit(out, kOpReturn, {});
  emit(out, kOpFunctionEnd, {});
  out[kBoundWord] = bound_;
  return out;
}

void EntryWrapper::copy(uint32_t op, Instruction w, Words& out) {
  const auto put = [&out](Words& words) {
    out.insert(out.end(), words.begin(), words.end());
    words.clear();
  };
  switch (op) {
    case kOpEntryPoint: {
      Words words(w.begin(), w.end());
      words[2] = new_entry_;
      // Operands follow the name, which ends in the word with a zero byte.
      size_t at = 3;
      while ((words[at] >> 24) != 0) ++at;
      words.erase(std::remove_if(words.begin() + static_cast<std::ptrdiff_t>(at + 1), words.end(),
                                 [&](uint32_t id) { return is_chosen(id); }),
                  words.end());
      words.insert(words.end(), interface_.begin(), interface_.end());
      words[0] = op | static_cast<uint32_t>(words.size()) << 16;
      put(words);
      return;
    }
    case kOpExecutionMode:
    case kOpExecutionModeId:
      out.insert(out.end(), {w[0], new_entry_});
      out.insert(out.end(), w.begin() + 2, w.end());
      return;
    case kOpDecorate:
      put(decorations_);
      if (w[2] == kDecorationBuiltIn && is_chosen(w[1])) return;
      break;
    case kOpVariable:
      if (is_chosen(w[2])) return;
      break;
    case kOpFunction: put(declarations_); break;
    case kOpAccessChain:
    case kOpInBoundsAccessChain:
      if (const auto chosen = chosen_.find(w[3]); chosen != chosen_.end()) {
        out.insert(out.end(), {w[0], chosen->second});
        out.insert(out.end(), w.begin() + 2, w.end());
        return;
      }
      break;
    default: break;
  }
  out.insert(out.end(), w.begin(), w.end());
}

}  // namespace mulciber::spirv
