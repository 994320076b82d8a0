// Marian: BART's layout with sinusoidal positions; decoding starts with the padding token.
#include "models/families/encoder_decoder_family.h"

namespace mulciber {
namespace {

EncoderDecoderConfig read_marian(const ConfigReader& config, const ConfigReader* generation) {
  EncoderDecoderConfig result = read_bart_like(config, generation);
  result.embedding.shared = config.boolean_or("share_encoder_decoder_embeddings", true);
  if (!config.boolean_or("static_position_embeddings", true))
    result.embedding.positions = Seq2SeqPositions::kLearned;
  result.embedding.norm = config.boolean_or("normalize_embedding", false);
  const bool before = config.boolean_or("normalize_before", false);
  // A pre-norm stack does not normalize its last sum, so a final norm follows unless the file says
  // otherwise.
  result.norms = {.place = before ? NormPlacement::kBefore : NormPlacement::kAfter,
                  .final_norm = config.boolean_or("add_final_layer_norm", before),
                  .epsilon = static_cast<float>(config.number_or("layer_norm_eps", 1e-5, 0, 1))};
  // Marian starts its decoder with the padding token.
  GenerationConfig& ids = result.generation;
  if (!ids.decoder_start) ids.decoder_start = ids.pad;
  return result;
}

}  // namespace

constinit const EncoderDecoderFamily kMarian = {"marian", read_marian};

}  // namespace mulciber
