"""Chats about images, with OpenAI's client where it is installed, and without it."""
import base64
import json
import struct
import sys
import threading
import urllib.error
import urllib.request
import zlib
from pathlib import Path

URL = sys.argv[1]


def data_url(data, kind="image/png"):
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


def ask(path, body):
    request = urllib.request.Request(URL + path, json.dumps(body).encode(),
                                     {"Content-Type": "application/json", "Authorization": "Bearer secret"})
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def user(*parts):
    return {"role": "user", "content": list(parts)}


def shown(url, **more):
    return {"type": "image_url", "image_url": {"url": url, **more}}


QUESTION = {"type": "text", "text": "What is this?"}
GREEDY = {"model": "eyes", "temperature": 0, "ignore_eos": True, "max_tokens": 8}
IMAGES = {name: Path(name + ".png").read_bytes() for name in ("wide", "high", "small")}
WANTED = {name: json.loads(Path("asked_" + name).read_text()) for name in ("wide", "high")}


def chat(*parts, **more):
    return ask("/v1/chat/completions", {**GREEDY, "messages": [user(*parts)], **more})


def check_answer(name, found):
    status, answer = found
    assert status == 200, answer
    assert answer["choices"][0]["message"]["content"] == WANTED[name]["text"], (answer, WANTED[name])
    assert answer["usage"]["prompt_tokens"] == len(WANTED[name]["prompt_ids"]), answer["usage"]


def refused(found, code, words=""):
    status, answer = found
    assert status == 400, (status, answer)
    error = answer["error"]
    assert error["code"] == code and words in error["message"], error


with urllib.request.urlopen(urllib.request.Request(URL + "/v1/models", headers={"Authorization": "Bearer secret"})) as found:
    models = json.load(found)["data"]
    assert {model["id"]: model["images"] for model in models} == {"chat": False, "eyes": True}
    assert all(model["pictures"] == model["images"] for model in models)  # deprecated name
for detail in ({}, {"detail": "auto"}, {"detail": "low"}, {"detail": "high"}):
    check_answer("wide", chat(shown(data_url(IMAGES["wide"]), **detail), QUESTION))
check_answer("high", chat(shown(data_url(IMAGES["high"])), QUESTION))

# Beside others, and in any order.
results = {}


def beside_others(number):
    name = ("wide", "high")[number % 2]
    results[number] = (name, chat(shown(data_url(IMAGES[name])), QUESTION))


threads = [threading.Thread(target=beside_others, args=(number,)) for number in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
for name, result in results.values():
    check_answer(name, result)

# Responses, and what follows them.
status, first = ask("/v1/responses", {"model": "eyes", "temperature": 0, "max_output_tokens": 8, "input": [
    user({"type": "input_image", "image_url": data_url(IMAGES["wide"])}, {"type": "input_text", "text": "What is this?"})]})
assert status == 200 and first["usage"]["input_tokens"] == len(WANTED["wide"]["prompt_ids"]), first
status, second = ask("/v1/responses", {"model": "eyes", "input": "And then?", "previous_response_id": first["id"],
                                       "max_output_tokens": 8})
assert status == 200 and second["usage"]["input_tokens"] > first["usage"]["input_tokens"], second

# What is refused, and harms nobody.
refused(chat(shown("https://example.org/a.png"), QUESTION), "invalid_image_url", "fetches nothing")
refused(chat(shown("data:image/gif;base64,R0lGODlh"), QUESTION), "invalid_image_url")
refused(chat(shown("data:text/plain;base64,aGFsbG8="), QUESTION), "invalid_image_url")
refused(chat(shown("data:image/png;base64,***="), QUESTION), "invalid_image", "base64")
refused(chat(shown(data_url(b"")), QUESTION), "invalid_image")
refused(chat(shown(data_url(b"no image at all")), QUESTION), "invalid_image")
refused(chat(shown(data_url(IMAGES["wide"][:200])), QUESTION), "invalid_image")


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


bomb = (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 60000, 60000, 8, 2, 0, 0, 0))
        + chunk(b"IDAT", zlib.compress(bytes(10**6))) + chunk(b"IEND", b""))
refused(chat(shown(data_url(bomb)), QUESTION), "invalid_image", "60000 by 60000")
refused(chat(*[shown(data_url(IMAGES["small"]))] * 17, QUESTION), "too_many_images")
refused(chat(*[shown(data_url(IMAGES["wide"]))] * 12, QUESTION), "context_length_exceeded")
refused(chat(shown(data_url(IMAGES["wide"])), {"type": "text", "text": "<image>"}), None, "places for images")
refused(chat(shown(data_url(IMAGES["wide"]), detail="fine"), QUESTION), None, "detail")
refused(chat(shown(data_url(IMAGES["wide"])), QUESTION, model="chat"), "model_without_vision", "sees no images")
refused(ask("/v1/responses", {"model": "eyes", "input": [user({"type": "input_image", "file_id": "file-1"})]}),
        "unsupported_parameter")
refused(ask("/attention", {"model": "eyes", "messages": [user(shown(data_url(IMAGES["wide"])), QUESTION),
                                                        {"role": "assistant", "content": "a"}]}), "unsupported_parameter", "images")
check_answer("wide", chat(shown(data_url(IMAGES["wide"])), QUESTION))

try:
    import openai
except ImportError:
    print("skipped in part: OpenAI's client is not installed")
    sys.exit(0)
client = openai.OpenAI(base_url=URL + "/v1", api_key="secret", max_retries=0)
made = client.chat.completions.create(model="eyes", messages=[user(shown(data_url(IMAGES["wide"])), QUESTION)],
                                      temperature=0, max_tokens=8, extra_body={"ignore_eos": True})
assert made.choices[0].message.content == WANTED["wide"]["text"], made
stream = client.chat.completions.create(model="eyes", messages=[user(shown(data_url(IMAGES["high"])), QUESTION)],
                                        temperature=0, max_tokens=8, stream=True, extra_body={"ignore_eos": True})
assert "".join(part.choices[0].delta.content or "" for part in stream if part.choices) == WANTED["high"]["text"]
answered = client.responses.create(model="eyes", temperature=0, max_output_tokens=8, input=[
    user({"type": "input_image", "image_url": data_url(IMAGES["wide"])}, {"type": "input_text", "text": "What is this?"})])
assert answered.usage.input_tokens == len(WANTED["wide"]["prompt_ids"])
try:
    client.chat.completions.create(model="chat", messages=[user(shown(data_url(IMAGES["wide"])), QUESTION)])
    raise SystemExit("no error for a model that sees nothing")
except openai.BadRequestError as error:
    assert error.code == "model_without_vision", error
