'use strict';
// Markdown as models write it, made of elements: no text of an answer is ever read as HTML.

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key in made) made[key] = value;
    else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

const INLINE = /(`+)([^]*?[^`])\1(?!`)|\*\*([^]+?)\*\*|(?<![\w*])\*(\S(?:[^*]*\S)?)\*(?!\*)|~~([^]+?)~~|\[([^\]]+)\]\((https?:\/\/[^\s)]+)\)/;

// What stands within a line: code, strong, emphasis, struck out, links.
function inline(text) {
  const nodes = [];
  for (let found; (found = INLINE.exec(text));) {
    if (found.index > 0) nodes.push(text.slice(0, found.index));
    const [whole, , code, strong, emphasis, struck, label, address] = found;
    if (code !== undefined) nodes.push(element('code', {}, code.replace(/^ (.*) $/, '$1')));
    else if (strong !== undefined) nodes.push(element('strong', {}, ...inline(strong)));
    else if (emphasis !== undefined) nodes.push(element('em', {}, ...inline(emphasis)));
    else if (struck !== undefined) nodes.push(element('del', {}, ...inline(struck)));
    else nodes.push(element('a', {href: address, rel: 'noopener noreferrer', target: '_blank'}, ...inline(label)));
    text = text.slice(found.index + whole.length);
  }
  if (text) nodes.push(text);
  return nodes;
}

function copyText(text, button) {
  const said = () => (button.textContent = 'Copied');
  if (navigator.clipboard) return navigator.clipboard.writeText(text).then(said);
  // Pages that came over plain HTTP from another machine have no clipboard.
  const field = element('textarea', {value: text});
  document.body.append(field);
  field.select();
  if (document.execCommand('copy')) said();
  field.remove();
}

// What most languages have alike: comments, texts, numbers, and the commonest words with a meaning of their own.
const CODE = new RegExp([
  /(?<comment>\/\/[^\n]*|\/\*[^]*?(?:\*\/|$)|(?<![\w$&])#(?!include|define|if|el|end|pragma)[^\n]*|(?<=^|\s)--\s[^\n]*)/,
  /(?<text>"""[^]*?(?:"""|$)|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`)/,
  /(?<number>\b(?:0[xXbB][\da-fA-F_]+|\d[\d_]*\.?\d*(?:[eE][+-]?\d+)?)\b)/,
  /(?<word>\b(?:and|as|async|await|bool|break|case|catch|char|class|const|continue|def|default|del|do|elif|else|end|enum)\b)/,
  /(?<word2>\b(?:except|export|extends|extern|false|False|finally|float|fn|for|from|func|function|if|impl|import|in|int)\b)/,
  /(?<word3>\b(?:interface|is|lambda|let|loop|match|mod|mut|namespace|new|nil|None|not|null|or|package|pass|private|pub)\b)/,
  /(?<word4>\b(?:public|raise|return|self|static|struct|super|switch|template|then|this|throw|trait|true|True|try|type)\b)/,
  /(?<word5>\b(?:typename|union|unsigned|use|using|var|virtual|void|while|with|yield|SELECT|FROM|WHERE|JOIN|ON|GROUP|BY)\b)/,
  /(?<word6>\b(?:ORDER|INSERT|INTO|VALUES|UPDATE|SET|CREATE|TABLE|AND|OR|NOT|NULL)\b)/
].map(part => part.source).join('|'), 'gm');

function highlighted(text) {
  const nodes = [];
  let at = 0;
  for (const found of text.matchAll(CODE)) {
    if (found.index > at) nodes.push(text.slice(at, found.index));
    const [kind] = Object.entries(found.groups).find(([, value]) => value !== undefined);
    nodes.push(element('span', {className: `code-${kind.replace(/\d/, '')}`}, found[0]));
    at = found.index + found[0].length;
  }
  nodes.push(text.slice(at));
  return nodes;
}

function codeBlock(text, language) {
  const copy = element('button', {type: 'button'}, 'Copy');
  copy.addEventListener('click', () => copyText(text, copy));
  const code = element('code', language ? {className: `language-${language}`} : {}, ...(language ? highlighted(text) : [text]));
  return element('div', {className: 'code'}, element('div', {className: 'bar'}, element('span', {}, language), copy), element('pre', {tabIndex: 0}, code));
}

