"""Asks `mulciber serve` as programs do that were written for OpenAI, with its client.

    python3 serve.py URL"""
import concurrent.futures
import io
import json
import math
import struct
import sys
import urllib.request
import wave

import openai

from openai_client import GREEDY, client, fails, tokens

USER = [{"role": "user", "content": "The red hammer"}]

models = {model.id for model in client.models.list()}
assert {"chat", "tools"} <= models, models
assert client.models.retrieve("chat").id == "chat"

# A chat, whole and streamed.
whole = client.chat.completions.create(model="chat", messages=USER, max_tokens=10, **GREEDY)
text = whole.choices[0].message.content
assert text and whole.choices[0].finish_reason == "length" and whole.usage.completion_tokens == 10
stream = client.chat.completions.create(model="chat", messages=USER, max_completion_tokens=10, stream=True,
                                        stream_options={"include_usage": True}, **GREEDY)
pieces, usage = [], None
for chunk in stream:
    usage = chunk.usage or usage
    pieces += [choice.delta.content or "" for choice in chunk.choices]
assert "".join(pieces) == text and usage.completion_tokens == 10, (pieces, text)

# Probabilities: those of a greedy answer are the largest.
given = client.chat.completions.create(model="chat", messages=USER, max_tokens=5, logprobs=True, top_logprobs=3, **GREEDY)
for token in given.choices[0].logprobs.content:
    assert token.logprob == max(other.logprob for other in token.top_logprobs) <= 0

# Several at once, by several clients: each gets what it gets alone.
def drawn(seed):
    answer = client.chat.completions.create(model="chat", messages=USER, n=2, seed=seed, temperature=1.0, max_tokens=8,
                                            extra_body={"ignore_eos": True, "min_p": 0.001})
    return [choice.message.content for choice in answer.choices]


alone = {seed: drawn(seed) for seed in range(3)}
with concurrent.futures.ThreadPoolExecutor(6) as pool:
    together = list(pool.map(drawn, [0, 1, 2, 0, 1, 2]))
assert together == [alone[seed] for seed in (0, 1, 2, 0, 1, 2)], (alone, together)
assert alone[0] != alone[1] and alone[0][0] != alone[0][1]


def metric(name):
    request = urllib.request.Request(sys.argv[1] + "/metrics", headers={"Authorization": f"Bearer {client.api_key}"})
    lines = urllib.request.urlopen(request).read().decode().splitlines()
    return float(next(line.split()[-1] for line in lines if line.startswith(f'mulciber_{name}{{model="chat"}} ')))


def check_others_go_on(work, turns):
    """While `work` is computed an answer goes on: by a step at least in each of so many turns between its parts."""
    with client.chat.completions.create(model="chat", messages=USER, max_tokens=4000, stream=True, **GREEDY) as answer:
        next(iter(answer))
        before = metric("steps_total")
        done = work()
        steps = metric("steps_total") - before
        # Where others keep this program from running, the answer may have come to its end.
        assert steps >= turns or metric("batch_running") == 0, f"{steps} steps in {turns} turns"
    return done


# Completions of several prompts.
answer = client.completions.create(model="chat", prompt=["one", "two"], max_tokens=4, echo=True, **GREEDY)
assert [choice.index for choice in answer.choices] == [0, 1]
assert answer.choices[0].text.startswith("one") and answer.choices[1].text.startswith("two")

# Prompts of token ids, and what was read of them before.
ids = tokens("chat", "one")
by_ids = client.completions.create(model="chat", prompt=[ids, ids], max_tokens=4, **GREEDY)
assert [choice.text for choice in by_ids.choices] == [answer.choices[0].text.removeprefix("one")] * 2, by_ids
assert by_ids.usage.prompt_tokens == 2 * len(ids)
LONG = [{"role": "user", "content": "The red hammer strikes. " * 40}]
for _ in range(2):
    usage = client.chat.completions.create(model="chat", messages=LONG, max_tokens=1, **GREEDY).usage
    *_, last = client.chat.completions.create(model="chat", messages=LONG, max_tokens=1, stream=True,
                                              stream_options={"include_usage": True}, **GREEDY)
assert 0 < usage.prompt_tokens_details.cached_tokens < usage.prompt_tokens, usage
assert last.usage == usage, (last.usage, usage)
given = client.responses.create(model="chat", input=LONG, max_output_tokens=1, **GREEDY).usage
assert given.input_tokens_details.cached_tokens == usage.prompt_tokens_details.cached_tokens, given

