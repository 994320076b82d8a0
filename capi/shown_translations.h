// Translations as structures of the C interface.
#pragma once

#include <deque>
#include <vector>

#include "mulciber/c/translator.h"
#include "mulciber/translator.h"

namespace mulciber::c {

/// Translations in C++, and in C structures that point into them.
class ShownTranslations {
 public:
  explicit ShownTranslations(std::vector<Translation> found);
  ShownTranslations(const ShownTranslations&) = delete;
  /// As many as were found; null without any.
  const MulciberTranslation* list() const { return list_.data(); }

 private:
  MulciberTranslation shown(const Translation& translation);
  MulciberAlternative shown(const Alternative& alternative);
  MulciberTranslationAttention shown(const AttentionMaps& maps) const;
  const char* const* pointers(const std::vector<std::string>& texts);

  const std::vector<Translation> found_;
  // Deques keep their elements in place.
  std::deque<std::vector<const char*>> pointers_;
  std::deque<std::vector<MulciberAlternative>> alternatives_;
  std::deque<MulciberTranslationAttention> attention_;
  std::vector<MulciberTranslation> list_;
};

}  // namespace mulciber::c
