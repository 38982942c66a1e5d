// @ts-check
/* Statistics of the document or the project: how much, from where, how far, and how much was changed. */

import { openDialog } from "./dialogs.js";
import { $, count, element, percent } from "./elements.js";
import { drafts } from "./saving.js";
import { ask, attempt, documentPath, projectPath } from "./server.js";

/**
 * @typedef {{ rows: number, words: number, characters: number }} Amount
 * @typedef {object} Figures
 * @property {Amount} total
 * @property {Record<string, Amount>} classes
 * @property {Record<string, Amount>} states
 * @property {Amount} today
 * @property {{ rows: number, words: number, changed: number, unchanged_rows: number, share: number | null }} distance
 */

/** @param {"document" | "project"} of */
function show(of) {
  const path = `${of === "document" ? documentPath() : projectPath()}/statistics`;
  return attempt("There are no statistics", async () => {
    await drafts.retry();
    /** @type {Figures} */
    const figures = await ask("GET", path);
    $("statistics-document").setAttribute("aria-pressed", String(of === "document"));
    $("statistics-project").setAttribute("aria-pressed", String(of === "project"));
    $("statistics-body").replaceChildren(...parts(figures), links(path));
  });
}

/** @param {Figures} figures */
function parts({ total, classes, states, today, distance }) {
  const approved = states.confirmed.words + states.reviewed.words;
  const done = total.words ? `${percent(approved / total.words)} of the words are approved; ` : "";
  const far =
    distance.share === null
      ? "No draft has been approved yet."
      : `${percent(distance.share)} of the words of ${count(distance.rows, "approved draft", "approved drafts")} were changed; ${distance.unchanged_rows} stayed as they were.`;
  return [
    element("p", {}, `${done}${count(today.words, "word", "words")} in ${count(today.rows, "row", "rows")} today. ${far}`),
    table("Where drafts come from", classes, total),
    table("States", states, total),
  ];
}

/** @param {string} title @param {Record<string, Amount>} amounts @param {Amount} total */
function table(title, amounts, total) {
  const cells = (/** @type {Amount} */ { rows, words, characters }) => [rows, words, characters].map((number) => element("td", {}, number.toLocaleString("en")));
  const line = (/** @type {string} */ name, /** @type {Amount} */ amount) => element("tr", {}, element("th", { scope: "row" }, name), ...cells(amount));
  const head = ["Rows", "Words", "Characters"].map((name) => element("th", { scope: "col" }, name));
  return element(
    "table",
    { class: "figures" },
    element("thead", {}, element("tr", {}, element("th", { scope: "col" }, title), ...head)),
    element("tbody", {}, ...Object.entries(amounts).filter(([, amount]) => amount.rows).map(([name, amount]) => line(name, amount)), line("all", total)),
  );
}

/** @param {string} path */
const links = (path) =>
  element("p", {}, element("a", { href: `${path}?format=csv`, download: "" }, "CSV"), " · ", element("a", { href: path, target: "_blank" }, "JSON"));

export function openStatistics() {
  openDialog("statistics-dialog");
  show("document");
}

export function setUpStatistics() {
  $("statistics-button").addEventListener("click", openStatistics);
  $("statistics-document").addEventListener("click", () => show("document"));
  $("statistics-project").addEventListener("click", () => show("project"));
}
