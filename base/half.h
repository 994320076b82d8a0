// Conversions of 16-bit numbers on the CPU.
#pragma once

#include <cstdint>

namespace mulciber {

/// Converts to half precision, nearest even; values out of range become infinite.
uint16_t float_to_half(float value);
float half_to_float(uint16_t bits);

/// Converts to the upper half of an f32, nearest even.
uint16_t float_to_bf16(float value);
float bf16_to_float(uint16_t bits);

}  // namespace mulciber
