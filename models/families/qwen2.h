// What Qwen 2 hands down to the families after it.
#pragma once

#include "models/families/families.h"

namespace mulciber {

DecoderConfig read_qwen2(const ConfigReader& config);
constexpr const char* kQwenEndPieces[] = {"<|im_end|>", "<|endoftext|>"};

}  // namespace mulciber
