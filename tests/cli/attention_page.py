"""Looks at the attention page of the small Gemma model (3 layers of 4 heads, windows of 5) in a browser without a window.

    python3 attention_page.py CHROMIUM PAGE

Prints what is wrong; exit code 1 then."""
import functools
import sys

from page import KEYS, showing

KEYS.update({"ArrowRight": 39, "ArrowLeft": 37})
# Whether cell (query, key) of the map has the colour of what is masked.
MASKED = """(() => {
  const canvas = document.getElementById('cells'), [q, k] = %s;
  const pixel = canvas.getContext('2d').getImageData(k, q, 1, 1).data;
  const hex = getComputedStyle(document.documentElement).getPropertyValue('--masked').trim();
  return [1, 3, 5].every((at, i) => pixel[i] === parseInt(hex.slice(at, at + 2), 16));
})()"""


def main():
    program, page = sys.argv[1:]
    wrong = []
    with showing(program, page) as browser:
        check = functools.partial(browser.check, wrong)
        check("the prompt is not called one", "document.getElementById('source-name').textContent === 'Prompt'")
        check("not 12 maps and 3 means", "document.querySelectorAll('#grid button').length === 15")
        check("no line where the prompt ends", "document.querySelectorAll('#plot .prompt').length === 1")
        check("the last layer sees everything before a token", f"!{MASKED % '[9, 2]'} && {MASKED % '[2, 9]'}")
        browser.value("document.querySelector('#layer input[value=\"0\"]').click()")
        check("the window of the first layer does not show",
              f"{MASKED % '[9, 2]'} && {MASKED % '[9, 4]'} && !{MASKED % '[9, 5]'} && {MASKED % '[2, 9]'}")
        check("the title", "document.getElementById('matrix-title').textContent.includes('Self-attention, layer 1')")
        # A map is painted, and told, when it comes into view.
        browser.value("new Promise(done => { document.getElementById('grid').scrollIntoView(); setTimeout(done, 1000); })", wait=True)
        check("small maps have no measures",
              "[...document.querySelectorAll('#grid button')].every(b => b.getAttribute('aria-label').includes('bits'))")
        browser.value("document.getElementById('plot').focus()")
        for key in ("ArrowRight", "ArrowRight", "ArrowDown"):
            browser.press(key)
        check("arrow keys move over no cells", "document.getElementById('live').textContent.includes('reads')")
        browser.value("document.querySelector('#kind input[value=decoder_rollout]').click()")
        check("no rollout", "document.getElementById('matrix-title').textContent.includes('rollout through layer')")
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
