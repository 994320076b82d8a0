"""Uses the page of `mulciber serve` in a browser without a window.

    python3 serve_page.py CHROMIUM URL

Prints what does not work; exit code 1 then."""
import base64
import json
import os
import sys
import tempfile
import time

from page import Browser

program, url = sys.argv[1:]
wrong = []

# Text that tries everything that markdown has, and to be HTML.
MARKDOWN = "# Head\n\nA **bold** `x < y` [link](https://example.org)\n\n- one\n  - inner\n- two\n\n1. first\n\n> quoted\n\n```python\nif a < b:\n    pass\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n<img src=x onerror=alert(1)> [bad](javascript:alert(1))"


def wait_for(browser, expression, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if browser.value(expression) is True:
            return
        time.sleep(0.05)
    wrong.append(f"waits in vain for {expression}: {browser.value('document.body.innerText.slice(0, 400)')}")


def ask(browser, words):
    browser.value(f"document.getElementById('question').value = {json.dumps(words)}; document.getElementById('send').click()")


def set_value(browser, name, value):
    browser.value(f"(() => {{ const e = document.getElementById('{name}');"
                  f" if (e.type === 'checkbox') e.checked = {json.dumps(value)}; else e.value = {json.dumps(value)};"
                  " e.dispatchEvent(new Event('input', {bubbles: true})); })()")


with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
    browser = Browser(program, folder)
    try:
        browser.call("Emulation.setDeviceMetricsOverride", width=390, height=780, deviceScaleFactor=2, mobile=True)
        browser.open(url + "/")
        wait_for(browser, "document.getElementById('model').value === 'chat'")
        browser.check(wrong, "markdown", f"""(() => {{
            const box = element('div', {{}}, ...markdown({json.dumps(MARKDOWN)}));
            const has = s => box.querySelectorAll(s).length;
            return has('h2') === 1 && has('strong') === 1 && has('ul > li') === 3 && has('ul ul') === 1 && has('ol') === 1 &&
                has('blockquote') === 1 && has('pre code.language-python') === 1 && has('td') === 2 && has('img') === 0 &&
                has('a') === 1 && box.querySelector('pre code').textContent.includes('a < b') || box.innerHTML; }})()""")
        # A question; the small model answers with nonsense, which is enough.
        browser.value("document.getElementById('open-settings').click()")
        browser.check(wrong, "the settings open", "!document.getElementById('settings').hidden")
        for name, value in (("max_tokens", "12"), ("temperature", "1"), ("seed", "3"), ("system", "Be brief.")):
            set_value(browser, name, value)
        browser.value("document.getElementById('open-settings').click()")
        ask(browser, "The red hammer")
        wait_for(browser, "document.querySelectorAll('.again').length === 1")
        browser.check(wrong, "facts", "/^\\d+ tokens/.test(document.querySelector('.facts').textContent) || document.querySelector('.facts').textContent")
        browser.check(wrong, "an answer", "messages.length === 2 && messages[1].content.length > 0")
        first = browser.value("messages[1].content")
        # The same seed gives the same answer again.
        browser.value("document.querySelector('.again').click()")
        wait_for(browser, "messages.length === 2 && running === null && document.querySelectorAll('.again').length === 1")
        if browser.value("messages[1].content") != first:
            wrong.append("asked again with one seed, another answer")
        # Probabilities.
        set_value(browser, "probabilities", True)
        browser.value("document.querySelector('.again').click()")
        wait_for(browser, "running === null && document.querySelectorAll('.tokens span').length > 0")
        browser.value("document.querySelector('.tokens span').click()")
        browser.check(wrong, "probabilities of a token",
                      "document.querySelectorAll('#token div').length >= 5 && document.getElementById('token').textContent.includes('%')"
                      " || document.getElementById('token').textContent")
        browser.check(wrong, "nothing is wider than the screen",
                      "document.documentElement.scrollWidth <= innerWidth || document.documentElement.scrollWidth")
        picture = os.environ.get("MULCIBER_SCREENSHOT")
        if picture:
            data = browser.call("Page.captureScreenshot", format="png")["data"]
            with open(picture, "wb") as file:
                file.write(base64.b64decode(data))
        # Stopping.
        set_value(browser, "probabilities", False)
        set_value(browser, "max_tokens", "")
        browser.value("document.getElementById('fresh').click()")
        ask(browser, "Count.")
        wait_for(browser, "running !== null && document.querySelector('.assistant .text')?.textContent.length > 0")
        browser.value("document.getElementById('stop').click()")
        wait_for(browser, "running === null && document.querySelector('.facts').textContent.includes('stopped')"
                 " || document.querySelector('.facts').textContent.includes('cut at')")
        # An error is shown.
        set_value(browser, "temperature", "9")
        ask(browser, "And?")
        wait_for(browser, "document.querySelector('.error')?.textContent.includes('temperature')")
        browser.check(wrong, "nobody else is asked",
                      "performance.getEntriesByType('resource').every(entry => entry.name.startsWith(location.origin))")
    finally:
        browser.close()

for words in wrong:
    print(words)
sys.exit(bool(wrong))
