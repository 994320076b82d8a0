// Logits as the kernels that choose tokens take them.
#ifndef MULCIBER_LOGITS_GLSL
#define MULCIBER_LOGITS_GLSL

#define NEVER uintBitsToFloat(0xff800000u)  // log of 0
#define NO_ID 0xffffffffu

// NaN counts as impossible, infinity as the largest finite number: then no difference is undefined.
// The test is on bits because drivers may assume that there are no NaN.
float sanitized(float value) {
  bool nan = (floatBitsToUint(value) & 0x7fffffffu) > 0x7f800000u;
  return nan ? NEVER : min(value, 3.4028234663852886e38);
}

#endif
