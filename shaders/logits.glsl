// Logits in the kernels that choose tokens.
#ifndef MULCIBER_LOGITS_GLSL
#define MULCIBER_LOGITS_GLSL

#define NEVER uintBitsToFloat(0xff800000u)  // log of 0
#define NO_ID 0xffffffffu
#define LARGEST 3.4028234663852886e38
// A number that makes a sum of exponentials (at most 1 each) negative whatever else is in it: by it
// an invocation tells the others of an invalid logit.
#define LOST 1e30

// NaN and infinity are invalid: no token can be chosen among such logits. -infinity is valid, the
// logit of an impossible id. The tests use bits because drivers may assume that there are no NaN.
bool not_a_logit(float value) {
  uint bits = floatBitsToUint(value);
  return (bits & 0x7fffffffu) >= 0x7f800000u && bits != 0xff800000u;
}

// NaN counts as impossible, infinity as the largest finite number, so that no difference is
// undefined.
float sanitized(float value) {
  bool nan = (floatBitsToUint(value) & 0x7fffffffu) > 0x7f800000u;
  return nan ? NEVER : min(value, LARGEST);
}

#endif
