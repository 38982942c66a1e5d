// @ts-check
/* Drawing the table: a row for each sentence. Behind every text field lies its text once more, which gives the field its
   height and carries the marks of changed words. It is made of CSS content, so that the browser's search finds a text
   once. In the row under the pointer words are elements, which tell where it is; elsewhere text is text, so that a long
   document stays light. Of a long document only the rows around the screen are elements (row_window.js). */

import { changedWords, lostWords, pieces, wordSpans } from "./differences.js";
import { $, element, percent } from "./elements.js";
import { acceptChange, keepBefore } from "./changes.js";
import { settleRow } from "./editing.js";
import { drawFindings } from "./findings.js";
import { massOf } from "./explain.js";
import { isListed } from "./find.js";
import { FORMALITY } from "./formality.js";
import { forgetAllHighlights, forgetHighlights } from "./highlights.js";
import { RowHeights, chooseRows, fillTable, fitsOnPage, withSpaces } from "./row_window.js";
import { drafts, hasConflict, keepMine, shown, takeTheirs } from "./saving.js";
import { rowPath } from "./server.js";
import { buildParts, decision, drawParts, partsOf } from "./row_parts.js";
import { isApproved, isChanged, languages, state } from "./store.js";
import { drawTags } from "./tags.js";
import { drawTermMarks } from "./term_marks.js";
import { drawTypist } from "./typists.js";

/**
 * @typedef {import("./store.js").Row} Row
 * The elements of a row, and what they show.
 * @typedef {object} RowView
 * @property {HTMLElement} element
 * @property {HTMLElement} number
 * @property {HTMLElement} source
 * @property {HTMLElement} mirror
 * @property {HTMLTextAreaElement} field
 * @property {HTMLElement} extra
 * @property {HTMLElement} findings
 * @property {HTMLElement} status
 * @property {HTMLButtonElement} confirm
 * @property {import("./row_parts.js").RowParts} parts
 * @property {unknown[]} drawn
 */

/** The rows that are elements now. @type {Map<number, RowView>} */
let views = new Map();
/** @type {string | null} */
let viewsOf = null;
let rowCount = 0;
let heights = new RowHeights();
/** A row that somebody is on the way to. @type {number | null} */
let brought = null;
let picture = 0;

const STATES = { empty: "waiting", draft: "draft", edited: "edited", confirmed: "confirmed", reviewed: "reviewed" };

/** @param {number} position @returns {RowView | undefined} */
export const viewOf = (position) => views.get(position);

/** The row that an element of the table belongs to. @param {Element} inside */
export const positionOf = (inside) => Number(/** @type {HTMLElement} */ (inside.closest("tr")).dataset.position);

/** Draws the rows that have changed, and what stands above them. @param {() => void} drawHead */
export function drawRows(drawHead) {
  const fresh = viewsOf !== state.rowsOf || rowCount !== state.rows.length;
  if (fresh) startTable();
  const draw = () => {
    drawHead();
    layOut();
  };
  const changed = [...views.keys()].some((position) => position !== state.focus && isOutdated(/** @type {RowView} */ (views.get(position)), position));
  if (changed && !fresh) steadily(draw);
  else draw();
}

/** Puts the rows in the table that somebody can see, and draws those that have changed. */
function layOut() {
  const body = $("rows");
  const listed = listedRows();
  const chosen = chooseRows(listed, heights, -body.getBoundingClientRect().top, innerHeight, pinned());
  const wanted = new Set(chosen);
  if (chosen.length !== views.size || chosen.some((position) => !views.has(position))) {
    for (const position of [...views.keys()]) {
      if (wanted.has(position)) continue;
      views.delete(position);
      forgetHighlights(position);
    }
    fillTable(body, withSpaces(listed, chosen, heights), (position) => {
      const view = views.get(position) ?? buildRow(state.rows[position]);
      views.set(position, view);
      return view.element;
    });
    $("table").setAttribute("aria-rowcount", String(listed.length + 1));
  }
  for (const [position, view] of views) if (needsDrawing(view, position)) drawRow(view, position);
  if (fitsOnPage(listed.length)) return;
  for (const [position, view] of views) heights.set(position, view.element.getBoundingClientRect().height);
}

/** @type {{ found: typeof state.found, rows: number, listed: number[] }} */
let known = { found: null, rows: 0, listed: [] };

/** The rows that are shown at all, in their order. */
function listedRows() {
  if (known.found !== state.found || known.rows !== state.rows.length) {
    known = { found: state.found, rows: state.rows.length, listed: state.rows.map((row) => row.position).filter(isListed) };
  }
  return known.listed;
}

/** Rows that are elements wherever the page is. */
function pinned() {
  const active = document.activeElement?.closest("#rows tr[data-position]");
  return new Set([state.focus, brought, active ? positionOf(active) : null].filter((position) => position !== null));
}

/** A row that somebody goes to, which becomes an element of the page if it is none. @param {number} position */
export function bringRow(position) {
  if (views.has(position) || !state.rows[position]) return viewOf(position);
  brought = position;
  layOut();
  return viewOf(position);
}

