// Tokens as labels: how a token is written on the page, and which tokens are pieces of one word.

const wordMark = "\u2581";

// The marker of a word's start is dropped (bars show words), other spaces become visible, and
// characters without a shape, or that would turn the text round, are named by their code points.
function labelOf(token, longest = 16) {
  const text = token.length > 1 && token.startsWith(wordMark) ? token.slice(1) : token;
  const shown = text.replace(/\n/g, "\u21b5").replace(/[\u2581\s]/g, "\u2423")
    .replace(/^\u200d$|[\0-\x1f\x7f-\x9f\u200b\u200c\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g,
             (c) => "U+" + c.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0"));
  const letters = Array.from(shown || "\u2423");
  return letters.length > longest ? letters.slice(0, longest - 1).join("") + "\u2026"
                                  : letters.join("");
}

// [first, end) of every word that has two or more pieces; punctuation and <...> are not part of a
// word.
function wordsOf(tokens) {
  const words = [];
  const inside = (token) => !token.startsWith(wordMark) && !/^(<.+>|[\p{P}\p{S}\s]+)$/u.test(token);
  for (let first = 0; first < tokens.length; ++first) {
    if (!tokens[first].startsWith(wordMark)) continue;
    let end = first + 1;
    while (end < tokens.length && inside(tokens[end])) ++end;
    if (end - first > 1) words.push([first, end]);
    first = end - 1;
  }
  return words;
}

const pen = document.createElement("canvas").getContext("2d");
function widthOf(label, size) {
  pen.font = `${size}px ${getComputedStyle(document.body).fontFamily}`;
  return pen.measureText(label).width;
}
