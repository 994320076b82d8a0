"""Connections that curl would not make, to a server with --header-seconds 1, --body-seconds 2, --body 1 and
--clients 64.

    python3 serve_sockets.py URL"""
import socket
import sys
import time
import urllib.parse

URL = urllib.parse.urlsplit(sys.argv[1])


def connect():
    connection = socket.create_connection((URL.hostname, URL.port), timeout=20)
    return connection


def talk(data, close=True):
    """Everything that comes back until the server closes."""
    with connect() as connection:
        try:
            connection.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            pass
        if close:
            connection.shutdown(socket.SHUT_WR)
        received = b""
        try:
            while part := connection.recv(1 << 16):
                received += part
        except ConnectionResetError:
            pass
        return received


def status(answer):
    assert answer.startswith(b"HTTP/1.1 "), answer[:200]
    return int(answer.split()[1])


GET = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"

# A flood in one connection: each request is answered, in order, and the last one closes.
answer = talk(GET * 200 + GET.replace(b"Host", b"Connection: close\r\nHost"), close=False)
assert answer.count(b"HTTP/1.1 200") == 201, answer.count(b"HTTP/1.1 200")

# Headers without end: one of a megabyte, and many small ones.
for headers in (b"X-Large: " + b"x" * 1_000_000 + b"\r\n", b"X-Small: x\r\n" * 100_000):
    answer = talk(b"GET /health HTTP/1.1\r\nHost: localhost\r\n" + headers + b"\r\n", close=False)
    assert status(answer) == 431 and b"headers_too_large" in answer, answer[:300]

# An address that is too long, and what is no HTTP.
assert status(talk(b"GET /" + b"x" * 20_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", close=False)) == 414
assert status(talk(b"NONSENSE\r\n\r\n", close=False)) == 400
assert status(talk(b"DELETE /health HTTP/1.1\r\nHost: localhost\r\n\r\n")) >= 400

# A body whose length is not a number, and one that ends too early.
POST = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %s\r\n\r\n%s"
assert status(talk(POST % (b"-1", b"{}"), close=False)) in (400, 413)
assert status(talk(POST % (b"100", b"{}"))) == 400
# A length that is said twice, or in two ways, is none: a proxy might see another one.
AGAIN = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n%s\r\n{}" + GET
for headers in (b"Content-Length: 2\r\nContent-Length: 80\r\n", b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n",
                b"Transfer-Encoding: gzip, chunked\r\n", b"Content-Length: 2x\r\n", b"Content-Length: +2\r\n", b"Content-Length: 2, 2\r\n",
                b"Content-Length: 0x2\r\n", b"Content-Length: 2\r\nHost: other\r\n"):
    answer = talk(AGAIN % headers, close=False)
    assert status(answer) == 400 and answer.count(b"HTTP/1.1") == 1, (headers, answer)
assert status(talk(GET.replace(b"Host: localhost\r\n", b"Connection: close\r\n"), close=False)) == 400
# The body of a request that has none is not taken for the next request.
answer = talk(GET.replace(b"\r\n\r\n", b"\r\nContent-Length: %d\r\n\r\n" % len(GET)) + GET, close=False)
assert status(answer) == 200 and answer.count(b"HTTP/1.1") == 1, answer
# Without a length there is no body, for which nobody is waited.
begin = time.monotonic()
answer = talk(POST.replace(b"Content-Length: %s\r\n", b"Connection: close\r\n").replace(b"%s", b""), close=False)
assert status(answer) == 400 and b"invalid_json" in answer and time.monotonic() - begin < 1.5, answer
# Chunks without end.
answer = talk(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n" +
              b"10000\r\n" + (b"x" * 65536 + b"\r\n10000\r\n") * 40, close=False)
assert status(answer) == 413 and b"body_too_large" in answer, answer[:300]

# Somebody who sends a byte now and then is not waited for, and holds nobody up.
with connect() as slow:
    begin = time.monotonic()
    received = b""
    try:
        for byte in GET * 10:
            slow.sendall(bytes([byte]))
            assert status(talk(GET.replace(b"Host", b"Connection: close\r\nHost"), close=False)) == 200
            time.sleep(0.2)
            assert time.monotonic() - begin < 10
    except (BrokenPipeError, ConnectionResetError):
        pass
    assert time.monotonic() - begin < 5, "a slow sender is waited for"

# A body that comes in so slowly is not waited for either (--body-seconds 2).
with connect() as slow:
    slow.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n")
    begin = time.monotonic()
    try:
        while time.monotonic() - begin < 10:
            slow.sendall(b" ")
            time.sleep(0.3)
    except (BrokenPipeError, ConnectionResetError):
        pass
    assert time.monotonic() - begin < 6, "a slow body is waited for"

# A flood of requests that compute, in one connection, by a client that never reads: nobody else waits for it.
with connect() as deaf:
    body = b'{"model":"chat","prompt":"x","max_tokens":2}'
    deaf.sendall((b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)) * 50)
    begin = time.monotonic()
    for _ in range(20):
        assert status(talk(GET.replace(b"Host", b"Connection: close\r\nHost"), close=False)) == 200
    assert time.monotonic() - begin < 5, "a flood holds others up"

# Connections that say nothing do no harm either.
idle = [connect() for _ in range(30)]
assert status(talk(GET.replace(b"Host", b"Connection: close\r\nHost"), close=False)) == 200
for connection in idle:
    connection.close()

# More clients than the server takes (64): those who come too late are told so, but for who watches the server.
many = [connect() for _ in range(64)]
time.sleep(0.3)
answer = talk(POST % (b"2", b"{}"), close=False)
assert status(answer) == 503 and b"too_many_clients" in answer and b"Retry-After" in answer, answer[:300]
assert status(talk(GET, close=False)) == 200
answer = talk(GET.replace(b"health", b"metrics"), close=False)
assert status(answer) == 200 and b'mulciber_requests_total{endpoint="other",status="503"} 1' in answer, answer[-3000:]
# Those who are turned away, and say nothing, hold nobody up: eight are turned away at once, each in a tenth of a second.
silent = [connect() for _ in range(80)]
begin = time.monotonic()
assert status(talk(GET.replace(b"GET /health", b"HEAD /health?x"), close=False)) == 200
assert time.monotonic() - begin < 8, "silent clients hold up who watches the server"
for connection in many + silent:
    connection.close()
for _ in range(100):
    if status(talk(GET.replace(b"Host", b"Connection: close\r\nHost"), close=False)) == 200:
        break
    time.sleep(0.02)
else:
    raise SystemExit("closed connections are not forgotten")
