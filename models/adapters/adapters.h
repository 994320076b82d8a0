// Adapters that a model is loaded with, and adapters that a request selects by name.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/core/model_options.h"
#include "models/networks/decoder_network.h"

namespace mulciber {

/// Opens adapters, and names those without a name after their files. Throws ModelError as
/// LowRankAdapter, and SettingError for duplicate names and scales that are NaN or infinite.
std::vector<OpenAdapter> open_adapters(std::span<const AdapterFile> files);

/// Converts the options that all models share; adapters are opened, and will be merged. Throws as
/// open_adapters().
ModelOptions model_options(const LoadOptions& options);

/// A scale for each of the network's adapters, 0 for those that the request does not name. Empty if
/// the request selects none (default scales apply) or the network has no adapters. Throws
/// SettingError, see GenerateOptions::adapters.
std::vector<float> chosen_adapters(const DecoderNetwork& network,
                                   const std::optional<std::vector<AdapterScale>>& wanted);

std::vector<std::string> adapter_names(const DecoderNetwork& network);

/// Extends a model's sequence_fingerprint() (models/generation/saved_sequence.h) by its adapters:
/// by names and factors of the weights that they change, the first bytes of their tensors, and if
/// `merged` their scales.
uint64_t fingerprint_with(uint64_t fingerprint, std::span<const OpenAdapter> adapters, bool merged);
/// Extends a fingerprint by the adapter scales in control.
uint64_t fingerprint_with(uint64_t fingerprint, std::span<const uint32_t> scales);

}  // namespace mulciber
