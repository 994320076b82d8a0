"""`mulciber chat` in a pseudo terminal: Ctrl-C stops an answer and not the program, and /exit leaves it."""
import os
import pty
import select
import signal
import sys
import time

command, model = sys.argv[1:]
pid, terminal = pty.fork()
if pid == 0:
    os.execv(command, [command, "chat", "-m", model, "--stats"])

seen, at = b"", 0  # all that the terminal has shown, and how much of it was looked at


def fail(problem):
    os.kill(pid, signal.SIGKILL)
    sys.exit(f"FAILED: {problem}: {seen[-500:]}")


def read_until(found, what, seconds=600):
    """What the terminal shows until found(it) gives a place."""
    global seen, at
    end = time.time() + seconds
    while (place := found(seen[at:])) < 0:
        if not select.select([terminal], [], [], max(0, end - time.time()))[0]:
            fail(f"{what} does not come")
        try:
            seen += os.read(terminal, 4096)
        except OSError:
            fail(f"the program ended before {what}")
    part, at = seen[at:at + place], at + place
    return part


def text(wanted):
    return read_until(lambda shown: shown.find(wanted) + len(wanted) if wanted in shown else -1, wanted)


def type_in(line):
    os.write(terminal, line)


text(b"> ")
type_in(b"The red hammer\n")
text(b"hammer\r\n")
read_until(lambda shown: 20 if len(shown) >= 20 else -1, "some of an answer")
type_in(b"\x03")
stopped = text(b"> ")
if b"context is full" in stopped or b" new at " not in stopped:
    fail("Ctrl-C did not stop the answer")
type_in(b"\x03")  # at the prompt: how to leave
text(b"leaves)\r\n> ")
type_in(b"/history\n")
text(b"user: The red hammer")
text(b"> ")
type_in(b"/exit\n")
_, status = os.waitpid(pid, 0)
if os.waitstatus_to_exitcode(status) != 0:
    sys.exit(f"FAILED: exit {os.waitstatus_to_exitcode(status)}")
