// Attention maps of translations in slices: passes of an encoder-decoder network.
#pragma once

#include <memory>
#include <vector>

#include "models/generation/attention_pass.h"
#include "models/translation/encoder_decoder_programs.h"

namespace mulciber {

class EncoderDecoder;
struct ForwardRequest;

/// Made by EncoderDecoder::start_attention().
class TranslationAttention : public AttentionPass {
 public:
  /// programs: from short to long targets; nobody else uses them meanwhile. owner outlives it.
  TranslationAttention(const EncoderDecoder& owner,
                       std::vector<std::shared_ptr<PassProgram>> programs);

  /// Begins one source and its target. Throws SettingError where they are longer than the longest
  /// program.
  void begin(const ForwardRequest& request);
  PaddedRows largest_map() const override;

 private:
  const EncoderDecoder& owner_;
  std::vector<std::shared_ptr<PassProgram>> programs_;
};

}  // namespace mulciber