const LIST = /^(\s*)([-*+]|\d+[.)])\s+(.*)$/;

// Lines from `at` on that form a list, deeper ones as lists inside; the list and the line behind it.
function list(lines, at) {
  const [, blanks, mark] = LIST.exec(lines[at]);
  const ordered = /\d/.test(mark);
  const made = element(ordered ? 'ol' : 'ul', ordered ? {start: parseInt(mark, 10)} : {});
  while (at < lines.length) {
    const found = LIST.exec(lines[at]);
    if (found && found[1].length > blanks.length && made.lastChild) {
      const [inner, next] = list(lines, at);
      made.lastChild.append(inner);
      at = next;
    } else if (found && found[1].length === blanks.length) {
      made.append(element('li', {}, ...inline(found[3])));
      ++at;
    } else if (!found && lines[at].trim() && /^\s/.test(lines[at]) && made.lastChild) {
      made.lastChild.append('\n', ...inline(lines[at].trim()));  // an item's second line
      ++at;
    } else {
      break;
    }
  }
  return [made, at];
}

const cells = line => line.trim().replace(/^\||\|$/g, '').split('|').map(cell => inline(cell.trim()));

function table(lines, at) {
  const row = (line, name) => element('tr', {}, ...cells(line).map(cell => element(name, {}, ...cell)));
  const made = element('table', {}, element('thead', {}, row(lines[at], 'th')));
  const body = element('tbody');
  for (at += 2; at < lines.length && lines[at].includes('|'); ++at) body.append(row(lines[at], 'td'));
  made.append(body);
  return [made, at];
}

const isTable = (lines, at) =>
    lines[at].includes('|') && /^\s*\|?(\s*:?-+:?\s*\|)+\s*(:?-+:?\s*)?$/.test(lines[at + 1] ?? '');
const begins = (lines, at) => /^\s*(```|~~~)/.test(lines[at]) || /^#{1,6}\s/.test(lines[at]) || LIST.test(lines[at]) ||
    /^\s*>/.test(lines[at]) || /^\s*([-*_])(\s*\1){2,}\s*$/.test(lines[at]) || isTable(lines, at);

// A block that begins at a line; nothing where it is a paragraph.
function block(lines, at) {
  const line = lines[at];
  const fence = /^\s*(```+|~~~+)\s*([\w+#.-]*)/.exec(line);
  if (fence) {
    let end = at + 1;
    while (end < lines.length && !lines[end].trim().startsWith(fence[1])) ++end;
    return [codeBlock(lines.slice(at + 1, end).join('\n'), fence[2]), end + 1];
  }
  const heading = /^(#{1,6})\s+(.*?)\s*#*$/.exec(line);
  if (heading) return [element(`h${Math.min(heading[1].length + 1, 6)}`, {}, ...inline(heading[2])), at + 1];
  if (/^\s*([-*_])(\s*\1){2,}\s*$/.test(line)) return [element('hr'), at + 1];
  if (isTable(lines, at)) return table(lines, at);
  if (LIST.test(line)) return list(lines, at);
  if (!/^\s*>/.test(line)) return null;
  const quoted = [];
  for (; at < lines.length && /^\s*>/.test(lines[at]); ++at) quoted.push(lines[at].replace(/^\s*> ?/, ''));
  return [element('blockquote', {}, ...markdown(quoted.join('\n'))), at];
}

// The elements of a text.
function markdown(text) {
  const lines = text.split('\n');
  const made = [];
  for (let at = 0; at < lines.length;) {
    if (!lines[at].trim()) {
      ++at;
      continue;
    }
    const found = block(lines, at);
    if (found) {
      made.push(found[0]);
      at = found[1];
      continue;
    }
    const paragraph = [lines[at++]];
    while (at < lines.length && lines[at].trim() && !begins(lines, at)) paragraph.push(lines[at++]);
    made.push(element('p', {}, ...inline(paragraph.join('\n'))));
  }
  return made;
}
