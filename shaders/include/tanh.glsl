// The hyperbolic tangent, by itself: a function that a module does not call stays in its SPIR-V.
#ifndef MULCIBER_TANH_GLSL
#define MULCIBER_TANH_GLSL

// GLSL's tanh may overflow to NaN on some drivers; this form cannot. Near zero, where it would cancel, the
// Taylor series takes over; its first term left out is below 1e-8 of the result there.
float safe_tanh(float x) {
  float t = min(abs(x), 20.0), s = t * t;
  if (t < 0.25) return x * (1.0 + s * (-0.33333333 + s * (0.13333333 + s * (-0.053968254 + s * 0.021869489))));
  float e = exp(-2.0 * t);
  float result = (1.0 - e) / (1.0 + e);
  return x < 0.0 ? -result : result;
}

#endif
