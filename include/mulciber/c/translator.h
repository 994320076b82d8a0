/* Mulciber for C: translation. mulciber/c/batch_translator.h translates texts that come at any
 * time. C11. */
#ifndef MULCIBER_C_TRANSLATOR_H
#define MULCIBER_C_TRANSLATOR_H

#include "mulciber/c/cancel.h"
#include "mulciber/c/id_sequence.h"
#include "mulciber/c/model.h"
#include "mulciber/c/result.h"
#include "mulciber/c/task.h"

#ifdef __cplusplus
extern "C" {
#endif

/* info: may be NULL. The model may be destroyed afterwards. */
MULCIBER_API MulciberStatus mulciber_load_translator(MulciberContext* context,
                                                     MulciberDevice* device,
                                                     const MulciberModel* model,
                                                     const MulciberLoadInfo* info,
                                                     MulciberTranslator** translator);
MULCIBER_API void mulciber_destroy_translator(MulciberTranslator* translator);

/* Frees device memory that is kept for later texts, see Translator::trim(). */
MULCIBER_API MulciberStatus mulciber_trim(MulciberContext* context, MulciberTranslator* translator);

typedef struct MulciberTranslatorReport {
  uint32_t size;
  uint32_t max_source_tokens; /* end of sentence included */
  /* Extents of attention maps and head masks. */
  uint32_t encoder_layers, encoder_heads, decoder_layers, decoder_heads, cross_layers, cross_heads;
  uint32_t language_count;
  const char* start_token; /* the piece that decoding starts from */
  /* Languages of a multilingual model, as MulciberTranslateInfo::target_language names them. */
  const char* const* languages;
} MulciberTranslatorReport;

/* The returned pointers are valid until the next such call with the translator, or until it is
 * destroyed. */
MULCIBER_API MulciberStatus mulciber_describe_translator(MulciberContext* context,
                                                         const MulciberTranslator* translator,
                                                         MulciberTranslatorReport* report);

/* ---- Options ---- */

/* Factors for the output of attention heads: (layers, heads) row-major, with the extents of
 * MulciberTranslatorReport; a count of 0: all are 1. */
typedef struct MulciberHeadMasks {
  uint32_t size;
  uint32_t encoder_count, decoder_count, cross_count;
  const float* encoder;
  const float* decoder;
  const float* cross;
} MulciberHeadMasks;

typedef struct MulciberTranslateInfo {
  uint32_t size;
  uint32_t beams;                  /* 0: the model's own */
  uint32_t max_new_tokens;         /* 0: the model's own */
  MulciberBool set_length_penalty; /* use length_penalty; otherwise the model's own */
  float length_penalty;            /* exponent of the length that divides a score */
  MulciberBool set_early_stopping; /* use early_stopping; otherwise the model's own */
  MulciberBool early_stopping;     /* stop at the first `beams` finished hypotheses */
  uint32_t n_best;                 /* hypotheses of a text, at most `beams`; 0: 1 */
  /* Languages of multilingual models, in the names of their vocabularies: "de" (M2M-100, and
   * Marian's ">>de<<"), "deu_Latn" (NLLB). NULL: from the model's files. */
  const char* source_language;
  const char* target_language;
  /* Ids, and sequences of ids, that are never chosen, in addition to the model's own. */
  const uint32_t* banned_tokens;
  const MulciberIdSequence* banned_sequences;
  uint32_t banned_token_count, banned_sequence_count;
  const MulciberHeadMasks* head_masks; /* NULL: all factors are 1 */
  /* Sources as ids, with what the tokenizer adds, in place of texts, which are NULL then: as many
   * as the call has texts, one for a task. */
  const MulciberIdSequence* source_ids;

  /* The fields below are of mulciber_translate() alone; other functions refuse them. */
  MulciberBool attention;   /* also give the attention maps of the best hypothesis */
  uint32_t batch_tokens;    /* most source tokens of a batch, padding included; 0: 1500 */
  uint32_t batch_sentences; /* most texts of a batch; 0: 64 */
  /* Called when texts are done, with the numbers of finished and of all texts; may be NULL. */
  void (*on_progress)(void* user, uint64_t done, uint64_t total);
  void* user;
  MulciberCancel* cancel; /* NULL: none */
} MulciberTranslateInfo;

/* ---- Translations ---- */

typedef struct MulciberAlternative {
  uint32_t size;
  float score; /* sum of log probabilities over a power of the number of tokens */
  const char* text;
  uint32_t id_count;
  const uint32_t* ids; /* end of sentence included, if it was reached */
  const char* const* tokens;
} MulciberAlternative;

/* Attention weights after the softmax, row-major; NULL: the model has no attention of that kind. */
typedef struct MulciberTranslationAttention {
  uint32_t size;
  uint32_t encoder_layers, encoder_heads, decoder_layers, decoder_heads, cross_layers, cross_heads;
  uint32_t source_length, target_length; /* tokens */
  const float* encoder;                  /* (encoder layers, heads, source, source) */
  const float* decoder; /* (decoder layers, heads, target, target); column 0: the start token */
  const float* cross;   /* (cross layers, heads, target, source); row t chose token t */
} MulciberTranslationAttention;

typedef struct MulciberTranslation {
  uint32_t size;
  MulciberBool complete; /* false: cancelled before this text was done; what follows is empty */
  const char* text;      /* of the best hypothesis, as the next fields are */
  float score;
  uint32_t id_count;
  const uint32_t* ids;
  const char* const* tokens;
  uint32_t source_count; /* source tokens, end of sentence included */
  uint32_t alternative_count;
  const uint32_t* source_ids;
  const char* const* source_tokens;
  /* The n_best hypotheses, best first. The list is stepped through by MulciberAlternative::size. */
  const MulciberAlternative* alternatives;
  const MulciberTranslationAttention* attention; /* NULL without MulciberTranslateInfo::attention */
} MulciberTranslation;

/* Translates `count` texts, one sentence or line each, in batches; submits and waits, unlike tasks.
 * translations: `count` of them, in the order of the texts, stepped through by
 * MulciberTranslation::size. A text without tokens translates to "". A text with more tokens than
 * the model has positions is an error; nothing is truncated. info: may be NULL. */
MULCIBER_API MulciberStatus mulciber_translate(MulciberContext* context,
                                               MulciberTranslator* translator, uint32_t count,
                                               const char* const* texts,
                                               const MulciberTranslateInfo* info,
                                               MulciberResult** result,
                                               const MulciberTranslation** translations);

/* Counts and times of the last mulciber_translate(), and of loading where marked "load", see
 * TranslateStatistics in mulciber/translator.h. */
typedef struct MulciberTranslateStatistics {
  uint32_t size;
  uint64_t texts, batches, source_tokens, target_tokens, decoder_steps;
  uint64_t row_steps, needed_row_steps, refills;
  double load_seconds; /* load */
  double tokenize_seconds, prepare_seconds, encode_seconds, decode_seconds, attention_seconds;
  double first_token_seconds, total_seconds;
  uint64_t weight_bytes; /* load: on the device */
  uint64_t predicted_device_bytes, peak_device_bytes;
} MulciberTranslateStatistics;

MULCIBER_API MulciberStatus mulciber_translator_statistics(MulciberContext* context,
                                                           const MulciberTranslator* translator,
                                                           MulciberTranslateStatistics* statistics);

/* ---- Scores of given translations ---- */

typedef struct MulciberTranslationScoreInfo {
  uint32_t size;
  const MulciberHeadMasks* head_masks; /* NULL: all factors are 1 */
  /* Both sides as ids, with what the tokenizer adds, in place of texts, which are NULL then. */
  const MulciberIdSequence* source_ids;
  const MulciberIdSequence* target_ids;
} MulciberTranslationScoreInfo;

typedef struct MulciberTranslationScore {
  uint32_t size;
  uint32_t id_count;      /* tokens of the target, end of sentence included */
  double log_probability; /* sum over the tokens, each given the source and the tokens before it */
  const uint32_t* ids;
  const char* const* tokens;
  const double* token_log_probabilities;
} MulciberTranslationScore;

/* Scores `count` given translations: targets[i] of sources[i]. A pair without source tokens scores
 * 0. The list is stepped through by MulciberTranslationScore::size. info: may be NULL. */
MULCIBER_API MulciberStatus mulciber_score_translations(MulciberContext* context,
                                                        MulciberTranslator* translator,
                                                        uint32_t count, const char* const* sources,
                                                        const char* const* targets,
                                                        const MulciberTranslationScoreInfo* info,
                                                        MulciberResult** result,
                                                        const MulciberTranslationScore** scores);

/* ---- Tokens ---- */

/* The two vocabularies of a translation model. In most models they are one. */
typedef enum MulciberTranslationSide {
  MULCIBER_TRANSLATION_SOURCE = 0,
  MULCIBER_TRANSLATION_TARGET = 1,
  MULCIBER_TRANSLATION_SIDE_MAX = 0x7fffffff
} MulciberTranslationSide;

typedef struct MulciberTranslationTokens {
  uint32_t size;
  uint32_t count;
  const uint32_t* ids;
  const char* const* tokens; /* pieces of the vocabulary */
} MulciberTranslationTokens;

/* Gives the tokens that mulciber_translate() reads for a source, or mulciber_score_translations()
 * for a target, with what the tokenizer adds. info: languages, for sources; may be NULL. */
MULCIBER_API MulciberStatus mulciber_translator_tokens(
    MulciberContext* context, const MulciberTranslator* translator, MulciberTranslationSide side,
    const char* text, const MulciberTranslateInfo* info, MulciberResult** result,
    const MulciberTranslationTokens** tokens);

/* Writes the ids of `count` tokens that are pieces of the vocabulary; that of the unknown token for
 * other tokens. */
MULCIBER_API MulciberStatus mulciber_translator_ids(MulciberContext* context,
                                                    const MulciberTranslator* translator,
                                                    MulciberTranslationSide side, uint32_t count,
                                                    const char* const* tokens, uint32_t* ids);

/* Gives the text of ids, without special tokens. */
MULCIBER_API MulciberStatus mulciber_translator_text(MulciberContext* context,
                                                     const MulciberTranslator* translator,
                                                     MulciberTranslationSide side, uint32_t count,
                                                     const uint32_t* ids, MulciberResult** result,
                                                     const char** text);

/* ---- In slices ---- */

/* text: NULL where there are MulciberTranslateInfo::source_ids. info: may be NULL. */
MULCIBER_API MulciberStatus mulciber_begin_translation(MulciberContext* context,
                                                       MulciberTranslator* translator,
                                                       const char* text,
                                                       const MulciberTranslateInfo* info,
                                                       MulciberTask** task);

typedef struct MulciberBeam {
  uint32_t size;
  MulciberBool finished; /* it has ended */
  const char* text;
  float score;
  uint32_t id_count;
  const uint32_t* ids;
} MulciberBeam;

/* Gives all hypotheses of a translation: the finished ones, then the others, both best first. The
 * list is stepped through by MulciberBeam::size. */
MULCIBER_API MulciberStatus mulciber_beams(MulciberContext* context, MulciberTask* task,
                                           uint32_t* count, const MulciberBeam** beams);

#ifdef __cplusplus
}
#endif

#endif
