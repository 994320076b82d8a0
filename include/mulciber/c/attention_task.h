/* Mulciber for C: attention maps of translations and completions, in slices. C11. */
#ifndef MULCIBER_C_ATTENTION_TASK_H
#define MULCIBER_C_ATTENTION_TASK_H

#include "mulciber/c/resources.h"
#include "mulciber/c/slices.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum MulciberAttentionKind {
  MULCIBER_ATTENTION_ENCODER = 0,
  MULCIBER_ATTENTION_DECODER = 1,
  MULCIBER_ATTENTION_CROSS = 2,
  MULCIBER_ATTENTION_MAX = 0x7fffffff
} MulciberAttentionKind;

typedef struct MulciberAttentionMap {
  uint32_t size;
  MulciberAttentionKind kind;
  uint32_t layer, head;
} MulciberAttentionMap;

/* The model that made a text, and the rooms of a task: tokens of the longest source and text that
 * it is restarted with; 0: as many as the first has. source_room: for translations only. */
typedef struct MulciberAttentionInfo {
  uint32_t size;
  uint32_t source_room, room;
  MulciberTranslator* translator; /* NULL for a generator's text */
  MulciberGenerator* generator;   /* NULL for a translation */
} MulciberAttentionInfo;

/* text: a translation or an answer, finished or running, which may be destroyed afterwards. The
 * maps exist from the end of the new task's last slice until it is destroyed. */
MULCIBER_API MulciberStatus mulciber_begin_attention_maps(MulciberContext* context,
                                                          MulciberTask* text,
                                                          const MulciberAttentionInfo* info,
                                                          MulciberTask** task);

/* Starts the task again for another text of that model, for instance the same one some tokens
 * later. The task must be done; neither allocates device memory nor compiles. */
MULCIBER_API MulciberStatus mulciber_restart_attention(MulciberContext* context, MulciberTask* task,
                                                       MulciberTask* text);

/* Layers and heads of a kind of map; 0: the model has no such maps, the kind is none, or the task
 * is not an attention task. */
MULCIBER_API uint32_t mulciber_attention_layers(const MulciberTask* task,
                                                MulciberAttentionKind kind);
MULCIBER_API uint32_t mulciber_attention_heads(const MulciberTask* task,
                                               MulciberAttentionKind kind);

/* Extent of a map: the width counts keys, the height queries. */
MULCIBER_API MulciberStatus mulciber_attention_extent(MulciberContext* context, MulciberTask* task,
                                                      MulciberAttentionKind kind,
                                                      VkExtent2D* extent);

/* Records a copy of a map, a texel for each probability, query 0 in the first row: after the task's
 * last slice, outside of render passes. */
MULCIBER_API MulciberStatus mulciber_record_attention_image(MulciberContext* context,
                                                            MulciberTask* task,
                                                            VkCommandBuffer commands,
                                                            const MulciberApplicationImage* image,
                                                            const MulciberAttentionMap* map);

/* Records a copy of a map: floats, row after row. */
MULCIBER_API MulciberStatus mulciber_record_attention_buffer(
    MulciberContext* context, MulciberTask* task, VkCommandBuffer commands,
    const MulciberApplicationBuffer* buffer, const MulciberAttentionMap* map);

/* ---- Deprecated names of version 0.1 ---- */

MULCIBER_DEPRECATED("use mulciber_begin_attention_maps")
MULCIBER_API MulciberStatus mulciber_begin_attention(MulciberContext* context,
                                                     MulciberTranslator* translator,
                                                     MulciberTask* translation,
                                                     MulciberTask** task);

MULCIBER_DEPRECATED("use mulciber_begin_attention_maps")
MULCIBER_API MulciberStatus mulciber_begin_attention_of(MulciberContext* context,
                                                        MulciberTranslator* translator,
                                                        MulciberGenerator* generator,
                                                        MulciberTask* text, uint32_t source_room,
                                                        uint32_t room, MulciberTask** task);

#ifdef __cplusplus
}
#endif

#endif
