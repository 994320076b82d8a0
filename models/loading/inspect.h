// What a checkpoint holds, told to people and to programs.
#pragma once

#include <string>

#include "models/families/open_model.h"

namespace mulciber {

/// Reads and checks a model folder or a .safetensors file, of known architecture or not, and
/// describes it:
///   path, format, files
///   architecture: {model_type, class}      absent without config.json (GGUF: general.architecture)
///   capabilities: [name]                   what models of this family do; absent when unknown
///   hyperparameters: config.json           absent without it (GGUF: the metadata)
///   generation: generation_config.json     absent when there is none
///   tensors: [{name, type, shape, bytes}], sorted by name
///   totals: {tensors, parameters, bytes, types: {type: tensors}}
///   tokenizer: {kind, vocab_size, special: {role: {id, piece}}}   absent when there is none
///   notes: [text], what is odd but no error
/// Throws ModelError saying what is wrong: whatever Checkpoint, the tokenizer or the architecture's
/// configuration refuse, and attention heads that do not divide the model's width.
Json inspect(const OpenModel& model);

/// The report as text, a line per fact; with a line per tensor when `all_tensors`.
std::string inspection_text(const Json& report, bool all_tensors = true);

}  // namespace mulciber
