// BART, and M2M-100, whose tensors have the same names.
#include "models/families/encoder_decoder_family.h"

namespace mulciber {
namespace {

// Rows below belong to padding: fairseq reserved rows of the position table for it.
constexpr uint32_t kFirstPosition = 2;

/// Both models start decoding with the end-of-text token.
void start_with_eos(GenerationConfig& ids) {
  if (!ids.decoder_start && !ids.eos.empty()) ids.decoder_start = ids.eos.front();
}

EncoderDecoderConfig read_bart(const ConfigReader& config, const ConfigReader* generation) {
  EncoderDecoderConfig result = read_bart_like(config, generation);
  result.embedding.positions = Seq2SeqPositions::kLearned;
  result.embedding.first_position = kFirstPosition;
  result.embedding.norm = true;
  start_with_eos(result.generation);
  return result;
}

EncoderDecoderConfig read_m2m_100(const ConfigReader& config, const ConfigReader* generation) {
  EncoderDecoderConfig result = read_bart_like(config, generation);
  result.embedding.wavelengths = Wavelengths::kTensor2Tensor;
  result.embedding.first_position = kFirstPosition;
  result.embedding.skips_padding = true;
  result.norms.place = NormPlacement::kBefore;
  result.norms.final_norm = true;
  start_with_eos(result.generation);
  return result;
}

}  // namespace

constinit const EncoderDecoderFamily kBart = {"bart", read_bart, true};
constinit const EncoderDecoderFamily kM2m100 = {"m2m_100", read_m2m_100};

}  // namespace mulciber
