"""Uses the page of `mulciber serve` in a browser without a window.

    python3 serve_page.py CHROMIUM URL [KEY]

Prints what does not work; exit code 1 then."""
import base64
import json
import os
import sys
import tempfile
import time

from page import Browser

program, url = sys.argv[1:3]
KEY = sys.argv[3] if len(sys.argv) > 3 else ""  # where the server needs one
wrong = []

# Text that tries everything that markdown has, and to be HTML.
MARKDOWN = "# Head\n\nA **bold** `x < y` [link](https://example.org)\n\n- one\n  - inner\n- two\n\n1. first\n\n> quoted\n\n```python\nif a < b:\n    pass  # so\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n<img src=x onerror=alert(1)> [bad](javascript:alert(1))"


def wait_for(browser, expression, seconds=600):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if browser.value(expression) is True:
            return
        time.sleep(0.05)
    wrong.append(f"waits in vain for {expression}: {browser.value('document.body.innerText.slice(0, 400)')}")


def ask(browser, words):
    browser.value(f"document.getElementById('question').value = {json.dumps(words)}; document.getElementById('send').click()")


def screenshot(browser, name):
    """Where MULCIBER_SCREENSHOT names a folder."""
    folder = os.environ.get("MULCIBER_SCREENSHOT")
    if folder:
        data = browser.call("Page.captureScreenshot", format="png")["data"]
        with open(os.path.join(folder, f"{name}.png"), "wb") as file:
            file.write(base64.b64decode(data))


def set_value(browser, name, value, event="input"):
    browser.value(f"(() => {{ const e = document.getElementById('{name}');"
                  f" if (e.type === 'checkbox') e.checked = {json.dumps(value)}; else e.value = {json.dumps(value)};"
                  f" e.dispatchEvent(new Event('{event}', {{bubbles: true}})); }})()")


def enter_key(browser):
    """A server that needs a key: the page says so where it is entered, on a phone and on a desk."""
    for width, height in ((1280, 800), (390, 780)):
        browser.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        browser.open(url + "/")
        for given, words in (("", "needs a key"), ("wrong", "does not know this key"), ("schl\u00fcssel", "does not know this key")):
            if given:
                browser.value(f"document.getElementById('key').value = {json.dumps(given)}; document.getElementById('use-key').click()")
            wait_for(browser, f"document.getElementById('key-problem').textContent.includes({json.dumps(words)})")
            browser.check(wrong, f"the key's place at {width}", "(() => { const box = document.getElementById('key').getBoundingClientRect();"
                          " return box.width > 80 && box.bottom < innerHeight && document.activeElement.id === 'key' &&"
                          " document.getElementById('key').getAttribute('aria-invalid') === 'true' &&"
                          " document.getElementById('log').textContent === '' && document.documentElement.scrollWidth <= innerWidth; })()")
            screenshot(browser, f"key-{given and 'wrong' or 'missing'}-{width}")
    set_value(browser, "key", KEY, "change")
    browser.value("document.getElementById('use-key').click()")
    wait_for(browser, "document.getElementById('model').value === 'chat'")
    browser.check(wrong, "the key is known", "document.getElementById('settings').hidden && document.getElementById('key-problem').hidden"
                  " && document.activeElement.id === 'question'")
    screenshot(browser, "key-known")
    # One that is taken away while a conversation goes on.
    set_value(browser, "max_tokens", "4")
    ask(browser, "The red hammer")
    wait_for(browser, "running === null && document.querySelectorAll('.again').length === 1")
    browser.value("document.getElementById('key').value = 'other'")
    ask(browser, "And?")
    wait_for(browser, "!document.getElementById('settings').hidden && document.getElementById('key-problem').textContent.includes('does not know')")
    browser.check(wrong, "the conversation stays", "document.querySelectorAll('.user').length === 2")


