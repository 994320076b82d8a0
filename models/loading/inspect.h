// Reports on a checkpoint, as JSON and as text.
#pragma once

#include <string>

#include "models/families/open_model.h"

namespace mulciber {

/// Name of a checkpoint's format, for people.
std::string format_of(const Checkpoint& checkpoint);

/// Reads and checks a model folder or a .safetensors file, of known architecture or not, and
/// describes it:
///   path, format, files
///   architecture: {model_type, class} absent without config.json (GGUF: general.architecture)
///   capabilities: [name] capabilities of the family; absent when unknown hyperparameters:
///   config.json absent without it (GGUF: the metadata)
///   generation: generation_config.json     absent when there is none
///   tensors: [{name, type, shape, bytes}], sorted by name
///   totals: {tensors, parameters, bytes, types: {type: tensors}}
///   tokenizer: {kind, vocab_size, special: {role: {id, piece}}}   absent when there is none
///   notes: [text], oddities that are not errors
/// Throws ModelError for what Checkpoint, the tokenizer or the architecture's configuration refuse,
/// and for attention heads that do not divide the model's width.
Json inspect(const OpenModel& model);

/// The report as text, a line per fact; with a line per tensor when `all_tensors`.
std::string inspection_text(const Json& report, bool all_tensors = true);

}  // namespace mulciber
