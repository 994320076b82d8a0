// The hyperbolic tangent, in a file of its own: unused functions of a module stay in its SPIR-V.
#ifndef MULCIBER_TANH_GLSL
#define MULCIBER_TANH_GLSL

// GLSL's tanh may overflow to NaN on some drivers, and cancels near 0. This is x P(x^2) / Q(x^2) by
// a minimax fit of the relative error over |x| <= 9.1 (2.3e-8; with f32 arithmetic 4e-7, near 0
// too). Beyond 9 the result is 1 in f32. It uses comparisons, not clamps: NaN stays NaN, and
// overflowed values of P and Q are not used.
float safe_tanh(float x) {
  float s = x * x;
  float p = 1.0 + s * (0.133744746 + s * (0.00348781073 + s * (2.04811822e-5 + s * 1.31775177e-8)));
  float q = 1.0 + s * (0.467077881 + s * (0.0258473866 + s * (0.000327291957 + s * 7.7040437e-7)));
  return abs(x) > 9.0 ? (x < 0.0 ? -1.0 : 1.0) : x * p / q;
}

#endif
