"""OpenAI's client of the server whose address is the first argument, for the scripts beside this."""
import sys

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
