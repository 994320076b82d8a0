// Typed hyperparameters out of config.json and generation_config.json.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/checkpoint.h"
#include "models/json.h"
#include "runtime/ops/matmul.h"
#include "runtime/ops/search.h"

namespace mulciber {

// Far above every known model, low enough that products of two of them stay within 64 bits and a
// hostile configuration is refused before anything is allocated.
constexpr std::int64_t kMostLayers = 1024;
constexpr std::int64_t kMostHeads = 1024;
constexpr std::int64_t kWidest = 1 << 20;
constexpr std::int64_t kLargestVocab = 1 << 24;
constexpr std::int64_t kMostPositions = 1 << 24;
constexpr std::int64_t kMostTokens = 1 << 24;

/// Reads one JSON object key by key. A key that is missing or null counts as absent; one of the
/// wrong type or out of range throws ModelError naming file and key. Keeps a reference to the
/// object.
class ConfigReader {
 public:
  /// where: the file, for messages; remedy: what to do about an error in it.
  ConfigReader(const Json& object, std::string where,
               std::string remedy = "the configuration does not describe a model that can be run");

  const std::string& where() const { return where_; }
  const std::string& remedy() const { return remedy_; }
  bool has(const char* key) const;
  /// The value of `key`, which must be there.
  const Json& value(const char* key) const;
  /// nullptr when absent.
  const Json* find(const char* key) const;
  /// A nested object. The reader must not outlive this one's JSON.
  ConfigReader object(const char* key) const;
  const Json& list(const char* key) const;

  /// Bounds are inclusive.
  std::int64_t integer(const char* key, std::int64_t least, std::int64_t most) const;
  std::int64_t integer_or(const char* key, std::int64_t fallback, std::int64_t least,
                          std::int64_t most) const;
  std::optional<std::int64_t> optional_integer(const char* key, std::int64_t least,
                                               std::int64_t most) const;
  double number_or(const char* key, double fallback, double least, double most) const;
  bool boolean_or(const char* key, bool fallback) const;
  std::string text(const char* key) const;
  std::string text_or(const char* key, const std::string& fallback) const;
  Activation activation(const char* key) const;
  /// kHeuristic when absent.
  EarlyStopping early_stopping(const char* key) const;
  /// A token id, or a list of them; empty when absent. Every id is below `vocab_size`.
  std::vector<std::int32_t> ids(const char* key, std::int64_t vocab_size) const;
  /// A list of lists of token ids; empty when absent.
  std::vector<std::vector<std::int32_t>> id_lists(const char* key, std::int64_t vocab_size) const;

  /// Throws ModelError about `key`.
  [[noreturn]] void fail(const std::string& key, const std::string& problem) const;

 private:
  std::int32_t id(const char* key, const Json& value, std::int64_t vocab_size) const;

  const Json& object_;
  std::string where_, remedy_;
};

/// How a model is decoded unless the caller says otherwise.
struct GenerationConfig {
  std::optional<std::int32_t> bos, pad, decoder_start, forced_bos, forced_eos;
  std::vector<std::int32_t> eos;                         // any of these ends a text
  std::vector<std::vector<std::int32_t>> bad_words_ids;  // sequences never to be produced
  std::optional<std::int32_t> max_length;      // tokens in all, the decoder's start included
  std::optional<std::int32_t> max_new_tokens;  // wins over max_length
  std::int32_t min_length = 0;
  std::int32_t num_beams = 1;
  double length_penalty = 1.0;
  /// When a search with as many finished hypotheses as beams stops: false is kHeuristic (no running
  /// beam, scored at its present length, beats the worst of them), true kEarly (at once), "never"
  /// kNever (no running beam could beat it at any length).
  EarlyStopping early_stopping = EarlyStopping::kHeuristic;
  /// Scores are normalized again after forbidden tokens were taken out.
  bool renormalize_logits = false;
  bool do_sample = false;
  double temperature = 1.0;
  std::int32_t top_k = 50;
  double top_p = 1.0;
  double min_p = 0.0;
  double typical_p = 1.0;
  double repetition_penalty = 1.0;
  std::int32_t penalty_last_n =
      -1;  // tokens that the penalty looks at, -1: all; GGUF files alone have it
  std::int32_t no_repeat_ngram_size = 0;
};

/// generation_config.json (nullptr when there is none) key by key, then config.json, then the
/// defaults above. Throws ModelError naming file and key; ids must be below `vocab_size`.
GenerationConfig read_generation_config(const ConfigReader& config, const ConfigReader* generation,
                                        std::int64_t vocab_size);
/// The same for a checkpoint's two files.
GenerationConfig read_generation_config(const Checkpoint& checkpoint, std::int64_t vocab_size);

/// An encoder-decoder Transformer as Marian trains it.
/// Source: Vaswani et al. 2017, arXiv:1706.03762; keys as in Hugging Face's MarianConfig.
struct MarianConfig {
  std::uint32_t d_model = 0;
  std::uint32_t encoder_layers = 0, decoder_layers = 0;
  std::uint32_t encoder_heads = 0, decoder_heads = 0;
  std::uint32_t encoder_ffn = 0, decoder_ffn = 0;
  std::uint32_t source_vocab = 0, target_vocab = 0;
  std::uint32_t max_positions = 0;
  Activation activation = Activation::kNone;
  bool scale_embedding = false;      // embeddings times sqrt(d_model)
  bool shared_embeddings = true;     // encoder and decoder read one table
  bool tied_output = true;           // the output matrix is the decoder's embedding table
  bool normalize_before = false;     // layer norm before each sublayer instead of after the sum
  bool normalize_embedding = false;  // layer norm after the positions are added
  bool final_norm = false;           // layer norm after the last layer (pre-norm models)
  bool static_positions = true;      // sinusoids; otherwise the table is a weight
  double norm_epsilon = 1e-5;
  GenerationConfig generation;  // eos, pad and decoder_start are set

  std::uint32_t encoder_head_dim() const { return d_model / encoder_heads; }
  std::uint32_t decoder_head_dim() const { return d_model / decoder_heads; }
};

/// Throws ModelError naming file and key: something missing, not positive, beyond every known
/// model, heads that do not divide d_model, ids outside the vocabulary.
MarianConfig read_marian_config(const Checkpoint& checkpoint);
MarianConfig read_marian_config(const ConfigReader& config,
                                const ConfigReader* generation = nullptr);

}  // namespace mulciber
