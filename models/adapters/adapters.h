// Adapters by name: those that a model is loaded with, and those that a request wants.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/core/model_options.h"
#include "models/networks/decoder_network.h"

namespace mulciber {

/// Opens their files, and gives names to those that have none. Throws ModelError as LowRankAdapter,
/// SettingError for a name that stands twice and a scale that is no number.
std::vector<OpenAdapter> open_adapters(std::span<const AdapterFile> files);

/// What translators, text generators and encoders share, with adapters opened and to be merged.
/// Throws as open_adapters().
ModelOptions model_options(const LoadOptions& options);

/// A scale for each of the network's adapters, 0 for those that a request does not name; empty
/// where it names none at all (each has its own then) or the network has no adapters. Throws
/// SettingError as GenerateOptions::adapters says.
std::vector<float> chosen_adapters(const DecoderNetwork& network,
                                   const std::optional<std::vector<AdapterScale>>& wanted);

std::vector<std::string> adapter_names(const DecoderNetwork& network);

/// A model's sequence_fingerprint() (models/generation/saved_sequence.h) with adapters: hashed from
/// names, shapes and some bytes of their tensors, and with `merged` from their scales.
uint64_t fingerprint_with(uint64_t fingerprint, std::span<const OpenAdapter> adapters, bool merged);
/// The same with scales as they stand in control.
uint64_t fingerprint_with(uint64_t fingerprint, std::span<const uint32_t> scales);

}  // namespace mulciber
