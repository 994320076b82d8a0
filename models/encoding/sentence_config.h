// How a checkpoint's states become the vector of a text, as the files beside it say that
// sentence-transformers writes.
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
  bool from_files = false;  // the checkpoint says that it was made for vectors
  Pooling pooling = Pooling::kMean;
  std::vector<DenseModule> dense;  // what pooled states go through
  bool normalize = false;
  std::optional<uint32_t> max_tokens;          // of a text, where it is fewer than the model takes
  std::map<std::string, std::string> prompts;  // by name
  std::string default_prompt;                  // its name, or ""
};

/// modules.json, its Pooling and Dense modules, sentence_bert_config.json and
/// config_sentence_transformers.json, or a GGUF file's key; what is missing stays as above. Throws
/// ModelError naming file and key for what would change the numbers and is not supported.
SentenceConfig read_sentence_config(const Checkpoint& checkpoint);

}  // namespace mulciber
