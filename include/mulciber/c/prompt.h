/* Mulciber for C: prompts of conversations, tokens, and images for prompts. C11. */
#ifndef MULCIBER_C_PROMPT_H
#define MULCIBER_C_PROMPT_H

#include "mulciber/c/generator.h"
#include "mulciber/c/image.h"
#include "mulciber/c/result.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A message of a conversation. Invalid UTF-8 is read as U+FFFD. */
typedef struct MulciberChatMessage {
  uint32_t size;
  uint32_t images;  /* number of images before the content, see MulciberGenerateInfo::images */
  const char* role; /* "system", "user", "assistant" or "tool" */
  const char* content;
} MulciberChatMessage;

/* Gives the prompt for the next completion in a conversation, by the model's chat template; NULL if
 * the files have none (a base model). It contains all special tokens: set
 * MulciberGenerateInfo::no_special. messages: all have the size of the first. Fails with
 * MULCIBER_ERROR_MODEL where the template rejects them. */
MULCIBER_API MulciberStatus mulciber_chat_prompt(MulciberContext* context,
                                                 const MulciberGenerator* generator, uint32_t count,
                                                 const MulciberChatMessage* messages,
                                                 MulciberResult** result, const char** prompt);

/* ---- Tokens ---- */

/* Gives the tokens of a prompt. info: no_special, literal_special and images are read; may be NULL.
 */
MULCIBER_API MulciberStatus mulciber_tokenize(MulciberContext* context,
                                              const MulciberGenerator* generator,
                                              const char* prompt, const MulciberGenerateInfo* info,
                                              MulciberResult** result, uint32_t* count,
                                              const uint32_t** ids);

/* Gives the text of tokens, without special ones. */
MULCIBER_API MulciberStatus mulciber_detokenize(MulciberContext* context,
                                                const MulciberGenerator* generator, uint32_t count,
                                                const uint32_t* ids, MulciberResult** result,
                                                const char** text);

/* Gives the readable text of a token, special ones too; U+2581 for a space that begins a word. */
MULCIBER_API MulciberStatus mulciber_token_text(MulciberContext* context,
                                                const MulciberGenerator* generator, uint32_t id,
                                                MulciberResult** result, const char** text);

/* ---- Images ---- */

/* Prepares an image in memory for prompts of a vision-language model, any number of them. It does
 * not depend on the model afterwards. */
MULCIBER_API MulciberStatus mulciber_prepare_image(MulciberContext* context,
                                                   const MulciberModel* model,
                                                   const MulciberImage* image,
                                                   MulciberPreparedImage** prepared);
MULCIBER_API void mulciber_destroy_prepared_image(MulciberPreparedImage* image);

/* Tokens that the image's embeddings take in a prompt. */
MULCIBER_API uint32_t mulciber_image_tokens(const MulciberPreparedImage* image);

/* Gives the placeholder of an image in a prompt ("<image>"); "" if the model takes no images. */
MULCIBER_API MulciberStatus mulciber_image_placeholder(MulciberContext* context,
                                                       const MulciberModel* model,
                                                       MulciberResult** result,
                                                       const char** placeholder);

#ifdef __cplusplus
}
#endif

#endif
