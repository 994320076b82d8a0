"""Answers by random JSON schemas of the subset that docs/guide/structured-output.md lists, checked by python3-jsonschema.

    python3 serve_schemas.py URL [COUNT [SEED]]"""
import collections
import concurrent.futures
import datetime
import json
import random
import sys
import urllib.error
import urllib.request

import jsonschema

URL = sys.argv[1]
COUNT = int(sys.argv[2]) if len(sys.argv) > 2 else 150
SEED = int(sys.argv[3]) if len(sys.argv) > 3 else 1
KEYS = ["a", "b", "name", "size", "a b", "ä", "\"quoted\"", "new\nline", ""]
CONSTANTS = ["x", "", "a\"b", "é😀", 0, -7, 2.5, True, False, None, [], [1, "x"], {}, {"k": [None]}]
PATTERNS = ["^[a-c]{1,4}$", "^\\d+(\\.\\d{2})?$", "x", "^(yes|no)$", "^[^\"\\\\]{0,3}$"]


class Writer:
    """Schemas at random; deeper ones become simpler. Narrower than the standard where answers are to come to an end."""

    def __init__(self, seed):
        self.random, self.defs = random.Random(seed), {}

    def chance(self, share):
        return self.random.random() < share

    def schema(self, depth=0):
        kinds = ["constant", "enum", "string", "pattern", "format", "number", "integer", "boolean", "null", "types"]
        if depth < 3:
            kinds += ["object"] * 5 + ["array"] * 3 + ["tuple", "anyOf", "oneOf", "allOf", "reference", "list"]
        made = getattr(self, self.random.choice(kinds))(depth)
        if self.chance(0.1):
            made = {"title": "t", "description": "d", **made}
        return made

    def whole(self):
        root = self.schema()
        return {**root, "$defs": self.defs} if self.defs else root

    def constant(self, depth):
        return {"const": self.random.choice(CONSTANTS)}

    def enum(self, depth):
        return {"enum": self.random.sample(CONSTANTS, self.random.randint(1, 5))}

    def string(self, depth):
        least = self.random.randint(0, 4)
        return {"type": "string", "minLength": least, "maxLength": least + self.random.randint(0, 6)}

    def pattern(self, depth):
        return {"type": "string", "pattern": self.random.choice(PATTERNS)}

    def format(self, depth):
        return {"type": "string", "format": self.random.choice(["date", "time", "date-time", "uuid", "duration",
                                                                    "hostname", "email", "ipv4", "ipv6", "uri"])}

    def bounds(self, whole):
        least = self.random.randint(-300, 300)
        most = least + self.random.randint(1, 500)
        made = {}
        if self.chance(0.7):
            made["exclusiveMinimum" if self.chance(0.4) else "minimum"] = least
        if self.chance(0.7):
            made["exclusiveMaximum" if self.chance(0.4) else "maximum"] = most + (1 if whole else 0)
        return made

    def number(self, depth):
        return {"type": "number", **self.bounds(False)}

    def integer(self, depth):
        made = {"type": "integer", **self.bounds(True)}
        return {**made, "multipleOf": self.random.choice([1, 2, 3, 5, 7])} if self.chance(0.4) else made

    def boolean(self, depth):
        return {"type": "boolean"}

    def null(self, depth):
        return {"type": "null"}

    def types(self, depth):
        return {"type": self.random.sample(["integer", "boolean", "null"], 2)}

    def object(self, depth):
        names = self.random.sample(KEYS, self.random.randint(0, 4))
        made = {"type": "object", "properties": {name: self.schema(depth + 1) for name in names}}
        made["required"] = [name for name in names if self.chance(0.6)]
        if self.chance(0.2):
            made["additionalProperties"] = self.random.choice([False, {"type": "null"}])
        return made

    def array(self, depth):
        least = self.random.randint(0, 2)
        return {"type": "array", "items": self.schema(depth + 1), "minItems": least, "maxItems": least + self.random.randint(0, 2)}

    def tuple(self, depth):
        items = [self.schema(depth + 1) for _ in range(self.random.randint(1, 3))]
        return {"type": "array", "prefixItems": items, "items": False, "minItems": self.random.randint(0, len(items))}

    def anyOf(self, depth):
        return {"anyOf": [self.schema(depth + 1) for _ in range(self.random.randint(1, 3))]}

    def oneOf(self, depth):
        """Schemas that exclude one another, as the documentation asks for: each has another value of `kind`."""
        return {"oneOf": [{"type": "object", "properties": {"kind": {"const": kind}, "of": self.schema(depth + 1)}, "required": ["kind"]}
                          for kind in self.random.sample(["p", "q", "r"], 2)]}

    def allOf(self, depth):
        return {"allOf": [{"type": "object", "properties": {"one": self.schema(depth + 1)}, "required": ["one"]},
                          {"type": "object", "properties": {"two": {"type": "integer", "minimum": 0}}, "required": ["two"]},
                          {"properties": {"two": {"type": "integer", "maximum": 9}}}]}

    def reference(self, depth):
        name = f"d{len(self.defs)}"
        self.defs[name] = {}
        self.defs[name] = self.schema(depth + 1)
        return {"$ref": "#/$defs/" + name}

    def list(self, depth):
        """A recursive schema: a list of which each element has the next."""
        name = f"d{len(self.defs)}"
        self.defs[name] = {"type": "object", "properties": {"next": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/" + name}]}}, "required": ["next"]}
        return {"$ref": "#/$defs/" + name}


def answer(schema, seed):
    body = {"messages": [{"role": "user", "content": "x"}], "temperature": 1.0, "seed": seed, "max_tokens": 400,
            "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}}
    request = urllib.request.Request(URL + "/v1/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as response:
        return json.load(response)["choices"][0]


FORMATS = jsonschema.FormatChecker(["date", "uuid", "email", "ipv4", "ipv6"])
# What the module checks by packages of their own.
FORMATS.checks("time", ValueError)(lambda text: bool(datetime.time.fromisoformat(text).tzinfo))
FORMATS.checks("date-time", ValueError)(lambda text: bool(datetime.datetime.fromisoformat(text).tzinfo))


def check(seed):
    schema = Writer(seed).whole()
    try:
        jsonschema.Draft202012Validator.check_schema(schema)
        choice = answer(schema, seed)
    except urllib.error.HTTPError as error:
        return "refused", schema, error.read().decode()
    if choice["finish_reason"] == "length":
        return "cut", schema, ""
    text = choice["message"]["content"]
    try:
        jsonschema.validate(json.loads(text), schema, cls=jsonschema.Draft202012Validator,
                            format_checker=FORMATS)
    except (ValueError, jsonschema.ValidationError) as error:
        return "invalid", schema, f"{text} {error}"
    return "valid", schema, text


count = collections.Counter()
with concurrent.futures.ThreadPoolExecutor(8) as pool:
    for what, schema, text in pool.map(check, range(SEED, SEED + COUNT)):
        count[what] += 1
        if what in ("refused", "invalid"):
            print(what, json.dumps(schema), text, file=sys.stderr)
print(json.dumps(count))
# A few answers are longer than 400 tokens; a schema of the subset is neither refused nor left.
sys.exit(count["refused"] + count["invalid"] > 0 or count["valid"] < COUNT * 0.8)
