// Activation functions, by the values of mulciber::Activation (ops/matmul.h).
#ifndef MULCIBER_ACTIVATION_GLSL
#define MULCIBER_ACTIVATION_GLSL

#include "tanh.glsl"

const uint ACTIVATION_NONE = 0;
const uint ACTIVATION_RELU = 1;
const uint ACTIVATION_GELU = 2;
const uint ACTIVATION_GELU_TANH = 3;
const uint ACTIVATION_SILU = 4;
const uint ACTIVATION_TANH = 5;
const uint ACTIVATION_QUICK_GELU = 6;

// The error function: erf(t)/t as a polynomial in t^2 below 1, log(1 - erf(t)) as a polynomial in t
// above. Both are Chebyshev fits; with f32 arithmetic the largest error over all arguments
// is 1.4e-7.
float error_function(float x) {
  float t = min(abs(x), 4.0);  // erf(4) rounds to 1 in f32
  float result;
  if (t < 1.0) {
    float s = t * t;
    float p = 7.87587506e-5;
    p = p * s - 8.01686429e-4;
    p = p * s + 5.18908742e-3;
    p = p * s - 2.68542120e-2;
    p = p * s + 1.12835947e-1;
    p = p * s - 3.76126267e-1;
    p = p * s + 1.12837917;
    result = p * t;
  } else {
    float p = -1.32723618e-5;
    p = p * t + 3.16937022e-4;
    p = p * t - 3.43235138e-3;
    p = p * t + 2.26047722e-2;
    p = p * t - 1.03281118e-1;
    p = p * t - 6.39141258e-1;
    p = p * t - 1.12589365;
    p = p * t - 7.65897790e-4;
    result = 1.0 - exp(p);
  }
  return x < 0.0 ? -result : result;
}

float activate(float x, uint function) {
  switch (function) {
    case ACTIVATION_RELU: return max(x, 0.0);
    case ACTIVATION_GELU: return 0.5 * x * (1.0 + error_function(x * 0.70710678));
    case ACTIVATION_GELU_TANH:
      return 0.5 * x * (1.0 + safe_tanh(0.79788456 * (x + 0.044715 * x * x * x)));
    case ACTIVATION_SILU: return x / (1.0 + exp(min(-x, 80.0)));  // exp(80) is finite
    case ACTIVATION_TANH: return safe_tanh(x);
    case ACTIVATION_QUICK_GELU: return x / (1.0 + exp(min(-1.702 * x, 80.0)));
    default: return x;
  }
}

#endif