# A conversation with tools: what the model was told of them counts, and the answer is text or calls.
TOOL = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}}}
plain = client.chat.completions.create(model="tools", messages=USER, max_tokens=3, **GREEDY)
told = client.chat.completions.create(model="tools", messages=USER, tools=[TOOL], max_tokens=3, **GREEDY)
assert told.usage.prompt_tokens > plain.usage.prompt_tokens
ignored = client.chat.completions.create(model="tools", messages=USER, tools=[TOOL], tool_choice="none", max_tokens=3, **GREEDY)
assert ignored.usage.prompt_tokens == plain.usage.prompt_tokens
OTHER = {"type": "function", "function": {"name": "other", "description": "Something else."}}
ALLOWED = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": "weather"}}]}}
allowed = client.chat.completions.create(model="tools", messages=USER, tools=[TOOL, OTHER], tool_choice=ALLOWED, max_tokens=3,
                                         verbosity="medium", **GREEDY)
assert allowed.usage.prompt_tokens == told.usage.prompt_tokens, (allowed.usage, told.usage)
asked = USER + [{"role": "assistant", "content": None, "tool_calls": [
    {"id": "1", "type": "function", "function": {"name": "weather", "arguments": '{"place": "here"}'}}]},
    {"role": "tool", "tool_call_id": "1", "content": "rain"}]
client.chat.completions.create(model="tools", messages=asked, tools=[TOOL], max_tokens=3, **GREEDY)

# Errors are of the types that the client has for them.
error = fails(openai.NotFoundError, lambda: client.chat.completions.create(model="gpt-4o", messages=USER))
assert error.code == "model_not_found" and error.param == "model", error
error = fails(openai.BadRequestError, lambda: client.chat.completions.create(model="chat", messages=USER, tools=[TOOL]))
assert error.param == "tools", error
error = fails(openai.BadRequestError, lambda: client.chat.completions.create(model="chat", messages=USER, verbosity="low"))
assert error.code == "unsupported_value" and error.param == "verbosity", error
error = fails(openai.BadRequestError, lambda: client.completions.create(model="chat", prompt="word " * 20000))
assert error.code == "context_length_exceeded", error
stranger = openai.OpenAI(base_url=sys.argv[1] + "/v1", api_key="wrong", max_retries=0)
fails(openai.AuthenticationError, stranger.models.list)

if "vectors" in models:
    # The client asks for base64 unless told otherwise.
    by_bytes = client.embeddings.create(model="vectors", input=["a dog", "a cat"])
    by_text = client.embeddings.create(model="vectors", input=["a dog", "a cat"], encoding_format="float")
    for one, other in zip(by_bytes.data, by_text.data):
        assert len(one.embedding) > 8
        assert all(math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-7) for a, b in zip(one.embedding, other.embedding))
    assert by_bytes.usage.prompt_tokens > 0
    # Ids of tokens are the text that they are of.
    ids = tokens("vectors", "a dog")
    for given in (ids, [ids, ids]):
        by_ids = client.embeddings.create(model="vectors", input=given, encoding_format="float")
        assert len(by_ids.data) == (1 if given is ids else 2)
        for one in by_ids.data:
            assert all(math.isclose(a, b, rel_tol=1e-5, abs_tol=1e-5) for a, b in zip(one.embedding, by_text.data[0].embedding))
    many = check_others_go_on(lambda: client.embeddings.create(model="vectors", input=[f"a dog and {i} cats" for i in range(2000)]), 20)
    assert len(many.data) == 2000
    assert fails(openai.BadRequestError, lambda: client.embeddings.create(model="vectors", input=[1 << 30])).param == "input"
    assert fails(openai.BadRequestError, lambda: client.embeddings.create(model="chat", input="x")).code == "wrong_model"

if "speech" in models:
    def hear(seconds):
        sound = io.BytesIO()
        with wave.open(sound, "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(16000)
            file.writeframes(b"".join(struct.pack("<h", int(9000 * math.sin(i / 7))) for i in range(16000 * seconds)))
        heard = client.audio.transcriptions.create(model="speech", file=("tone.wav", sound.getvalue()), language="en",
                                                   response_format="verbose_json")
        assert abs(heard.duration - seconds) < 0.01 and isinstance(heard.text, str), heard

    hear(1)
    check_others_go_on(lambda: hear(5), 2)
    error = fails(openai.BadRequestError, lambda: client.audio.transcriptions.create(model="speech", file=("a.wav", b"no sound")))
    assert error.param == "file", error
print(json.dumps(sorted(models)))