/** The rows on the screen, first and last; null if there are none. @returns {{ first: number, last: number } | null} */
export function rowsOnScreen() {
  const seen = [...views].filter(([, { element: row }]) => {
    const { top, bottom } = row.getBoundingClientRect();
    return bottom > 0 && top < innerHeight;
  });
  const positions = seen.map(([position]) => position);
  return positions.length ? { first: Math.min(...positions), last: Math.max(...positions) } : null;
}

/** The page was scrolled: other rows are elements then, with the next picture of it. */
function scrolled() {
  if ($("sheet").hidden || fitsOnPage(listedRows().length)) return;
  picture ||= requestAnimationFrame(() => {
    picture = 0;
    if (state.rowsOf === viewsOf && state.rows.length === rowCount) steadily(layOut);
  });
}

/** Whether not all rows are on the page. */
export const isLong = () => !fitsOnPage(listedRows().length);

export function setUpRows() {
  addEventListener("scroll", scrolled, { passive: true });
  addEventListener("resize", () => {
    heights = new RowHeights();
    scrolled();
  });
}

/** What a row is drawn from. @param {number} position */
function sourcesOf(position) {
  const { pointed, focus } = state;
  const draft = drafts.of(rowPath(position));
  return [state.rows[position], draft, state.findings.get(position), pointed === position, focus === position, massOf(position), isListed(position), ...partsOf(position)];
}

/** @param {RowView} view @param {number} position */
function isOutdated(view, position) {
  const now = sourcesOf(position);
  return !view.drawn.length || now.some((value, index) => value !== view.drawn[index]);
}

/** Remembers what a row is drawn from, and tells whether that has changed. @param {RowView} view @param {number} position */
function needsDrawing(view, position) {
  if (!isOutdated(view, position)) return false;
  view.drawn = sourcesOf(position);
  return true;
}

function startTable() {
  viewsOf = state.rowsOf;
  rowCount = state.rows.length;
  views = new Map();
  forgetAllHighlights();
  heights = new RowHeights();
  brought = null;
  known = { found: null, rows: -1, listed: [] };
  $("rows").replaceChildren();
  if (!state.languages) return;
  for (const side of /** @type {const} */ (["source", "target"])) {
    $(`${side}-name`).textContent = state.languages[side].name;
    $(`${side}-name`).dir = state.languages[side].direction;
  }
}

/** @param {Row} row @returns {RowView} */
function buildRow({ position, source: text }) {
  const { source, target } = languages();
  const mirror = element("div", { class: "mirror", "aria-hidden": "true" });
  const field = /** @type {HTMLTextAreaElement} */ (
    element("textarea", { rows: 1, lang: target.code, dir: target.direction, "aria-label": `Translation of row ${position + 1}`, spellcheck: true, "data-position": position })
  );
  const parts = buildParts(position);
  const number = element("th", { scope: "row", class: "number" }, parts.number);
  const sourceCell = element("td", { class: "source", lang: source.code, dir: source.direction }, text);
  const extra = element("div", { class: "extra" });
  const findings = element("div", { class: "findings", role: "group", "aria-label": `What looks wrong in row ${position + 1}`, hidden: true });
  const status = element("span", { class: "state-name" });
  const confirm = /** @type {HTMLButtonElement} */ (element("button", { type: "button", class: "confirm", onclick: () => settleRow(position) }));
  parts.tools.prepend(confirm);
  const whole = element(
    "tr",
    { "data-position": position, "aria-rowindex": position + 2 },
    number,
    sourceCell,
    element("td", { class: "target" }, element("div", { class: "field", lang: target.code, dir: target.direction }, mirror, parts.tags.overlay, field), parts.typist, parts.tags.missing, parts.tags.chips, parts.terms, findings, extra, parts.difference, parts.comments),
    element("td", { class: "state" }, element("span", { class: "state-line" }, status, parts.badge, parts.tags.formats, parts.tools)),
  );
  return { element: whole, number, source: sourceCell, mirror, field, extra, findings, status, confirm, parts, drawn: [] };
}

