"""Walks through the page of `mulciber conform --html` with the keyboard alone, in a browser without a window.

    python3 page.py CHROMIUM PAGE

Speaks the browser's DevTools protocol over its pipe. Prints what cannot be reached or does not work; exit code 1 then."""
import contextlib
import functools
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

KEYS = {"Tab": 9, "Enter": 13, " ": 32, "ArrowDown": 40, "End": 35, "Escape": 27}


class Browser:
    def __init__(self, program, folder):
        commands, self.commands = os.pipe()
        self.answers, answers = os.pipe()

        def connect():
            # The protocol is on descriptors 3 and 4; the first four may be taken by the pipes themselves.
            high_in, high_out = os.dup(commands), os.dup(answers)
            os.dup2(high_in, 3)
            os.dup2(high_out, 4)

        self.process = subprocess.Popen(
            [program, "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", f"--user-data-dir={folder}",
             "about:blank"], close_fds=False, start_new_session=True, preexec_fn=connect,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(commands)
        os.close(answers)
        self.rest, self.number, self.session = b"", 0, None
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(target for target in targets if target["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=page["targetId"], flatten=True)["sessionId"]

    def read(self):
        while b"\0" not in self.rest:
            part = os.read(self.answers, 1 << 16)
            if not part:
                raise SystemExit("the browser ended")
            self.rest += part
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.read()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise SystemExit(f"{method}: {answer['error']}")
                return answer["result"]

    def open(self, url):
        self.call("Page.enable")
        self.call("Page.navigate", url=url)
        while self.read().get("method") != "Page.loadEventFired":
            pass

    def value(self, expression, wait=False):
        """wait: for what a promise gives."""
        return self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=wait)["result"].get("value")

    def check(self, wrong, what, expression):
        """Adds to the list of what is wrong what the page gives for an expression, unless that is true."""
        found = self.value(expression)
        if found is not True:
            wrong.append(f"{what}: {found}")

    def press(self, key, shift=False):
        event = {"key": key, "code": key, "windowsVirtualKeyCode": KEYS[key], "modifiers": 8 if shift else 0}
        if key in ("Enter", " "):
            event["text"] = "\r" if key == "Enter" else " "
        self.call("Input.dispatchKeyEvent", type="keyDown", **event)
        self.call("Input.dispatchKeyEvent", type="keyUp", **{k: v for k, v in event.items() if k != "text"})

    def close(self):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@contextlib.contextmanager
def showing(program, page):
    """A browser that shows a file."""
    # Children of the killed browser may still write to the folder while it is removed.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        browser = Browser(program, folder)
        try:
            browser.open(pathlib.Path(page).resolve().as_uri())
            yield browser
        finally:
            browser.close()


# Everything that a mouse could use and that is shown. Radio buttons of a group would count as one; there are none.
MARK = """(() => {
  const all = [...document.querySelectorAll('a[href], button, input, select, summary, [tabindex="0"], [onclick]')]
      .filter(e => e.getClientRects().length && !e.disabled && e.tabIndex >= 0);
  all.forEach((e, i) => e.dataset.place = i);
  return all.length;
})()"""
HERE = "document.activeElement.dataset.place ?? ''"


def main():
    program, page = sys.argv[1:]
    wrong = []
    with showing(program, page) as browser:
        count = browser.value(MARK)
        reached, unmarked = set(), []
        for _ in range(count + 5):
            browser.press("Tab")
            place = browser.value(HERE)
            if place == "":
                continue
            reached.add(place)
            shown = browser.value("(() => { const s = getComputedStyle(document.activeElement);"
                                  " return s.outlineStyle !== 'none' || s.boxShadow !== 'none'; })()")
            if not shown:
                unmarked.append(browser.value("document.activeElement.outerHTML.slice(0, 80)"))
        for place in sorted(set(map(str, range(count))) - reached, key=int):
            wrong.append("Tab does not reach " +
                         browser.value(f"document.querySelector('[data-place=\"{place}\"]').outerHTML.slice(0, 80)"))
        wrong += [f"focus does not show on {text}" for text in unmarked]
        # What only a pointer could use has a click handler and no place in the order.
        wrong += [f"for a pointer alone: {text}" for text in browser.value(
            "[...document.querySelectorAll('[onclick]')].filter(e => e.tabIndex < 0 && !e.closest('#body'))"
            ".map(e => e.outerHTML.slice(0, 80))")]

        check = functools.partial(browser.check, wrong)

        # A cell of the summary lists its cases; the list's arrow keys choose one, and its details appear.
        browser.value("document.querySelector('#matrix button').focus()")
        before = browser.value("document.getElementById('shown').textContent")
        browser.press("Enter")
        check("Enter on a cell of the summary changes nothing", f"document.getElementById('shown').textContent !== {json.dumps(before)}")
        browser.value("document.getElementById('body').focus()")
        browser.press("ArrowDown")
        check("the arrow keys choose no case", "document.getElementById('detail').textContent.includes('mulciber.')")
        first = browser.value("document.getElementById('detail').textContent")
        browser.press("End")
        check("End does not go to the last case", f"document.getElementById('detail').textContent !== {json.dumps(first)}")
        # A status is a checkbox: the space bar takes its cases out.
        browser.value("document.querySelector('#controls button[type=reset]').focus()")
        browser.press("Enter")
        check("Enter on `Show all` does not show all", f"document.getElementById('shown').textContent === {json.dumps(before)}")
        browser.value("document.querySelector('#statuses input').focus()")
        browser.press(" ")
        check("the space bar does not change a status", f"document.getElementById('shown').textContent !== {json.dumps(before)}")
    print(f"{len(reached)} of {count} controls reached")
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
