// @ts-check
/* Marks in the sources, whose text stays as it is: the browser's highlights, by name and row. */

/** The ranges of each row that is on the page, by name. @type {Map<number, Map<string, Range[]>>} */
const marked = new Map();

/** Marks characters of a row's source, in place of those that were marked there under the same name.
 * @param {string} name @param {number} position @param {HTMLElement} source @param {{ start: number, end: number }[]} spans */
export function highlight(name, position, source, spans) {
  if (!("highlights" in CSS)) return;
  if (!CSS.highlights.has(name)) CSS.highlights.set(name, new Highlight());
  const all = /** @type {Highlight} */ (CSS.highlights.get(name));
  const own = marked.get(position) ?? new Map();
  marked.set(position, own);
  for (const range of own.get(name) ?? []) all.delete(range);
  const made = spans.map(({ start, end }) => rangeOf(source, start, end)).filter((range) => range !== null);
  made.forEach((range) => all.add(range));
  own.set(name, made);
}

/** Forgets the marks of a row that is no longer on the page. @param {number} position */
export function forgetHighlights(position) {
  for (const [name, ranges] of marked.get(position) ?? []) ranges.forEach((range) => CSS.highlights.get(name)?.delete(range));
  marked.delete(position);
}

/** Forgets all marks: another document is shown. */
export function forgetAllHighlights() {
  [...marked.keys()].forEach(forgetHighlights);
}

/** Characters of an element's text, which may be several nodes. @param {HTMLElement} inside @param {number} start @param {number} end */
function rangeOf(inside, start, end) {
  const range = document.createRange();
  const walker = document.createTreeWalker(inside, NodeFilter.SHOW_TEXT);
  let at = 0;
  let begun = false;
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const length = node.textContent?.length ?? 0;
    if (!begun && start < at + length) {
      range.setStart(node, start - at);
      begun = true;
    }
    if (begun && end <= at + length) {
      range.setEnd(node, end - at);
      return range;
    }
    at += length;
  }
  return null;
}