with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
    browser = Browser(program, folder)
    try:
        if KEY:
            enter_key(browser)
            sys.exit(bool([print(words) for words in wrong]))
        browser.call("Emulation.setDeviceMetricsOverride", width=390, height=780, deviceScaleFactor=2, mobile=True)
        browser.call("Emulation.setFocusEmulationEnabled", enabled=True)
        browser.open(url + "/")
        wait_for(browser, "document.getElementById('model').value === 'chat'")
        browser.check(wrong, "markdown", f"""(() => {{
            const box = element('div', {{}}, ...markdown({json.dumps(MARKDOWN)}));
            const has = s => box.querySelectorAll(s).length;
            return has('h2') === 1 && has('strong') === 1 && has('ul > li') === 3 && has('ul ul') === 1 && has('ol') === 1 &&
                has('blockquote') === 1 && has('pre code.language-python') === 1 && has('td') === 2 && has('img') === 0 &&
                has('a') === 1 && has('.code-word') === 2 && has('.code-comment') === 1 && box.querySelector('pre code').textContent.includes('a < b') || box.innerHTML; }})()""")
        browser.check(wrong, "code and paragraphs in a list, aligned cells, emphasis of both kinds, addresses", """(() => {
            const made = text => element('div', {}, ...markdown(text));
            const items = made('1. one\\n\\n   ```py\\n   if x:\\n       y\\n   ```\\n\\n   more\\n2. two\\n   - _in_ __two__ snake_case_name');
            const table = made('| a | b |\\n|:-:|--:|\\n| `x|y` | \\\\| |');
            const links = made('![seen](https://x.org/a_(b)) https://y.org/q?a=1. \\\\*no\\\\*');
            return items.querySelectorAll('ol > li').length === 2 && items.querySelector('code').textContent === 'if x:\\n    y' &&
                items.querySelector('li').lastChild.textContent === 'more' && items.querySelector('ol ul em').textContent === 'in' &&
                items.querySelector('ol ul strong').textContent === 'two' && items.querySelector('ol ul').textContent.includes('snake_case_name') &&
                [...table.querySelectorAll('td')].map(cell => cell.textContent + cell.style.textAlign).join() === 'x|ycenter,|right' &&
                [...links.querySelectorAll('a')].map(a => a.getAttribute('href')).join() === 'https://x.org/a_(b),https://y.org/q?a=1' &&
                links.querySelectorAll('img, em').length === 0 && links.textContent.endsWith('*no*') &&
                made('***x*** a ** b ** c').innerHTML === '<p><strong><em>x</em></strong> a ** b ** c</p>' &&
                made('- a\\r\\n- b\\r\\n').querySelectorAll('li').length === 2
                || items.innerHTML + table.innerHTML + links.innerHTML; })()""")
        # Texts that repeat a mark without end take no longer for it.
        browser.check(wrong, "hostile markdown", """(() => {
            const begin = performance.now();
            for (const text of ['a ' + '`'.repeat(20000), '>'.repeat(20000) + 'x', '- '.repeat(10000), '*a '.repeat(10000), '**a '.repeat(10000), '['.repeat(20000)])
                markdown(text);
            return performance.now() - begin < 2000 || performance.now() - begin; })()""")
        # A question; the small model answers with nonsense, which is enough.
        browser.value("document.getElementById('open-settings').click()")
        browser.check(wrong, "the settings open", "!document.getElementById('settings').hidden")
        for name, value in (("max_tokens", "12"), ("temperature", "1"), ("seed", "3"), ("system", "Be brief.")):
            set_value(browser, name, value)
        browser.value("document.getElementById('open-settings').click()")
        ask(browser, "The red hammer")
        wait_for(browser, "document.querySelectorAll('.again').length === 1")
        browser.check(wrong, "facts", "/^\\d+ tokens/.test(document.querySelector('.assistant .facts').textContent) || document.querySelector('.assistant .facts').textContent")
        browser.check(wrong, "an answer", "messages.length === 2 && messages[1].content.length > 0")
        first = browser.value("messages[1].content")
        # One seed gives one answer.
        browser.value("document.querySelector('.again').click()")
        wait_for(browser, "messages.length === 2 && running === null && document.querySelectorAll('.again').length === 1")
        if browser.value("messages[1].content") != first:
            wrong.append("asked again with one seed, another answer")
        # What an answer's tokens read: a map for each layer, then for each head, and a row or a column for a token.
        browser.check(wrong, "an answer can be copied, looked into and made again",
                      "[...document.querySelectorAll('.assistant .actions button')].map(b => b.textContent).join() === 'Copy,Attention,Regenerate'")
        browser.value("[...document.querySelectorAll('.actions button')].find(b => b.textContent === 'Attention').click()")
        wait_for(browser, "document.getElementById('attention').open && !document.getElementById('views').hidden")
        browser.check(wrong, "a map for each layer", "document.getElementById('layer').length === models[0].layers + 2")
        browser.check(wrong, "a token for each", "document.querySelectorAll('#map-tokens span').length === shownAttention.tokens.length"
                      " && document.querySelectorAll('#map-tokens .prompt').length === shownAttention.prompt && shownAttention.prompt > 0")
        ROW = "[...shownAttention.map.slice({0} * shownAttention.tokens.length, ({0} + 1) * shownAttention.tokens.length)]"
        browser.check(wrong, "a row of the mean adds up to 1", f"Math.abs({ROW.format(3)}.reduce((a, b) => a + b) - 1) < 1e-3")
        browser.value("document.querySelectorAll('#map-tokens span')[4].click()")
        browser.check(wrong, "a token is chosen", "document.querySelectorAll('#map-tokens .chosen').length === 1 && shownAttention.chosen === 4")
        browser.check(wrong, "what it reads", "/ reads .*%/.test(document.getElementById('reading').textContent) || document.getElementById('reading').textContent")
        set_value(browser, "layer", "1", "change")
        browser.value("shownAttention.mean = shownAttention.map")
        set_value(browser, "head", "2", "change")
        wait_for(browser, "shownAttention.heads.size === 1 && shownAttention.map === shownAttention.heads.get('1')[2]")
        browser.check(wrong, "the mean of the heads",
                      "Math.max(...shownAttention.mean.map((w, i) => Math.abs(w - shownAttention.heads.get('1').reduce((s, head) => s + head[i], 0)"
                      " / models[0].heads))) < 1e-4")
        set_value(browser, "direction", "read", "change")
        browser.check(wrong, "by which it is read", "/ is read by .*%/.test(document.getElementById('reading').textContent)")
        browser.check(wrong, "the map is painted", """(() => { const canvas = document.querySelector('#map canvas');
            const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
            return canvas.width === shownAttention.tokens.length && data[3] > 0 && data[4 * canvas.width - 1] === 0; })()""")
        browser.check(wrong, "no dialog is wider than the screen", "document.getElementById('attention').scrollWidth <= innerWidth")
        screenshot(browser, "attention")
        browser.value("document.getElementById('close-attention').click()")
        # Probabilities.
        set_value(browser, "probabilities", True)
        browser.value("document.querySelector('.again').click()")
        wait_for(browser, "running === null && document.querySelectorAll('.tokens span').length > 0")
        # With the keyboard: Tab comes to one of them, arrows go on.
        browser.check(wrong, "tokens by the keyboard", """(() => {
            const spans = [...document.querySelectorAll('.tokens span')];
            spans[0].focus();
            spans[0].dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowRight', bubbles: true, cancelable: true}));
            return document.activeElement === spans[1] && spans.filter(span => span.tabIndex === 0).length === 1 &&
                !document.getElementById('token').hidden && !document.querySelector('[aria-busy]'); })()""")
        browser.value("document.querySelector('.tokens span').click()")
        browser.check(wrong, "probabilities of a token",
                      "document.querySelectorAll('#token div').length >= 5 && document.getElementById('token').textContent.includes('%')"
                      " || document.getElementById('token').textContent")
        browser.check(wrong, "nothing is wider than the screen",
                      "document.documentElement.scrollWidth <= innerWidth || document.documentElement.scrollWidth")
        screenshot(browser, "probabilities")
        browser.check(wrong, "perplexity", "document.querySelector('.assistant .facts').textContent.includes('perplexity')")
        browser.value("[...document.querySelectorAll('.actions button')].find(b => b.textContent === 'Text').click()")
        browser.check(wrong, "the same answer as text", "document.querySelector('.assistant .text') !== null")
        # A question is taken back, with all that follows.
        browser.value("document.querySelector('.user .facts button').click()")
        browser.check(wrong, "a question is edited", "messages.length === 0 && document.getElementById('question').value === 'The red hammer'"
                      " && document.querySelectorAll('.message').length === 0")
        # Stopping.
        set_value(browser, "probabilities", False)
        set_value(browser, "max_tokens", "")
        browser.value("document.getElementById('fresh').click()")
        ask(browser, "Count.")
        wait_for(browser, "running !== null && document.querySelector('.assistant .text')?.textContent.length > 0"
                 " && !document.querySelector('.waiting')")
        browser.value("document.getElementById('stop').click()")
        wait_for(browser, "running === null && document.querySelector('.assistant .facts').textContent.includes('stopped')"
                 " || document.querySelector('.assistant .facts').textContent.includes('cut at')")
        # An error is shown.
        set_value(browser, "temperature", "9")
        ask(browser, "And?")
        wait_for(browser, "document.querySelector('.error')?.textContent.includes('temperature')")
        browser.check(wrong, "a question without an answer is not sent again", """(() => {
            messages.push({role: 'user', content: 'again'});
            const sent = requestBody().messages;
            messages.pop();
            return messages.at(-1).content === '' && sent.at(-1).content === 'again' && sent.every(message => message.content) &&
                sent.every((message, i) => message.role !== sent[i - 1]?.role) || JSON.stringify(sent); })()""")
        browser.check(wrong, "nobody else is asked",
                      "performance.getEntriesByType('resource').every(entry => entry.name.startsWith(location.origin))")
    finally:
        browser.close()

for words in wrong:
    print(words)
sys.exit(bool(wrong))
