#include "apps/translate/results.h"

#include <utility>

#include "apps/attention/measures.h"
#include "apps/attention/options.h"

namespace mulciber::apps {

SentenceMaps to_maps(const std::string& source, const Translation& t, const std::string& model,
                     const std::string& device, const std::string& start_token) {
  SentenceMaps maps;
  maps.source_text = source;
  maps.target_text = t.text;
  maps.model = name_of_model(model);
  maps.device = device;
  maps.source_tokens = t.source_tokens;
  maps.target_tokens = t.tokens;
  maps.decoder_input_tokens = {start_token};
  for (size_t i = 0; i + 1 < t.tokens.size(); ++i) maps.decoder_input_tokens.push_back(t.tokens[i]);
  const AttentionMaps& a = *t.attention;
  maps.kinds = {
      {"encoder", a.encoder_layers, a.encoder_heads, a.source_length, a.source_length, a.encoder},
      {"decoder", a.decoder_layers, a.decoder_heads, a.target_length, a.target_length, a.decoder},
      {"cross", a.cross_layers, a.cross_heads, a.target_length, a.source_length, a.cross}};
  // Recurrent models have cross-attention alone.
  std::erase_if(maps.kinds, [](const SentenceMaps::Kind& kind) { return kind.layers == 0; });
  for (SentenceMaps::Kind& rollout : attention_rollout(maps))
    maps.kinds.push_back(std::move(rollout));
  return maps;
}

nlohmann::json translation_json(const std::string& source, const Translation& t) {
  nlohmann::json hypotheses = nlohmann::json::array();
  for (const Alternative& h : t.alternatives) {
    hypotheses.push_back(
        {{"text", h.text}, {"score", h.score}, {"ids", h.ids}, {"tokens", h.tokens}});
  }
  return {{"source", source},
          {"text", t.text},
          {"score", t.score},
          {"source_ids", t.source_ids},
          {"source_tokens", t.source_tokens},
          {"ids", t.ids},
          {"tokens", t.tokens},
          {"hypotheses", hypotheses}};
}

}  // namespace mulciber::apps
