"""Asks /v1/responses of `mulciber serve` with OpenAI's client.

    python3 serve_responses.py URL"""
import json

import openai
import pydantic

from openai_client import GREEDY, client, fails

# A text, which is what a chat answers.
chat = client.chat.completions.create(model="chat", messages=[{"role": "user", "content": "The red hammer"}], max_tokens=10, **GREEDY)
text = chat.choices[0].message.content
response = client.responses.create(model="chat", input="The red hammer", max_output_tokens=10, metadata={"topic": "tools"}, **GREEDY)
assert response.output_text == text and response.status == "incomplete", response
assert response.incomplete_details.reason == "max_output_tokens" and response.metadata == {"topic": "tools"}
assert response.usage.input_tokens == chat.usage.prompt_tokens and response.usage.output_tokens == 10
assert response.usage.total_tokens == chat.usage.total_tokens and response.truncation == "disabled"

# Instructions and items are messages.
told = client.responses.create(model="chat", instructions="Be brief.", max_output_tokens=10, **GREEDY, input=[
    {"role": "user", "content": [{"type": "input_text", "text": "The red hammer"}]}])
chat = client.chat.completions.create(model="chat", max_tokens=10, **GREEDY, messages=[
    {"role": "system", "content": "Be brief."}, {"role": "user", "content": "The red hammer"}])
assert told.output_text == chat.choices[0].message.content and told.instructions == "Be brief."

# A stream tells the same in order.
events = list(client.responses.create(model="chat", input="The red hammer", max_output_tokens=10, stream=True, **GREEDY))
types = [event.type for event in events]
assert types[:4] == ["response.created", "response.in_progress", "response.output_item.added", "response.content_part.added"], types
assert types[-4:] == ["response.output_text.done", "response.content_part.done", "response.output_item.done", "response.incomplete"], types
deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
assert "".join(deltas) == text and len(deltas) > 3 and events[-4].text == text
assert [event.sequence_number for event in events] == list(range(len(events)))
assert events[-1].response.output_text == text and events[-1].response.usage.output_tokens == 10
WORD = {"format": {"type": "json_schema", "name": "word", "schema": {"const": "hammer"}}}
with client.responses.stream(model="chat", input="The red hammer", text=WORD) as stream:
    for event in stream:
        pass
    assert stream.get_final_response().output_text == '"hammer"'

# A response that follows another: the conversation goes on, its instructions do not.
first = client.responses.create(model="chat", instructions="Be brief.", input="One", max_output_tokens=6, **GREEDY)
second = client.responses.create(model="chat", input="Two", previous_response_id=first.id, max_output_tokens=6, **GREEDY)
whole = client.chat.completions.create(model="chat", max_tokens=6, **GREEDY, messages=[
    {"role": "user", "content": "One"}, {"role": "assistant", "content": first.output_text}, {"role": "user", "content": "Two"}])
assert second.output_text == whole.choices[0].message.content and second.previous_response_id == first.id
assert client.responses.retrieve(first.id).output_text == first.output_text
client.responses.delete(first.id)
assert fails(openai.NotFoundError, lambda: client.responses.retrieve(first.id)).code == "response_not_found"
error = fails(openai.BadRequestError, lambda: client.responses.create(model="chat", input="x", previous_response_id=first.id))
assert error.code == "previous_response_not_found" and error.param == "previous_response_id", error
unkept = client.responses.create(model="chat", input="One", store=False, max_output_tokens=2, **GREEDY)
assert unkept.store is False
fails(openai.NotFoundError, lambda: client.responses.retrieve(unkept.id))
# This server keeps 20: of those that nobody asked for, the oldest are gone.
kept = [client.responses.create(model="chat", input="x", max_output_tokens=1, **GREEDY).id for _ in range(21)]
fails(openai.NotFoundError, lambda: client.responses.retrieve(second.id))
client.responses.retrieve(kept[-1])

# More than the context holds is refused, or cut from the oldest message on.
LONG = [{"role": "user", "content": "word " * 400}, {"role": "assistant", "content": "yes"}] * 20 + [{"role": "user", "content": "The red hammer"}]
error = fails(openai.BadRequestError, lambda: client.responses.create(model="chat", input=LONG, max_output_tokens=10))
assert error.code == "context_length_exceeded" and error.param == "input", error
cut = client.responses.create(model="chat", input=LONG, max_output_tokens=10, truncation="auto", **GREEDY)
assert 0 < cut.usage.input_tokens < 4096 and cut.truncation == "auto"


# Answers by a schema, parsed.
class Tool(pydantic.BaseModel):
    name: str = pydantic.Field(max_length=8)
    sharp: bool


parsed = client.responses.parse(model="chat", input="A tool?", text_format=Tool, temperature=0)
assert parsed.status == "completed" and isinstance(parsed.output_parsed, Tool), parsed
assert json.loads(client.responses.create(model="chat", input="x", text={"format": {"type": "json_object"}}, temperature=1,
                                          max_output_tokens=500, extra_body={"seed": 3}).output_text or "{}") is not None