/** @param {RowView} view @param {number} position */
function drawRow(view, position) {
  const row = shown(state.rows[position]);
  const isPointed = state.pointed === position;
  const conflict = hasConflict(position);
  const { field, confirm } = view;
  if (field.value !== row.target) writeField(field, row.target);
  view.element.hidden = !isListed(position);
  view.element.dataset.state = row.state;
  view.element.toggleAttribute("data-changed", isChanged(row));
  view.element.toggleAttribute("data-conflict", conflict);
  view.element.toggleAttribute("data-current", state.focus === position);
  view.status.textContent = conflict ? "not saved" : STATES[row.state];
  confirm.disabled = conflict || !row.target.trim() || state.typists.has(position);
  drawTypist(view.parts.typist, field, position);
  view.status.title = conflict ? "" : decision(row);
  confirm.textContent = isApproved(row) ? "Reopen" : "Confirm";
  confirm.title = isApproved(row) ? "No longer approved: it leaves the memory" : "Confirm (Ctrl+Enter)";
  drawParts(view.parts, row);
  view.element.toggleAttribute("data-chosen", state.chosen.has(position));
  if (isPointed !== Boolean(view.source.firstElementChild)) {
    view.source.replaceChildren(...(isPointed ? wordSpans(row.source) : [row.source]));
  }
  drawTags(view.parts.tags, view.source, row);
  drawTermMarks(view.parts.terms, view.source, row);
  drawMirror(view.mirror, row, isPointed);
  drawExtra(view.extra, row, conflict);
  drawFindings(view.findings, position);
  view.element.toggleAttribute("data-asked", !view.findings.hidden);
  const mass = massOf(position);
  if (mass === undefined) view.number.removeAttribute("data-mass");
  else view.number.setAttribute("data-mass", percent(mass));
}

/** Puts a text in a field that has another. A cursor stays where it is, as far as the text reaches.
 * @param {HTMLTextAreaElement} field @param {string} text */
function writeField(field, text) {
  const { selectionStart, selectionEnd } = field;
  field.value = text;
  if (document.activeElement === field) field.setSelectionRange(selectionStart, selectionEnd);
}

/** @param {HTMLElement} mirror @param {Row} row @param {boolean} isPointed */
function drawMirror(mirror, row, isPointed) {
  const added = row.before === null ? new Set() : changedWords(row.before, row.target).added;
  if (!isPointed && !added.size) {
    mirror.replaceChildren(element("span", { "data-text": row.target }));
    return;
  }
  mirror.replaceChildren(
    ...pieces(row.target).map(({ piece, word }) =>
      element("span", { class: word === null ? "gap" : added.has(word) ? "w new" : "w", "data-text": piece }),
    ),
  );
}

/** Under the field: what stood in a changed row before, or the other text of a row that two windows have written.
 * @param {HTMLElement} extra @param {Row} row @param {boolean} conflict */
function drawExtra(extra, row, conflict) {
  const shows = conflict ? `other ${state.rows[row.position].version}` : isChanged(row) ? `before ${row.version}` : "";
  if (extra.dataset.shows === shows) return; // a button that is being pressed stays the same button
  extra.dataset.shows = shows;
  extra.hidden = !shows;
  if (!shows) return extra.replaceChildren();
  const { code, direction } = languages().target;
  const { position, before } = row;
  const said = (/** @type {string} */ tag, /** @type {(string | Node)[]} */ words) =>
    element("p", { class: "before-text" }, element("span", { class: "tag" }, `${tag} `), element("span", { lang: code, dir: direction }, ...words));
  const button = (/** @type {string} */ name, /** @type {() => void} */ act) => element("button", { type: "button", class: "small", onclick: act }, name);
  if (conflict) {
    const theirs = state.rows[position];
    const tag = isApproved(theirs) ? `${theirs.state} in another window` : "saved in another window";
    extra.replaceChildren(said(tag, [theirs.target]), button("Keep mine", () => keepMine(position)), button("Take the other", () => takeTheirs(position)));
  } else {
    extra.replaceChildren(
      said(reasonOf(row), lostWords(before ?? "", row.target)),
      button("Keep as it was", () => keepBefore(position)),
      button("Accept", () => acceptChange(position)),
    );
  }
}

/** Why a row has changed, before what stood there. @param {Row} row */
function reasonOf({ cause }) {
  const { term } = state;
  if (cause === null || cause >= 0) return "before";
  if (cause === FORMALITY) return "because of the form of address, before";
  return term?.pair === -cause ? `because of the term ${term.source} = ${term.target}, before` : "because of a term, before";
}

let arrival = 0; // when the page will have scrolled to where it was told to

/** Says that the page is on its way to a row, for so many ms. @param {number} duration */
export function travel(duration) {
  arrival = performance.now() + duration;
}

/** Changes the page without moving the text that somebody looks at: the row under the cursor, if it is in view, or else
 * the first one that is. Whoever is on the way to a row is left to get there.
 * @param {() => void} draw */
function steadily(draw) {
  if (performance.now() < arrival) return draw();
  const covered = $("changes").hidden ? document.querySelector(".bar") : $("changes");
  const top = Math.max(0, covered?.getBoundingClientRect().bottom ?? 0);
  const inView = (/** @type {Element} */ one) => one.getBoundingClientRect().bottom > top && one.getBoundingClientRect().top < innerHeight;
  const focused = state.focus === null ? undefined : views.get(state.focus)?.element;
  const first = document.elementFromPoint($("table").getBoundingClientRect().left + 4, top + 12)?.closest("#rows tr[data-position]");
  const fixed = focused && inView(focused) ? focused : first;
  const before = fixed?.getBoundingClientRect().top ?? 0;
  draw();
  const moved = fixed ? fixed.getBoundingClientRect().top - before : 0;
  if (moved) scrollBy({ top: moved, behavior: "instant" });
}
