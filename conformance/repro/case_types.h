/* Types of case.h, and definitions for every part of the program. */
#pragma once

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vulkan/vulkan.h>

#include "recent_vulkan.h"

enum type { F32, F16, U32, Q8_0, Q8_1 };
/* Features, as bits: those that the shaders need, and those that were enabled when the case
 * occurred. */
enum {
  STORAGE_16 = 1,
  STORAGE_8 = 2,
  FLOAT_16 = 4,
  BUFFER_ADDRESS = 8,
  SUBGROUP_SIZE_CONTROL = 16,
  COOPERATIVE_MATRIX = 32,
  INTEGER_DOT = 64,
  FLEXIBLE_MATRICES = 128,
  WORKGROUP_MATRICES = 256,
  BF16_MATRICES = 512,
  INTEGER_MATRICES = 1024,
  TEXEL_LOADS = 2048
};

struct constant { /* specialization constant */
  uint32_t id, value;
};
struct range { /* part of the one buffer */
  uint64_t offset, bytes;
};
struct node { /* one dispatch */
  const char* shader;
  const char* name;
  const struct constant* constants;
  uint32_t constant_count;
  const struct range*
      buffers; /* bindings 0, 1, ... of set 0, or addresses ahead of the push constants */
  uint32_t buffer_count;
  uint32_t texels; /* bits: bindings that are texel buffers of uvec4, also with addresses */
  const uint32_t* push;
  uint32_t push_words;
  bool by_address;
  bool full_subgroups; /* with SUBGROUP_SIZE required */
  bool barrier;        /* before it: it reads what an earlier node wrote, or writes what one used */
  uint32_t groups[3];
};
struct input {
  const char* file;
  struct range where;
};
struct output {
  const char* expected; /* doubles */
  const char* bounds;   /* doubles: error bound of each element, infinite: any; null: exact */
  enum type type;
  uint64_t offset, rows, columns;
  double usual_row_error; /* root mean square of a row's errors over that of its values; 0: none is
                             expected */
};
#include "case.h"

enum { RIGHT = 0, WRONG = 1, NOT_RUN = 2 }; /* exit codes */
#define COUNT(ARRAY) (sizeof(ARRAY) / sizeof((ARRAY)[0]))
#define WAIT_SECONDS 60
#define MAX_PUSH 256
#define TEXEL_BYTES 16
#define POISON 0xffdeffdeu /* NaN as f32 and as f16 */

static void give_up(const char* what, const char* detail) {
  fprintf(stderr, "repro: %s%s%s\n", what, detail[0] ? ": " : "", detail);
  exit(NOT_RUN);
}

static bool is_texels(const struct node* node, uint32_t binding) {
  return node->texels >> binding & 1;
}
/* Whether a binding is a descriptor. */
static bool is_bound(const struct node* node, uint32_t binding) {
  return !node->by_address || is_texels(node, binding);
}
static bool has_set(const struct node* node) { return !node->by_address || node->texels != 0; }

static void check(VkResult result, const char* call) {
  if (result == VK_SUCCESS) return;
  fprintf(stderr, "repro: %s gave %d\n", call, (int)result);
  /* A case may be about a lost device. */
  exit(result == VK_ERROR_DEVICE_LOST ? WRONG : NOT_RUN);
}

static void* read_file(const char* name, size_t* bytes) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", FOLDER, name);
  FILE* file = fopen(path, "rb");
  if (!file) give_up("cannot open", path);
  fseek(file, 0, SEEK_END);
  *bytes = (size_t)ftell(file);
  rewind(file);
  void* data = malloc(*bytes + 1);
  if (!data || fread(data, 1, *bytes, file) != *bytes) give_up("cannot read", path);
  fclose(file);
  return data;
}
