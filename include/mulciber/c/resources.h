/* Mulciber for C: images and buffers of the application. C11. */
#ifndef MULCIBER_C_RESOURCES_H
#define MULCIBER_C_RESOURCES_H

#include <vulkan/vulkan_core.h>

#include "mulciber/c/context.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An image made with VK_IMAGE_USAGE_TRANSFER_DST_BIT. The copy includes layout transitions and
 * barriers. */
typedef struct MulciberApplicationImage {
  uint32_t size;
  VkImage image;
  VkFormat format;   /* VK_FORMAT_R32_SFLOAT */
  VkExtent2D extent; /* in texels, of the mip level */
  uint32_t mip_level, array_layer;
  VkOffset2D offset;          /* texel of the first value */
  VkImageLayout layout;       /* the layout before the copy */
  VkImageLayout final_layout; /* 0: VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL */
  /* Stages and accesses of its uses before and after the copy; stages 0: fragment shader reads.
   * */
  VkPipelineStageFlags stages;
  VkAccessFlags accesses;
  /* The image is exclusive, and queue_family, another family than MulciberDeviceInfo's, owns it:
   * the copy records its half of the ownership transfers, the application the other. */
  VkBool32 changes_family;
  uint32_t queue_family;
} MulciberApplicationImage;

/* A buffer made with VK_BUFFER_USAGE_TRANSFER_DST_BIT. */
struct MulciberApplicationBuffer {
  uint32_t size;
  VkBuffer buffer;
  VkDeviceSize offset, bytes;  /* offset: a multiple of 4 */
  VkPipelineStageFlags stages; /* see MulciberApplicationImage */
  VkAccessFlags accesses;
  VkBool32 changes_family;
  uint32_t queue_family;
};

/* ---- Deprecated names of version 0.1 ---- */

typedef MulciberApplicationImage MulciberHostImage
    MULCIBER_DEPRECATED("use MulciberApplicationImage");
typedef MulciberApplicationBuffer MulciberHostBuffer
    MULCIBER_DEPRECATED("use MulciberApplicationBuffer");

#ifdef __cplusplus
}
#endif

#endif
