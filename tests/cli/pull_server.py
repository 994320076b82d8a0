"""A server for tests/cli/pull.sh: ranges, validators, redirects, and every kind of failure, chosen by the path.

    python3 pull_server.py PORT_FILE LOG_FILE
"""
import hashlib
import http.server
import json
import os
import sys
import threading

BODY = bytes((i * 7 + i // 251) % 256 for i in range(300_000))
OTHER = bytes(reversed(BODY))
SHA = hashlib.sha256(BODY).hexdigest()
LISTING = {
    "some/model": [("config.json", 20), ("model.safetensors", len(BODY)), ("README.md", 5), ("onnx/model.onnx", 9), ("tokenizer.json", 20)],
    "one/gguf": [("model-q4_0.gguf", len(BODY)), ("README.md", 5)],
    "two/gguf": [("a.gguf", 1), ("b.gguf", 1)],
    "no/weights": [("README.md", 5)],
    "evil/names": [("../../outside.json", 20), ("..json", 20), ("model.safetensors", len(BODY))],
}
counts, lock, log = {}, threading.Lock(), open(sys.argv[2], "a", buffering=1)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def reply(self, status, body=b"", headers=(), send=None):
        """send: how many bytes really go out before the connection ends."""
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        if send is None:
            self.wfile.write(body)
        else:
            self.wfile.write(body[:send])
            self.wfile.flush()
            self.close_connection = True

    def serve(self, body, etag='"v1"', send=None, ranges=True, extra=()):
        asked = self.headers.get("Range")
        same = self.headers.get("If-Range") in (None, etag)
        headers = [("ETag", etag), *extra]
        if asked and ranges and same:
            begin = int(asked.removeprefix("bytes=").split("-")[0])
            if begin >= len(body):
                return self.reply(416, b"", [("Content-Range", f"bytes */{len(body)}")])
            part = body[begin:]
            return self.reply(206, part, [*headers, ("Content-Range", f"bytes {begin}-{len(body) - 1}/{len(body)}")], send)
        return self.reply(200, body, headers, send)

    def do_GET(self):
        path = self.path.split("?")[0]
        with lock:
            counts[path] = counts.get(path, 0) + 1
            count = counts[path]
        log.write(f"{path} range={self.headers.get('Range')} if-range={self.headers.get('If-Range')} auth={self.headers.get('Authorization')}\n")
        if path.startswith("/api/models/"):
            name = path.removeprefix("/api/models/")
            if name not in LISTING:
                return self.reply(404)
            files = [{"rfilename": f, "size": s, **({"lfs": {"sha256": SHA, "size": s}} if s == len(BODY) else {})} for f, s in LISTING[name]]
            return self.reply(200, json.dumps({"id": name, "siblings": files}).encode())
        if path == "/wronglink/x/resolve/main/x.bin":
            return self.reply(302, b"", [("Location", "/whole.bin"), ("X-Linked-Etag", '"' + "0" * 64 + '"')])
        if "/resolve/main/" in path:
            if path.endswith((".safetensors", ".gguf")):  # as the hub does: a redirect that names the SHA-256
                return self.reply(302, b"", [("Location", "/whole.bin"), ("X-Linked-Etag", f'"{SHA}"')])
            return self.serve(b'{"model_type": "x"}\n'[:20].ljust(20, b"\n"))
        if path == "/whole.bin":
            return self.serve(BODY)
        if path == "/cut.bin":  # every answer ends after 100,000 bytes
            return self.serve(BODY, send=100_000)
        if path == "/stuck.bin":  # never any byte after the first 1,000
            return self.serve(BODY, send=1_000 if count == 1 else 0)
        if path == "/changed.bin":  # cut once, and then another file
            return self.serve(BODY, send=100_000) if count == 1 else self.serve(OTHER, etag='"v2"')
        if path == "/norange.bin":  # cut once, and knows no ranges
            return self.serve(BODY, send=100_000 if count == 1 else None, ranges=False)
        if path == "/busy.bin":  # two failures that pass
            return self.reply(503) if count < 3 else self.serve(BODY)
        if path == "/silent.bin":  # never any answer
            self.close_connection = True
            return self.rfile.read(1)  # until the client has gone
        if path == "/down.bin":
            return self.reply(500)
        if path == "/longer.bin":  # sends more than it should
            return self.serve(BODY + b"x")
        if path == "/empty.bin":
            return self.serve(b"")
        if path == "/forbidden.bin":
            return self.reply(403)
        if path == "/round.bin":
            return self.reply(302, b"", [("Location", "/round.bin")])
        if path == "/there.bin":
            return self.reply(302, b"", [("Location", "/whole.bin")])
        if path == "/file.bin":
            return self.reply(302, b"", [("Location", "file:///etc/passwd")])
        return self.reply(404)


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
with open(sys.argv[1] + ".new", "w") as out:
    out.write(f"{server.server_port} {SHA} {hashlib.sha256(OTHER).hexdigest()}\n")
os.replace(sys.argv[1] + ".new", sys.argv[1])
server.serve_forever()
