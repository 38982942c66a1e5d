// @ts-check
/* The terms of the project in the sources: underlined, with their translation where somebody points at them. The row under
   the cursor lists them, and a key inserts the next one that its translation lacks. */

import { element } from "./elements.js";
import { highlight } from "./highlights.js";
import { shown } from "./saving.js";
import { ask, attempt, documentPath } from "./server.js";
import { change, languages, say, state } from "./store.js";
import { codeUnits, insert } from "./tags.js";

/** @typedef {import("./store.js").TermMark} TermMark */

/** Asks which terms the sources of the shown document have. */
export function loadTermMarks() {
  const identity = state.document;
  if (!identity) return;
  return attempt("Terms are not shown", async () => {
    const { rows } = await ask("GET", `${documentPath()}/terms`);
    if (state.document !== identity || state.rowsOf !== identity) return;
    change((now) => {
      const inUnits = (/** @type {TermMark} */ mark, /** @type {string} */ text) => ({ ...mark, start: codeUnits(text, mark.start), end: codeUnits(text, mark.end) });
      now.terms = new Map(Object.entries(rows).map(([position, marks]) => [Number(position), marks.map((/** @type {TermMark} */ mark) => inUnits(mark, now.rows[Number(position)].source))]));
    });
  });
}

/** @param {TermMark} mark */
const described = ({ source, targets, origin }) => `${source} = ${targets.join(" or ")} (${origin})`;

/** @param {HTMLElement} list of the row's terms @param {HTMLElement} source @param {import("./store.js").Row} row */
export function drawTermMarks(list, source, row) {
  const marks = state.terms.get(row.position) ?? [];
  highlight("weitblick-term", row.position, source, marks);
  if (source.firstElementChild) drawHints(source, marks);
  const listed = state.focus === row.position ? marks : [];
  list.hidden = !listed.length;
  const shows = JSON.stringify(listed);
  if (list.dataset.shows === shows) return;
  list.dataset.shows = shows;
  const button = (/** @type {string} */ text) => {
    const stay = (/** @type {MouseEvent} */ event) => event.preventDefault(); // the field keeps its cursor
    return element("button", { type: "button", class: "small", lang: languages().target.code, title: "Insert (Alt+G)", onmousedown: stay, onclick: () => insert(row.position, text) }, text);
  };
  const item = (/** @type {TermMark} */ mark) => element("span", { title: described(mark) }, `${mark.source} = `, ...mark.targets.map(button));
  list.replaceChildren(...(listed.length ? [element("span", { class: "tag" }, "terms "), ...listed.map(item)] : []));
}

/** Words that are elements say what they are a term for. @param {HTMLElement} source @param {TermMark[]} marks */
function drawHints(source, marks) {
  let at = 0;
  for (const node of source.childNodes) {
    const end = at + (node.textContent?.length ?? 0);
    const own = node instanceof HTMLElement ? marks.find((mark) => mark.start < end && at < mark.end) : undefined;
    if (node instanceof HTMLElement) node.title = own ? described(own) : "";
    at = end;
  }
}

/** Inserts the next term of the source that the translation does not have as it is given. */
export function insertNextTerm() {
  const position = state.focus;
  if (position === null || !state.rows[position]) return say("Go to a row first.");
  const marks = state.terms.get(position) ?? [];
  if (!marks.length) return say("The source of this row has no terms.");
  const text = shown(state.rows[position]).target.toLowerCase();
  const next = marks.find(({ targets }) => targets.every((target) => !text.includes(target.toLowerCase())));
  if (!next) return say(`The translation has its terms: ${marks.map(described).join("; ")}.`);
  insert(position, next.targets[0]);
}
