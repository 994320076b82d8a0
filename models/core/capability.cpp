#include "models/core/capability.h"

#include <fmt/format.h>

#include "mulciber/error.h"

namespace mulciber {
namespace {

constexpr CapabilityRow kRows[] = {
    {Capability::kContinueText, "continue text", "continues texts", "generate"},
    {Capability::kTranslate, "translate", "translates", "translate"},
    {Capability::kRewriteText, "rewrite text", "answers texts with texts", "generate"},
    {Capability::kEncodeText, "encode text", "turns texts into vectors", "embed"},
    {Capability::kClassify, "classify", "classifies", "classify"},
    {Capability::kAnswer, "answer", "finds answers in passages", "answer"},
    {Capability::kEncodeImages, "encode images", "turns images into vectors", "embed"},
    {Capability::kClassifyImages, "classify images", "labels images", "classify"},
    {Capability::kMatch, "match", "matches images with texts", "match"},
    {Capability::kHear, "hear", "transcribes speech", "transcribe"},
    {Capability::kReadImageText, "read text in images", "reads the text in images", "read"},
    {Capability::kSeeImages, "see images", "answers about images", "generate"},
};

constexpr bool in_order() {
  for (size_t i = 0; i < std::size(kRows); ++i)
    if (static_cast<size_t>(kRows[i].capability) != i) return false;
  return true;
}
static_assert(in_order());

}  // namespace

std::span<const CapabilityRow> capability_rows() { return kRows; }

const CapabilityRow& row_of(Capability capability) {
  return kRows[static_cast<size_t>(capability)];
}

void require_capability(const CapabilitySet& offered, Capability wanted, const std::string& where,
                        const std::string& family) {
  if (offered.has(wanted)) return;
  std::string instead;
  for (const CapabilityRow& row : kRows) {
    if (!offered.has(row.capability)) continue;
    instead += fmt::format("{}{}", instead.empty() ? "it " : " and ", row.does);
    if (row.command) instead += fmt::format(" (`mulciber {}`)", row.command);
  }
  throw ModelError(
      where, fmt::format("is a {} model, which is not one that {}", family, row_of(wanted).does),
      instead);
}

}  // namespace mulciber
