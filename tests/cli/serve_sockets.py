"""Connections that curl would not make, to a server with --header-seconds 3600, --body-seconds 3600, --body 1 and
--clients 64; with `slow` those that send a byte now and then, to one with --header-seconds 1 and --body-seconds 1.

    python3 serve_sockets.py URL [slow]"""
import re
import select
import socket
import sys
import urllib.parse

URL = urllib.parse.urlsplit(sys.argv[1])


def connect():
    return socket.create_connection((URL.hostname, URL.port), timeout=600)  # which only a hang takes


def until_closed(connection):
    """A server's answer comes in as many pieces as the two machines make of it."""
    received = b""
    try:
        while part := connection.recv(1 << 16):
            received += part
    except ConnectionResetError:
        pass
    return received


def talk(data, close=True):
    """Everything that comes back until the server closes."""
    with connect() as connection:
        try:
            connection.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            pass
        if close:
            connection.shutdown(socket.SHUT_WR)
        return until_closed(connection)


def status(answer):
    assert answer.startswith(b"HTTP/1.1 "), answer[:200]
    return int(answer.split()[1])


GET = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
LAST = GET.replace(b"Host", b"Connection: close\r\nHost")


def metric(name):
    answer = talk(LAST.replace(b"health", b"metrics"), close=False).decode()
    return sum(float(line.split()[-1]) for line in answer.splitlines() if line.startswith(name))


def cut_off(head, byte):
    """Sends the head, and the byte again and again, until the server has had enough: what it says then."""
    with connect() as slow:
        slow.sendall(head)
        while not select.select([slow], [], [], 0.05)[0]:
            slow.sendall(byte)
        return until_closed(slow)


if sys.argv[2:] == ["slow"]:
    for head in (b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-Slow: ",
                 b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n"):
        answer = cut_off(head, b" ")
        assert status(answer) == 408 and b"request_timeout" in answer, answer[:300]
    sys.exit()

# A flood in one connection: each request is answered, in order, and the last one closes.
answer = talk(GET * 200 + LAST, close=False)
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
answer = talk(POST.replace(b"Content-Length: %s\r\n", b"Connection: close\r\n").replace(b"%s", b""), close=False)
assert status(answer) == 400 and b"invalid_json" in answer, answer
# Chunks without end.
answer = talk(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n" +
              b"10000\r\n" + (b"x" * 65536 + b"\r\n10000\r\n") * 40, close=False)
assert status(answer) == 413 and b"body_too_large" in answer, answer[:300]

# Somebody who sends a byte now and then holds nobody up: each time somebody else is answered first.
with connect() as slow:
    for byte in LAST[:-1]:
        slow.sendall(bytes([byte]))
        assert status(talk(LAST, close=False)) == 200
    slow.sendall(LAST[-1:])
    assert status(slow.recv(1 << 16)) == 200

# A flood of requests that compute, in one connection, by a client that never reads: nobody else waits for it.
DONE = 'mulciber_requests_total{endpoint="/v1/completions",status="200"}'
with connect() as deaf:
    before = metric(DONE)
    body = b'{"model":"chat","prompt":"x","ignore_eos":true,"max_tokens":4000}'
    deaf.sendall((b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)) * 50)
    while metric('mulciber_batch_running{model="chat"}') == 0:
        pass
    for _ in range(20):
        assert status(talk(LAST, close=False)) == 200
    assert metric(DONE) < before + 50, "a flood holds others up"

# Connections that say nothing do no harm either.
idle = [connect() for _ in range(30)]
assert status(talk(LAST, close=False)) == 200
for connection in idle:
    connection.close()

# More clients than the server takes (64): those who come too late are told so, but for who watches the server.
ASKS = POST.replace(b"Host", b"Connection: close\r\nHost") % (b"2", b"{}")
many = [connect() for _ in range(64)]
while status(answer := talk(ASKS, close=False)) != 503:
    many.append(connect())
assert status(answer) == 503 and b"too_many_clients" in answer and b"Retry-After" in answer, answer[:300]
assert status(talk(GET, close=False)) == 200
answer = talk(GET.replace(b"health", b"metrics"), close=False)
assert status(answer) == 200 and re.search(rb'mulciber_requests_total{endpoint="other",status="503"} [1-9]', answer), answer[-3000:]
# Clients that are refused and stay silent delay no monitoring of the server.
silent = [connect() for _ in range(80)]
assert status(talk(GET.replace(b"GET /health", b"HEAD /health?x"), close=False)) == 200
for connection in many + silent:
    connection.close()
# Closed connections are forgotten.
while status(talk(ASKS, close=False)) == 503:
    pass
