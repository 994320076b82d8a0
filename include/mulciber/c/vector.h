/* Mulciber for C: embeddings and hidden states of texts and images. C11. */
#ifndef MULCIBER_C_VECTOR_H
#define MULCIBER_C_VECTOR_H

#include "mulciber/c/resources.h"
#include "mulciber/c/slices.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Record a copy of the embedding, or of the hidden states, after the last slice: for a text's task
 * mulciber_vector_width() floats, or as many for each token; for an image's task the sizes that
 * mulciber_describe_image() gives. */
MULCIBER_API MulciberStatus mulciber_record_vector(MulciberContext* context, MulciberTask* task,
                                                   VkCommandBuffer commands,
                                                   const MulciberApplicationBuffer* buffer);
MULCIBER_API MulciberStatus mulciber_record_states(MulciberContext* context, MulciberTask* task,
                                                   VkCommandBuffer commands,
                                                   const MulciberApplicationBuffer* buffer);

/* Writes the floats of the embedding. The task must be done, and not cancelled. */
MULCIBER_API MulciberStatus mulciber_vector(MulciberContext* context, MulciberTask* task,
                                            float* vector);

#ifdef __cplusplus
}
#endif

#endif
