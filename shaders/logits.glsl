// Logits as the kernels that choose tokens take them.
#ifndef MULCIBER_LOGITS_GLSL
#define MULCIBER_LOGITS_GLSL

#define NEVER uintBitsToFloat(0xff800000u)  // log of 0
#define NO_ID 0xffffffffu
#define LARGEST 3.4028234663852886e38
// Taken off a sum of exponentials, which are at most 1 each, it makes it negative whatever else is
// in it: how an invocation tells the others of what is no logit.
#define LOST 1e30

// What no model means: a choice among such logits is none. -infinity is a logit, that of an
// impossible id. The tests are on bits because drivers may assume that there are no NaN.
bool not_a_logit(float value) {
  uint bits = floatBitsToUint(value);
  return (bits & 0x7fffffffu) >= 0x7f800000u && bits != 0xff800000u;
}

// NaN counts as impossible, infinity as the largest finite number: then no difference is undefined.
float sanitized(float value) {
  bool nan = (floatBitsToUint(value) & 0x7fffffffu) > 0x7f800000u;
  return nan ? NEVER : min(value, LARGEST);
}

#endif
