// Numbers of 16 bits on the host.
#pragma once

#include <cstdint>

namespace mulciber {

/// Half precision, nearest even; values out of range become infinite.
uint16_t float_to_half(float value);
float half_to_float(uint16_t bits);

/// The upper half of an f32, nearest even.
uint16_t float_to_bf16(float value);
float bf16_to_float(uint16_t bits);

}  // namespace mulciber
