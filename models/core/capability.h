// Capabilities of models beyond a forward pass. A new one needs a row of capability_rows(), an
// interface like models/generation/language_model.h, and an accessor of Model.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace mulciber {

enum class Capability {
  kContinueText,  // models/generation/language_model.h
  kTranslate,     // models/translation/translation_model.h
  kRewriteText,   // models/translation/translation_model.h; tasks other than translation
  kEncodeText,    // models/core/encoding_model.h, also for the next two
  kClassify,
  kAnswer,
  kEncodeImages,  // models/vision/seeing_model.h, also for the next two
  kClassifyImages,
  kMatch,
  kHear,           // models/speech/speech_model.h
  kReadImageText,  // models/vision/image_text_reader_model.h
  kSeeImages,      // models/generation/image_embedder.h, beside kContinueText
};

struct CapabilityRow {
  Capability capability;
  const char* name;     // for programs: "translate"
  const char* does;     // for people: "translates"
  const char* command;  // the command of `mulciber` for it; nullptr: none yet
};
/// Every capability, in the order of the enumeration.
std::span<const CapabilityRow> capability_rows();
const CapabilityRow& row_of(Capability capability);

/// Set of a model family's capabilities.
class CapabilitySet {
 public:
  constexpr CapabilitySet(std::initializer_list<Capability> capabilities) {
    for (const Capability capability : capabilities) bits_ |= bit(capability);
  }
  constexpr bool has(Capability capability) const { return (bits_ & bit(capability)) != 0; }

 private:
  static constexpr uint32_t bit(Capability capability) {
    return uint32_t{1} << static_cast<uint32_t>(capability);
  }
  uint32_t bits_ = 0;
};

/// Throws ModelError unless `offered` has `wanted`. The message names `where`, what models of the
/// family do instead, and the commands for that.
void require_capability(const CapabilitySet& offered, Capability wanted, const std::string& where,
                        const std::string& family);

}  // namespace mulciber
