#!/usr/bin/env python3
"""Says what a change can have touched beyond what every run on lavapipe shows: a line for each part that .ci/run adds,
"PART ARGUMENT...". Compares the working tree with a commit.

    tests/parts/touched.py [COMMIT]      # else the one that .ci/base names
"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
EVERY = "every"

# Paths and the part that a change to them asks for. A path can ask for several.
#   rows OP...        conformance rows of the op on SwiftShader and under masks; "rows" alone: those that the file serves
#   tests REGEX       tests and scripts whose names match, on SwiftShader
#   fuzz TARGET...    libFuzzer targets
TABLE = [
    (r"shaders/(.*\.(comp|glsl|h)|kernels\.def)", "rows"),
    (r"ops/.*", "rows"),
    (r"conformance/(ops/.*|bounds\.cpp|compare\.cpp)", "rows"),
    (r"runtime/.*", "tests", "device", "application_copy", "program", "selection", "slices", "layers", "cli_commands"),
    (r"layers/.*", "tests", "attention_test", "layers", "mixture_of_experts", "recurrent", "rope", "state_space"),
    (r"base/.*", "fuzz", EVERY),
    (r"checkpoints/(gguf|tensor_values|checkpoint|mapped_file|model_file).*", "fuzz", "gguf"),
    (r"checkpoints/(safetensors|json|checkpoint|mapped_file|model_file|weights|scaled).*", "fuzz", "safetensors"),
    (r"checkpoints/(config_reader|json|file_name).*", "fuzz", "config"),
    (r"text/token.*", "fuzz", "tokenizer"),
    (r"text/(chat_template|jinja|known_templates).*", "fuzz", "chat_template"),
    (r"text/grammar.*", "fuzz", "grammar"),
    (r"images/.*", "fuzz", "image"),
    (r"audio/.*", "fuzz", "sound"),
    (r"models/(core|families|loading)/.*", "fuzz", "config"),
    (r"models/adapters/.*", "fuzz", "adapter"),
    (r"models/adapters/.*", "tests", "lora_test", "cli_lora"),
    (r"models/generation/.*", "tests", "decoder", "sequence_decoding", "batch_generator", "cli_generate"),
    (r"models/translation/.*", "tests", "marian", "translator", "search_slots", "cli_translate"),
    (r"models/encoding/.*", "tests", "text_encoder", "cli_encoders"),
    (r"models/vision/.*", "tests", "vision", "image_encoder", "image_text_reader", "cli_images"),
    (r"models/speech/.*", "tests", "transcriber", "speech", "cli_transcribe"),
    (r"models/attention/.*", "tests", "attention_task", "graph_attention"),
    (r"capi/.*", "tests", "^c_", "embedding"),
    (r"(capi|include/mulciber/c)/.*", "fuzz", "c_interface"),
    (r"apps/serve/.*", "fuzz", "request"),
    (r"apps/serve/.*", "tests", "cli_serve$", "cli_serve_schemas", "serve_request"),
    (r"apps/(translate/|heads/|cli/lines).*", "tests", "cli_translate", "cli_languages"),
    (r"apps/generate.*", "tests", "cli_generate"),
    (r"apps/cli/(language_model|sampling_options|grammar_options|speculation_options).*", "tests", "cli_generate"),
    (r"apps/chat/.*", "tests", "cli_chat", "cli_dialogue"),
    (r"apps/cli/conversation.*", "tests", "cli_chat", "cli_dialogue", "cli_generate"),
    (r"apps/(attention|images)/.*", "tests", "cli_attention_page", "cli_images"),
    (r"apps/(transcribe/|cli/subtitles).*", "tests", "cli_transcribe"),
    (r"apps/(embed|answer|classify|match).*", "tests", "cli_encoders", "cli_passage_question"),
    (r"apps/(conform|kernels)/.*", "tests", "cli_conform", "cli_kernels"),
    (r"apps/(pull)/.*", "tests", "cli_pull"),
    (r"apps/(score|perplexity|tokenize|tune|verify|inspect|devices)\.cpp", "tests", "cli_{1}"),
    (r"(apps/viewer|examples/graphics)/.*", "tests", "cli_viewer"),
    (r"examples/.*", "tests", "cli_attention_texture", "cli_dialogue", "cli_frame_budget"),
]
# Readers of foreign files.
FUZZ_TARGETS = ["adapter", "chat_template", "config", "gguf", "grammar", "image", "request", "safetensors", "sound",
                "tokenizer"]


def read(path):
    try:
        return (ROOT / path).read_text(errors="replace")
    except FileNotFoundError:  # deleted by the change
        return ""


def kernel_rows():
    """(op as the suite names it, shader) of each row of kernels.def."""
    names = dict(re.findall(r"^OP\((\w+), (\w+),", read("shaders/ops.def"), re.M))
    rows = re.findall(r"^KERNEL\(\w+, (\w+), (\w+\.comp),", read("shaders/kernels.def"), re.M)
    return [(names[op], shader) for op, shader in rows], names


def shaders_with(path):
    """Shaders that are the file or include it."""
    includes = {}
    for file in (ROOT / "shaders").rglob("*"):
        if file.suffix in (".comp", ".glsl", ".h"):
            includes[file.name] = set(re.findall(r'#include "(?:.*/)?([^"/]+)"', file.read_text()))
    found = {pathlib.Path(path).name}
    grown = True
    while grown:
        more = {name for name, included in includes.items() if included & found} - found
        grown = bool(more)
        found |= more
    return found


def changed_rows(base):
    """Ops whose rows of kernels.def are other than they were, as the table names them."""
    diff = git("diff", "-U0", base, "--", "shaders/kernels.def")
    lines = [line[1:] for line in diff.splitlines() if re.match(r"[+-][^+-]", line)]
    return {row.group(1) for line in lines if (row := re.match(r"KERNEL\(\w+, (\w+),", line))}


def ops_of(path, base):
    """What the suite calls the ops that a file serves."""
    rows, names = kernel_rows()
    if path == "shaders/kernels.def":
        return {names[op] for op in changed_rows(base) if op in names}
    if path.startswith("shaders/"):
        shaders = shaders_with(path)
        return {op for op, shader in rows if shader in shaders}
    stem = re.sub(r"(_cases|_reference|_variants?)?\.\w+$", "", pathlib.Path(path).name)
    said = {names[op] for op in re.findall(r"Op::k(\w+)", read(path)) if op in names}
    said |= {op for op in names.values() if op == stem or op.startswith(stem + "_")}
    return said or set(names.values())  # what all ops share


def git(*arguments):
    return subprocess.run(["git", "-C", str(ROOT), *arguments], check=True, capture_output=True, text=True).stdout


def plan(paths, base):
    parts = {"rows": set(), "tests": set(), "fuzz": set()}
    for path in paths:
        for pattern, part, *arguments in TABLE:
            match = re.fullmatch(pattern, path)
            if not match:
                continue
            if part == "rows":
                parts[part] |= ops_of(path, base)
            elif arguments == [EVERY]:
                parts[part] |= set(FUZZ_TARGETS)
            elif arguments:
                parts[part] |= {argument.replace("{1}", match.expand(r"\1") if match.groups() else "")
                                for argument in arguments}
            else:
                parts[part].add(EVERY)
    return parts


def main():
    base = sys.argv[1] if len(sys.argv) > 1 else (ROOT / ".ci/base").read_text().split()[0]
    paths = git("diff", "--name-only", "--no-renames", base).splitlines()
    for part, arguments in plan(paths, base).items():
        if arguments:
            print(part, *sorted(arguments))


if __name__ == "__main__":
    main()
