// @ts-check
/* The small parts of a row beside its texts: where the draft comes from, how it differs from what was matched, comments,
   and the buttons of the states. */

import { drawComments, openComment } from "./comments.js";
import { withNewWords } from "./differences.js";
import { element } from "./elements.js";
import { byWhom } from "./person.js";
import { actOnRow, choose } from "./row_acts.js";
import { openVersions } from "./row_versions.js";
import { change, isApproved, languages, state } from "./store.js";
import { buildTags } from "./tags.js";
import { buildTypist } from "./typists.js";

/** @typedef {import("./store.js").Row} Row */
/**
 * @typedef {object} RowParts
 * @property {HTMLButtonElement} number
 * @property {HTMLButtonElement} badge
 * @property {HTMLElement} difference
 * @property {HTMLElement} comments
 * @property {HTMLButtonElement} review
 * @property {HTMLElement} tools
 * @property {import("./tags.js").TagParts} tags
 * @property {HTMLElement} terms
 * @property {HTMLElement} typist
 */

const ORIGINS = /** @type {Record<string, string>} */ ({
  context: "an approved translation of this very sentence, between the same neighbours",
  exact: "an approved translation of this very sentence",
  repaired: "an approved translation of a like sentence, in which the words that differ were translated anew",
  fuzzy: "the model, with the approved translation of a like sentence at hand",
  repetition: "the model: this sentence stands further up as well",
  machine: "the model",
  rule: "a rule, which translates numbers and dates",
  file: "the file itself",
});

/** What the badge of a row says. @param {Row} row */
export function badgeOf({ origin, match }) {
  if (origin === "repaired") return `${match} % repaired`;
  if (origin === "exact" || origin === "fuzzy") return `${match ?? 100} %`;
  return origin ?? "";
}

/** @param {number} position @returns {RowParts} */
export function buildParts(position) {
  const button = (/** @type {Record<string, any>} */ attributes, /** @type {(string | Node)[]} */ ...children) =>
    /** @type {HTMLButtonElement} */ (element("button", { type: "button", ...attributes }, ...children));
  const toggle = () => change((now) => (now.compared = now.compared === position ? null : position));
  const badge = button({ class: "badge", onclick: toggle });
  const review = button({ class: "row-act", title: "Reviewed (Alt+R)", onclick: () => actOnRow("review", position) }, "Review");
  const comment = button({ class: "row-act", title: "Comment (Alt+C)", onclick: () => openComment(position) }, "Comment");
  const changes = button({ class: "row-act", title: "What the row has been (Alt+H)", onclick: () => openVersions(position) }, "Changes");
  return {
    number: button({ class: "choose", "aria-pressed": "false", "aria-label": `Choose row ${position + 1}`, onclick: (/** @type {MouseEvent} */ event) => choose(position, event.shiftKey) }, String(position + 1)),
    badge,
    review,
    tags: buildTags(),
    typist: buildTypist(),
    terms: element("p", { class: "row-terms", hidden: true }),
    difference: element("div", { class: "difference", hidden: true }),
    comments: element("div", { class: "comments", role: "group", "aria-label": `Comments on row ${position + 1}`, hidden: true }),
    tools: element("span", { class: "row-tools" }, review, comment, changes),
  };
}

/** What the parts of a row are drawn from, besides the row. @param {number} position */
export const partsOf = (position) => [state.chosen.has(position), state.compared === position, state.tags.get(position), state.terms.get(position), state.placed?.position === position ? state.placed : null, state.typists.get(position)];

/** @param {RowParts} parts @param {Row} row */
export function drawParts(parts, row) {
  const { position } = row;
  const isChosen = state.chosen.has(position);
  parts.number.setAttribute("aria-pressed", String(isChosen));
  drawBadge(parts, row);
  parts.review.hidden = row.state !== "confirmed";
  drawComments(parts.comments, state.rows[position]);
}

/** Where a state comes from: who, and when. @param {Row} row */
export const decision = (row) => (isApproved(row) || row.state === "edited" ? byWhom(row.person, row.decided) : "");

/** @param {RowParts} parts @param {Row} row */
function drawBadge({ badge, difference }, row) {
  const text = badgeOf(row);
  const compares = row.matched_source !== null && row.matched_source !== row.source;
  badge.hidden = !text;
  badge.textContent = text;
  badge.disabled = !compares;
  badge.dataset.origin = row.origin ?? "";
  badge.title = `From ${ORIGINS[row.origin ?? ""] ?? ""}${compares ? ": what differs (Alt+M)" : ""}`;
  const isOpen = compares && state.compared === row.position;
  if (compares) badge.setAttribute("aria-expanded", String(isOpen));
  difference.hidden = !isOpen;
  if (!isOpen) return difference.replaceChildren();
  const { code, direction } = languages().source;
  const side = (/** @type {string} */ name, /** @type {(string | Node)[]} */ words) =>
    element("p", { class: "before-text" }, element("span", { class: "tag" }, `${name} `), element("span", { lang: code, dir: direction }, ...words));
  const matched = row.matched_source ?? "";
  difference.replaceChildren(side("here", withNewWords(matched, row.source)), side("approved", withNewWords(row.source, matched)));
}
