'use strict';
// Renders Markdown as models write it by making elements: no text of an answer is ever read as
// HTML.

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key in made) made[key] = value;
    else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

// Most levels of quotes, lists and emphasis inside one another; deeper ones are shown as they are
// written.
const DEEPEST = 12;

const ADDRESS = /https?:\/\/(?:[^\s()<>]|\([^\s()<>]*\))+/.source;
const INLINE = new RegExp([
  /\\(?<escaped>[!-/:-@[-`{-~])/,
  /(?<!`)(?<ticks>`+)(?!`)(?<code>[^]*?[^`])\k<ticks>(?!`)/,  // a run of backticks is tried once, as a whole
  /\*\*(?=\S)(?<strong>(?:[^*]|\*(?!\*)|\*(?=\*\*(?!\*)))+?)(?<=\S)\*\*(?!\*)/,
  /(?<!\w)__(?<strong2>[^]+?)__(?!\w)/,
  /(?<![\w*])\*(?<emphasis>[^\s*](?:[^*]*[^\s*])?)\*(?!\*)/,
  /(?<![\w_])_(?<emphasis2>\S(?:[^_]*\S)?)_(?![\w_])/,
  /~~(?<struck>[^]+?)~~/,
  new RegExp(`!?\\[(?<label>[^\\[\\]]+)\\]\\((?<address>${ADDRESS})(?:\\s+"[^"]*")?\\)`),  // nothing is fetched: images become links
  new RegExp(`(?<!\\w)(?<bare>${ADDRESS})(?<![.,;:!?*_'"])`)
].map(part => part.source).join('|'), 'g');

const link = (address, children) => element('a', {href: address, rel: 'noopener noreferrer', target: '_blank'}, ...children);

// Inline markup: code, strong, emphasis, struck out, links.
function inline(text, depth = 0) {
  if (depth > DEEPEST) return [text];
  const nodes = [];
  let at = 0;
  for (const found of text.matchAll(INLINE)) {
    const is = found.groups, inner = words => inline(words, depth + 1);
    if (found.index > at) nodes.push(text.slice(at, found.index));
    at = found.index + found[0].length;
    if (is.escaped !== undefined) nodes.push(is.escaped);
    else if (is.code !== undefined) nodes.push(element('code', {}, is.code.replace(/^ (.*) $/, '$1')));
    else if (is.strong ?? is.strong2) nodes.push(element('strong', {}, ...inner(is.strong ?? is.strong2)));
    else if (is.emphasis ?? is.emphasis2) nodes.push(element('em', {}, ...inner(is.emphasis ?? is.emphasis2)));
    else if (is.struck) nodes.push(element('del', {}, ...inner(is.struck)));
    else if (is.label) nodes.push(link(is.address, inner(is.label)));
    else nodes.push(link(is.bare, [is.bare]));
  }
  if (at < text.length) nodes.push(text.slice(at));
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

// Highlighting that suits most languages: comments, texts, numbers, and the commonest keywords.
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

const LIST = /^(\s*)([-*+]|\d{1,9}[.)])(\s+)(.*)$/;
const FENCE = /^(\s*)(```+|~~~+)\s*([\w+#.-]*)/;
const RULE = /^\s*([-*_])(\s*\1){2,}\s*$/;

const blanksBefore = line => /^\s*/.exec(line)[0].length;
const without = (line, blanks) => line.slice(Math.min(blanks, blanksBefore(line)));
const isOrdered = mark => /\d/.test(mark);

// The lines of a list, from `at` on, and the number of the line behind it. The content of an item
// is blocks of its own: lines indented as far as its text, deeper items, and lines that continue
// its paragraph.
function list(lines, at, depth) {
  const [, blanks, mark] = LIST.exec(lines[at]);
  const made = element(isOrdered(mark) ? 'ol' : 'ul', isOrdered(mark) ? {start: parseInt(mark, 10)} : {});
  while (at < lines.length) {
    const found = LIST.exec(lines[at]);
    if (!found || RULE.test(lines[at]) || isOrdered(found[2]) !== isOrdered(mark) || found[1].length < blanks.length) break;
    const inside = found[1].length + found[2].length + Math.min(found[3].length, 4);
    const item = [found[4]];
    for (++at; at < lines.length; ++at) {
      const line = lines[at], far = blanksBefore(line);
      let next = at;
      while (next < lines.length && !lines[next].trim()) ++next;
      if (next > at) {  // empty lines stand in an item where it goes on behind them
        if (next === lines.length || blanksBefore(lines[next]) <= found[1].length) break;
        item.push('');
      } else if (far >= inside || (LIST.test(line) && far > found[1].length)) {
        item.push(without(line, Math.min(inside, far)));
      } else if (lines[at - 1].trim() && !begins(lines, at)) {
        item.push(line.trim());
      } else if (far > found[1].length) {
        item.push(line.trimStart());
      } else {
        break;
      }
    }
    made.append(element('li', {}, ...blocks(item, depth + 1)));
    let next = at;
    while (next < lines.length && !lines[next].trim()) ++next;
    if (next < lines.length && LIST.test(lines[next])) at = next;  // items with empty lines between them are one list
  }
  return [made, at];
}

// The cells of a line; a bar in code, or behind a backslash, is not a border.
const cells = line => line.trim().replace(/^\||(?<!\\)\|$/g, '').replace(/\\.|`[^`]*`|\|/g, found => found === '|' ? '\0' : found)
    .split('\0').map(cell => cell.trim());

function table(lines, at) {
  const places = cells(lines[at + 1]).map(rule => rule.endsWith(':') ? (rule.startsWith(':') ? 'center' : 'right') : '');
  const row = (line, name) => element('tr', {}, ...cells(line).map((cell, i) => {
    const made = element(name, {}, ...inline(cell.replaceAll('\\|', '|')));
    made.style.textAlign = places[i] ?? '';
    return made;
  }));
  const made = element('table', {}, element('thead', {}, row(lines[at], 'th')));
  const body = element('tbody');
  for (at += 2; at < lines.length && lines[at].includes('|'); ++at) body.append(row(lines[at], 'td'));
  made.append(body);
  return [made, at];
}

const isTable = (lines, at) =>
    lines[at].includes('|') && /^\s*\|?(\s*:?-+:?\s*\|)+\s*(:?-+:?\s*)?$/.test(lines[at + 1] ?? '');
const begins = (lines, at) => FENCE.test(lines[at]) || /^#{1,6}\s/.test(lines[at]) || LIST.test(lines[at]) ||
    /^\s*>/.test(lines[at]) || RULE.test(lines[at]) || isTable(lines, at);

// A block that begins at a line; nothing where the line begins a paragraph.
function block(lines, at, depth) {
  const line = lines[at];
  const fence = FENCE.exec(line);
  if (fence) {
    let end = at + 1;
    while (end < lines.length && !lines[end].trim().startsWith(fence[2])) ++end;
    // Code is indented as far as its fence.
    const code = lines.slice(at + 1, end).map(inner => without(inner, fence[1].length));
    return [codeBlock(code.join('\n'), fence[3]), end + 1];
  }
  const heading = /^(#{1,6})\s+(.*?)\s*#*$/.exec(line);
  if (heading) return [element(`h${Math.min(heading[1].length + 1, 6)}`, {}, ...inline(heading[2])), at + 1];
  if (RULE.test(line)) return [element('hr'), at + 1];
  if (isTable(lines, at)) return table(lines, at);
  if (depth > DEEPEST) return null;
  if (LIST.test(line)) return list(lines, at, depth);
  if (!/^\s*>/.test(line)) return null;
  const quoted = [];
  for (; at < lines.length && /^\s*>/.test(lines[at]); ++at) quoted.push(lines[at].replace(/^\s*> ?/, ''));
  return [element('blockquote', {}, ...blocks(quoted, depth + 1)), at];
}

function blocks(lines, depth) {
  const made = [];
  for (let at = 0; at < lines.length;) {
    if (!lines[at].trim()) {
      ++at;
      continue;
    }
    const found = block(lines, at, depth);
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

// The elements of a text.
const markdown = text => blocks(text.split(/\r?\n/), 0);