likely = client.responses.create(model="chat", input="x", include=["message.output_text.logprobs"], top_logprobs=2, max_output_tokens=3, **GREEDY)
for token in likely.output[0].content[0].logprobs:
    assert token.logprob == max(other.logprob for other in token.top_logprobs) <= 0 and len(token.top_logprobs) == 2

# Calls of functions, whole and streamed, and their results.
WEATHER = {"type": "function", "name": "weather", "strict": True, "parameters": {
    "type": "object", "properties": {"days": {"type": "integer", "minimum": 1, "maximum": 9}, "exact": {"type": "boolean"}}, "required": ["days", "exact"]}}
USER = {"role": "user", "content": "The weather?"}
called = client.responses.create(model="tools", input=[USER], tools=[WEATHER], tool_choice="required", temperature=0)
(call,) = called.output
arguments = json.loads(call.arguments)
assert call.type == "function_call" and call.name == "weather" and 1 <= arguments["days"] <= 9, call
events = list(client.responses.create(model="tools", input=[USER], tools=[WEATHER], tool_choice={"type": "function", "name": "weather"},
                                      temperature=0, stream=True))
pieces = [event.delta for event in events if event.type == "response.function_call_arguments.delta"]
assert "".join(pieces) == call.arguments and len(pieces) > 1, pieces
assert events[2].type == "response.output_item.added" and events[2].item.name == "weather" and events[2].item.arguments == ""
assert [event.type for event in events][-3:] == ["response.function_call_arguments.done", "response.output_item.done", "response.completed"]
RESULT = {"type": "function_call_output", "call_id": call.call_id, "output": "rain"}
by_id = client.responses.create(model="tools", previous_response_id=called.id, input=[RESULT], tools=[WEATHER], max_output_tokens=4, **GREEDY)
by_items = client.responses.create(model="tools", input=[USER, call.model_dump(), RESULT], tools=[WEATHER], max_output_tokens=4, **GREEDY)
assert by_id.output_text == by_items.output_text and by_id.usage.input_tokens == by_items.usage.input_tokens

# Chats stream calls in pieces as well.
OF_CHAT = {"type": "function", "function": {name: value for name, value in WEATHER.items() if name != "type"}}
chunks = list(client.chat.completions.create(model="tools", messages=[USER], tools=[OF_CHAT], tool_choice="required", temperature=0, stream=True))
deltas = [delta for chunk in chunks for delta in chunk.choices[0].delta.tool_calls or []]
assert deltas[0].function.name == "weather" and deltas[0].id and len(deltas) > 1 and all(delta.index == 0 for delta in deltas)
assert all(delta.id is None and delta.function.name is None for delta in deltas[1:])
assert "".join(delta.function.arguments for delta in deltas) == call.arguments
assert chunks[-1].choices[0].finish_reason == "tool_calls"

# What is refused.
for param, wrong in {"input": {"input": []}, "background": {"input": "x", "background": True},
                     "tools[0].type": {"input": "x", "tools": [{"type": "web_search"}]},
                     "text.format.schema": {"input": "x", "text": {"format": {"type": "json_schema", "name": "n", "schema": {"not": {}}}}}}.items():
    assert fails(openai.BadRequestError, lambda: client.responses.create(model="chat", **wrong)).param == param

# Prompts that are echoed have probabilities (serve.sh compares them with those of `mulciber score`).
given = client.completions.create(model="chat", prompt="The red hammer", max_tokens=6, logprobs=2, **GREEDY).choices[0]
echoed = client.completions.create(model="chat", prompt="The red hammer", max_tokens=0, echo=True, logprobs=2).choices[0]
assert echoed.text == "The red hammer" == "".join(echoed.logprobs.tokens), echoed
assert echoed.finish_reason == "length" and echoed.logprobs.text_offset[0] == 0
both = client.completions.create(model="chat", prompt="The red hammer", max_tokens=6, echo=True, logprobs=2, **GREEDY).choices[0]
assert both.text == "The red hammer" + given.text
assert both.logprobs.token_logprobs == echoed.logprobs.token_logprobs + given.logprobs.token_logprobs
assert both.logprobs.top_logprobs == echoed.logprobs.top_logprobs + given.logprobs.top_logprobs

# The likeliest of several.
DRAWN = {"model": "chat", "prompt": "The red hammer", "max_tokens": 5, "temperature": 1, "seed": 4, "extra_body": {"ignore_eos": True}}
five = client.completions.create(n=5, logprobs=0, **DRAWN).choices
best = client.completions.create(n=2, best_of=5, **DRAWN).choices
five.sort(key=lambda choice: -sum(choice.logprobs.token_logprobs))
assert [choice.text for choice in best] == [choice.text for choice in five[:2]] and best[0].logprobs is None
assert [choice.index for choice in best] == [0, 1]
