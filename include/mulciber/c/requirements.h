/* Mulciber for C: what the application enables before it creates its device. C11. */
#ifndef MULCIBER_C_REQUIREMENTS_H
#define MULCIBER_C_REQUIREMENTS_H

#include "mulciber/c/application_device.h"
#include "mulciber/c/model.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum MulciberRequirementKind {
  MULCIBER_REQUIREMENT_EXTENSION = 0,
  MULCIBER_REQUIREMENT_FEATURE = 1,
  MULCIBER_REQUIREMENT_QUEUE = 2,
  MULCIBER_REQUIREMENT_LIMIT = 3,
  MULCIBER_REQUIREMENT_MEMORY = 4,
  MULCIBER_REQUIREMENT_MAX = 0x7fffffff
} MulciberRequirementKind;

/* Lists are stepped through by the size of their elements. */
typedef struct MulciberRequirement {
  uint32_t size;
  MulciberRequirementKind kind;
  const char* name;
  VkBool32 required, available;
  const char* brings; /* what it is for */
} MulciberRequirement;

typedef struct MulciberRequirements {
  uint32_t size;
  uint32_t requirement_count;
  const MulciberRequirement* requirements;
  uint32_t extension_count;                  /* available extensions, to be enabled */
  const char* const* extensions;             /* for ppEnabledExtensionNames */
  const VkPhysicalDeviceFeatures2* features; /* for pNext of VkDeviceCreateInfo */
  uint32_t queue_family;                     /* the first family that supports compute */
  VkBool32 fits;                             /* the device fits, and the model if given */
  const char* obstacles;                     /* reasons, one a line; "" if it fits */
  uint64_t weight_bytes, context_bytes;      /* device memory of the model */
} MulciberRequirements;

/* model: may be NULL. info: how it will be loaded; may be NULL. The returned pointers are valid
 * until the next call with this context that is not mulciber_enable_features(). */
MULCIBER_API MulciberStatus mulciber_query_requirements(
    MulciberContext* context, const MulciberPhysicalDevice* physical_device,
    const MulciberModel* model, const MulciberLoadInfo* info, MulciberRequirements* requirements);

/* A feature that a chain has no structure for. */
typedef struct MulciberUnplacedFeature {
  uint32_t size;
  uint32_t structure_count;
  const char* name;              /* "shaderFloat16" */
  const char* const* structures; /* names of those that can hold it, each of which suffices */
} MulciberUnplacedFeature;

/* Sets the features of `requirements` in the application's chain for vkCreateDevice, in structures
 * of single features and in those of Vulkan 1.1, 1.2 and 1.3; features that are set already stay.
 * Gives those for which the chain has no structure, in a list that is stepped through by the size
 * of its elements and valid until the next call with this context. */
MULCIBER_API MulciberStatus mulciber_enable_features(MulciberContext* context,
                                                     const MulciberRequirements* requirements,
                                                     VkPhysicalDeviceFeatures2* features,
                                                     uint32_t* unplaced_count,
                                                     const MulciberUnplacedFeature** unplaced);

/* ---- Deprecated names of version 0.1 ---- */

MULCIBER_DEPRECATED("use mulciber_query_requirements")
MULCIBER_API MulciberStatus mulciber_requirements(MulciberContext* context,
                                                  const MulciberPhysicalDevice* physical_device,
                                                  const MulciberModel* model,
                                                  MulciberRequirements* requirements);

MULCIBER_DEPRECATED("use mulciber_query_requirements")
MULCIBER_API MulciberStatus mulciber_requirements_with(
    MulciberContext* context, const MulciberPhysicalDevice* physical_device,
    const MulciberModel* model, const MulciberLoadInfo* info, MulciberRequirements* requirements);

#ifdef __cplusplus
}
#endif

#endif
