/* Mulciber for C: models on the application's Vulkan device, in slices that fit its frames. The
 * rules are those of mulciber/embedding.h, which docs/guide/embedding.md explains. C11.
 *
 * Every function that can fail returns a MulciberStatus; mulciber_message() then says what failed,
 * where, and what to do about it. Where NULL is not said to have a meaning, a pointer or Vulkan
 * handle that is NULL is an error, as is a number that is no enumerator. No exception leaves a
 * function. Every structure begins with its size, so that programs and libraries of different
 * versions work together: set it to sizeof, also in structures that a function fills, and fields
 * without a value to 0. The caller destroys each object once, in any order, and the VkDevice after
 * all of them; destroying NULL does nothing. Texts are UTF-8. One thread at a time may use an
 * object; a context belongs to one thread. */
#ifndef MULCIBER_MULCIBER_C_H
#define MULCIBER_MULCIBER_C_H

#include "mulciber/c/application_device.h"
#include "mulciber/c/attention_task.h"
#include "mulciber/c/image_task.h"
#include "mulciber/c/requirements.h"
#include "mulciber/c/resources.h"
#include "mulciber/c/slices.h"
#include "mulciber/c/standalone.h"
#include "mulciber/c/vector.h"

#endif
