#!/usr/bin/env python3
"""Word error rate of `mulciber transcribe` on sentences that espeak-ng speaks.

    tools/word_errors.py build/mulciber "$(tools/fetch_whisper.sh)" [--reference] [-- OPTION...]

Speaks tests/data/spoken_sentences.txt, a file each, and prints each transcript with its errors (Levenshtein distance in
words, without case and punctuation) and the rate over all. --reference: also that of Hugging Face transformers on the
same files (needs torch and transformers). OPTION: of mulciber transcribe.
"""
import os
import re
import subprocess
import sys
import tempfile

SENTENCES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "data", "spoken_sentences.txt")


def words(text):
    return re.findall(r"[a-z0-9']+", text.lower())


def errors(said, heard):
    row = list(range(len(heard) + 1))
    for i, word in enumerate(said, 1):
        diagonal, row[0] = row[0], i
        for j, other in enumerate(heard, 1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (word != other))
    return row[-1]


def reference(model):
    import torch
    import wave
    import numpy as np
    from transformers import WhisperForConditionalGeneration, WhisperFeatureExtractor, PreTrainedTokenizerFast
    network = WhisperForConditionalGeneration.from_pretrained(model, dtype=torch.float32).eval()
    extractor = WhisperFeatureExtractor.from_pretrained(model)
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=os.path.join(model, "tokenizer.json"))

    def transcribe(path):
        with wave.open(path) as file:
            samples = np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(np.float32) / 32768
        features = extractor(samples, sampling_rate=16000, return_tensors="pt").input_features
        with torch.no_grad():
            ids = network.generate(features, num_beams=5, max_new_tokens=100)
        return tokenizer.decode(ids[0], skip_special_tokens=True)

    return transcribe


def main():
    arguments, options = sys.argv[1:], []
    if "--" in arguments:
        options = arguments[arguments.index("--") + 1:]
        arguments = arguments[:arguments.index("--")]
    wants_reference = "--reference" in arguments
    command, model = [a for a in arguments if a != "--reference"]
    programs = {"mulciber": lambda path: subprocess.run(
        [command, "transcribe", "-m", model, path, *options], check=True, capture_output=True, text=True).stdout}
    if wants_reference:
        programs["transformers"] = reference(model)
    wrong, total = dict.fromkeys(programs, 0), 0
    with open(SENTENCES, encoding="utf-8") as file, tempfile.TemporaryDirectory() as folder:
        for number, sentence in enumerate(file.read().splitlines()):
            path = os.path.join(folder, f"{number}.wav")
            subprocess.run(["espeak-ng", "-v", "en-us", "-s", "150", "-w", path, sentence], check=True)
            # Resample to the model's rate, so that all programs hear the same samples.
            subprocess.run(["sndfile-resample", "-to", "16000", "-c", "0", path, path + ".16.wav"], check=True,
                           stdout=subprocess.DEVNULL)
            total += len(words(sentence))
            for name, transcribe in programs.items():
                heard = " ".join(transcribe(path + ".16.wav").split())
                count = errors(words(sentence), words(heard))
                wrong[name] += count
                print(f"{number + 1}\t{name}\t{count}\t{heard}", flush=True)
    for name, count in wrong.items():
        print(f"{name}: {count} of {total} words, {100 * count / total:.1f} %")


main()
