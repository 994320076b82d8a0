// Lists of texts and of token ids in the C interface, as C++ has them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "capi/structures.h"
#include "mulciber/c/id_sequence.h"

namespace mulciber::c {

/// Copies a list of texts; throws SettingError naming it if it is null, or one of its texts.
inline std::vector<std::string> listed_texts(uint32_t count, const char* const* texts,
                                             const char* name) {
  std::vector<std::string> copies;
  for (uint32_t i = 0; i < count; ++i)
    copies.emplace_back(&given_to(element_of(texts, i, name), name));
  return copies;
}

/// Copies a list of numbers, which may be null where it is empty.
template <typename Number>
std::vector<Number> listed(uint32_t count, const Number* list, const char* name) {
  if (count == 0) return {};
  const Number* first = &given_to(list, name);
  return std::vector<Number>(first, first + count);
}

/// Copies `count` sequences of ids, which all have the size of the first.
inline std::vector<std::vector<uint32_t>> listed_sequences(uint32_t count,
                                                           const MulciberIdSequence* list,
                                                           const char* name) {
  std::vector<std::vector<uint32_t>> sequences;
  if (count > 0) given_to(list, name);
  const auto* at = reinterpret_cast<const char*>(list);
  for (uint32_t i = 0; i < count; ++i, at += list->size) {
    const auto sequence =
        of_any_version(reinterpret_cast<const MulciberIdSequence*>(at), "MulciberIdSequence");
    sequences.push_back(listed(sequence.count, sequence.ids, "ids"));
  }
  return sequences;
}

/// Pointers to texts, which must outlive them.
inline std::vector<const char*> text_pointers(const std::vector<std::string>& texts) {
  std::vector<const char*> pointers;
  for (const std::string& text : texts) pointers.push_back(text.c_str());
  return pointers;
}

}  // namespace mulciber::c
