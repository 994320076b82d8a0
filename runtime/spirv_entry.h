// Adds an entry point to a compute module, which calls the module's own one and chooses the ids of
// the grid that it sees.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>

#include "runtime/spirv_words.h"

namespace mulciber::spirv {

/// Turns the built-in inputs that the new entry point chooses into private variables under their
/// old ids, so that the rest of the module stays unchanged.
class EntryWrapper {
 public:
  /// Throws KernelError when the module is truncated or cannot be wrapped.
  explicit EntryWrapper(std::span<const uint32_t> module);

  // Ids of the module; 0 where it lacks what is asked for.
  uint32_t builtin(uint32_t which) const;
  uint32_t uint_type() const { return uint_; }
  uint32_t vector_type() const { return vector_; }  // vector of three
  uint32_t bool_type();

  /// Makes a built-in input one that the entry point sets by store(). Does nothing where the module
  /// lacks it. Call it before any input().
  void choose(uint32_t which);
  /// The variable with the device's own value of a built-in input.
  uint32_t input(uint32_t which);
  uint32_t constant(uint32_t value);

  // Instructions of the new entry point, from its first label on.
  uint32_t fresh() { return bound_++; }
  void add(uint32_t op, std::initializer_list<uint32_t> operands) { emit(body_, op, operands); }
  /// Appends an instruction with a result and returns its id.
  uint32_t value(uint32_t op, uint32_t type, std::initializer_list<uint32_t> operands);
  uint32_t load(uint32_t which);
  /// Sets a chosen built-in; does nothing where the module lacks it.
  void store(uint32_t which, uint32_t value);
  /// Sets GlobalInvocationId, which the module must have, from the ids of workgroup and local
  /// invocation.
  void store_global_id(uint32_t group, uint32_t local);
  void call_module();

  /// The module with the new entry point, which begins at `label`.
  Words finish(uint32_t label);

 private:
  void look(uint32_t op, Instruction w);
  void copy(uint32_t op, Instruction w, Words& out);
  uint32_t pointer_to(uint32_t storage_class, uint32_t type);
  uint32_t type_of(uint32_t which) const;
  bool is_chosen(uint32_t id) const { return chosen_.count(id) > 0; }

  const std::span<const uint32_t> module_;
  uint32_t bound_;
  uint32_t entry_ = 0, new_entry_ = 0, bool_ = 0, uint_ = 0, vector_ = 0;
  std::array<uint32_t, 2> function_ = {};                    // return type and type of main
  std::map<uint32_t, uint32_t> builtins_, inputs_, chosen_;  // chosen: pointer to an element, by id
  std::map<std::array<uint32_t, 2>, uint32_t> pointers_;     // by storage class and pointee type
  Words declarations_, decorations_, body_, interface_;
};

}  // namespace mulciber::spirv
