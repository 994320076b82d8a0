/* What the C blocks of docs/guide/embedding.md take from the reader's engine, as prelude.h does for
 * those in C++. */
#ifndef GUIDE_PRELUDE_C_H
#define GUIDE_PRELUDE_C_H

#include <mulciber/mulciber_c.h>
#include <stddef.h>
#include <vulkan/vulkan.h>

extern MulciberContext* context;
extern MulciberPhysicalDevice physical;
extern MulciberModel* model;
extern VkPhysicalDeviceFeatures2 features;

#endif
