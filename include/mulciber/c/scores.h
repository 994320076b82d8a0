/* Mulciber for C: log probabilities of given texts, and hidden states. C11. */
#ifndef MULCIBER_C_SCORES_H
#define MULCIBER_C_SCORES_H

#include "mulciber/c/generator.h"
#include "mulciber/c/result.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A text to score, or the continuation of a context; mulciber/text_scores.h explains both. */
typedef struct MulciberScoreInput {
  uint32_t size;
  uint32_t id_count;
  const char* context; /* precedes the text and is not scored; NULL: none */
  const char* text;    /* NULL where there are ids */
  const uint32_t* ids; /* a text's token ids instead of both, its first special tokens included */
} MulciberScoreInput;

typedef struct MulciberScoreInfo {
  uint32_t size;
  MulciberBool no_special;    /* leave out the model's first special tokens */
  MulciberBool parse_special; /* read special tokens that are spelled out in a text */
  uint32_t likeliest;         /* number of most probable tokens given for each token */
  MulciberBool ranks;         /* also compute ranks */
  MulciberBool no_adapters;   /* as in MulciberGenerateInfo */
  const MulciberAdapter* adapters;
  uint32_t adapter_count;
  MulciberCancel* cancel; /* ends the call with the texts that are complete; NULL: none */
  void (*on_progress)(void* user, uint32_t done, uint32_t total); /* texts; may be NULL */
  void* user;
} MulciberScoreInfo;

typedef struct MulciberTextScore {
  uint32_t size;
  MulciberBool complete; /* 0: cancelled before this text was done; it has no ids then */
  uint32_t id_count;
  uint32_t token_count;            /* scored tokens: the last of ids; a first id has no score */
  const uint32_t* ids;             /* ids of context and text */
  const double* log_probabilities; /* natural logarithms, given all previous tokens */
  const uint32_t* ranks; /* numbers of more probable ids; NULL without MulciberScoreInfo::ranks */
  uint32_t likeliest;
  const uint32_t* likeliest_ids;            /* (token_count, likeliest), most probable first */
  const float* likeliest_log_probabilities; /* (token_count, likeliest) */
  double sum;                               /* sum of log_probabilities */
  double mean;
} MulciberTextScore;

typedef struct MulciberScoreStatistics {
  uint32_t size;
  uint64_t read_tokens;
  uint64_t reused_tokens; /* reused from the prefix of the previous text */
  uint64_t scored_tokens;
  double build_seconds; /* building and recording programs */
  double total_seconds;
} MulciberScoreStatistics;

/* Scores `count` texts, which all have the size of the first. The conversation's cache is
 * unchanged. The list of scores is stepped through by their size. info, statistics: may be NULL. */
MULCIBER_API MulciberStatus mulciber_score(MulciberContext* context, MulciberGenerator* generator,
                                           uint32_t count, const MulciberScoreInput* inputs,
                                           const MulciberScoreInfo* info, MulciberResult** result,
                                           const MulciberTextScore** scores,
                                           MulciberScoreStatistics* statistics);

/* ---- Hidden states ---- */

typedef struct MulciberHiddenStates {
  uint32_t size;
  uint32_t layer_count;
  uint32_t id_count;
  uint32_t width;
  const uint32_t* ids;
  const float* values; /* (layer_count, id_count, width) row-major */
} MulciberHiddenStates;

/* Gives the hidden states of a text's tokens. layers: 0 is the embedding, i the output of layer i
 * (from 1), and the last, MulciberGeneratorReport::layers, is normalized. info: no_special,
 * parse_special and adapters are read; may be NULL. */
MULCIBER_API MulciberStatus mulciber_hidden_states(MulciberContext* context,
                                                   MulciberGenerator* generator, const char* text,
                                                   uint32_t layer_count, const uint32_t* layers,
                                                   const MulciberScoreInfo* info,
                                                   MulciberResult** result,
                                                   const MulciberHiddenStates** states);

#ifdef __cplusplus
}
#endif

#endif
