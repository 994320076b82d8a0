// sentence-transformers' settings: how hidden states become the embedding of a text.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "checkpoints/checkpoint.h"
#include "models/core/encoding_model.h"
#include "models/families/encoder_config.h"
#include "mulciber/text_encoder.h"

namespace mulciber {

struct SentenceConfig {
  bool from_files = false;  // the files declare an embedding model
  Pooling pooling = Pooling::kMean;
  std::vector<DenseModule> dense;  // modules after pooling
  bool normalize = false;
  std::optional<uint32_t> max_tokens;          // limit of a text, if below the model's
  std::map<std::string, std::string> prompts;  // by name
  std::string default_prompt;                  // name of the default prompt, or ""
};

/// Reads modules.json, its Pooling and Dense modules, sentence_bert_config.json and
/// config_sentence_transformers.json, or a GGUF file's key; missing settings keep the defaults
/// above. Throws ModelError naming file and key for unsupported settings that would change the
/// embeddings.
SentenceConfig read_sentence_config(const Checkpoint& checkpoint);

}  // namespace mulciber
