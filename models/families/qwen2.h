// Shared parts of Qwen 2 and later families.
#pragma once

#include "models/families/families.h"

namespace mulciber {

DecoderConfig read_qwen2(const ConfigReader& config);
constexpr const char* kQwenEndPieces[] = {"<|im_end|>", "<|endoftext|>"};

}  // namespace mulciber
