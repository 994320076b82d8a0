/* Mulciber for C: extractive question answering. Answers are spans of a passage. C11. */
#ifndef MULCIBER_C_PASSAGE_READER_H
#define MULCIBER_C_PASSAGE_READER_H

#include "mulciber/c/cancel.h"
#include "mulciber/c/encoder_statistics.h"
#include "mulciber/c/model.h"
#include "mulciber/c/result.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct MulciberPassageReader MulciberPassageReader; /* a model that finds answers */

/* Fails for a model without a question answering head. info: may be NULL. The model may be
 * destroyed afterwards. */
MULCIBER_API MulciberStatus mulciber_load_passage_reader(MulciberContext* context,
                                                         MulciberDevice* device,
                                                         const MulciberModel* model,
                                                         const MulciberLoadInfo* info,
                                                         MulciberPassageReader** reader);
MULCIBER_API void mulciber_destroy_passage_reader(MulciberPassageReader* reader);

typedef struct MulciberAnswerInfo {
  uint32_t size;
  uint32_t best;                   /* most answers; 0: 1 */
  uint32_t longest_tokens;         /* most tokens of an answer; 0: 30 */
  MulciberBool set_overlap_tokens; /* use overlap_tokens; otherwise 128 */
  /* Tokens that neighbouring windows share, where the passage is longer than the model takes; at
   * most half of a window. */
  uint32_t overlap_tokens;
  MulciberBool may_be_none; /* allow the answer that the passage does not contain one */
  uint32_t batch_tokens;    /* most tokens of a batch, padding included; 0: 2048 */
  uint32_t batch_texts;     /* most windows of a batch; 0: 64 */
  /* Called after every batch with the numbers of finished and of all windows; may be NULL. */
  void (*on_progress)(void* user, uint64_t done, uint64_t total);
  void* user;
  MulciberCancel* cancel; /* a call that is cancelled gives no answer; NULL: none */
} MulciberAnswerInfo;

typedef struct MulciberPassageAnswer {
  uint32_t size;
  float score;         /* probability of the answer's start times that of its end, in its window */
  const char* text;    /* whole words of the passage; "": the passage has no answer */
  uint64_t begin, end; /* byte range in the passage */
} MulciberPassageAnswer;

/* Gives answers, best first; none when the passage has no words. The list is stepped through by
 * MulciberPassageAnswer::size. info: may be NULL. */
MULCIBER_API MulciberStatus mulciber_answer_question(MulciberContext* context,
                                                     MulciberPassageReader* reader,
                                                     const char* question, const char* passage,
                                                     const MulciberAnswerInfo* info,
                                                     MulciberResult** result, uint32_t* count,
                                                     const MulciberPassageAnswer** answers);

MULCIBER_API MulciberStatus
mulciber_passage_reader_statistics(MulciberContext* context, const MulciberPassageReader* reader,
                                   MulciberEncoderStatistics* statistics);

/* See mulciber_trim_text_encoder(). */
MULCIBER_API MulciberStatus mulciber_trim_passage_reader(MulciberContext* context,
                                                         MulciberPassageReader* reader,
                                                         uint64_t* bytes);

#ifdef __cplusplus
}
#endif

#endif
