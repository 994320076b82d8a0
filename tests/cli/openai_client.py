"""OpenAI's client of the server whose address is the first argument, for the scripts beside this."""
import json
import sys
import urllib.request

import openai

client = openai.OpenAI(base_url=sys.argv[1] + "/v1", api_key="secret", max_retries=0)
GREEDY = {"temperature": 0, "extra_body": {"ignore_eos": True}}


def fails(kind, call):
    """The error that it ends with, which must be of that type."""
    try:
        call()
    except kind as error:
        return error
    raise SystemExit(f"no {kind.__name__}")


def tokens(model, text):
    """Their ids, by an endpoint that OpenAI has not."""
    request = urllib.request.Request(sys.argv[1] + "/tokenize", json.dumps({"model": model, "text": text}).encode(),
                                     {"Authorization": f"Bearer {client.api_key}"})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)["tokens"]
