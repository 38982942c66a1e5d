// @ts-check
/* Source terms that are translated in several ways. A click makes one of them the approved one. */

import { focusRow } from "./editing.js";
import { $, element } from "./elements.js";
import { ask, attempt, documentPath, reasonOf, sentence } from "./server.js";
import { change, languages, say, state } from "./store.js";
import { makeTerm } from "./terms.js";

/** @type {typeof state.consistency | null} */
let drawn = null;

/** After drafts were translated again; what is not looked at is looked for when it is. */
export function refreshConsistency() {
  if (!$("consistency-panel").hidden && state.document) showConsistency({ quietly: true });
}

export async function showConsistency({ quietly = false } = {}) {
  const shown = state.document;
  if (!shown) return;
  if (!quietly) change((now) => (now.consistency = { terms: null, failure: "" }));
  /** @type {typeof state.consistency} */
  let found = { terms: null, failure: "" };
  try {
    found = { terms: await ask("GET", `${documentPath()}/consistency`), failure: "" };
  } catch (error) {
    found.failure = `Terms could not be looked for: ${sentence(reasonOf(error))}`;
  }
  if (state.document === shown) change((now) => (now.consistency = found));
}

export function drawConsistency() {
  const { terms, failure } = state.consistency;
  $("consistency-count").hidden = terms === null;
  $("consistency-count").textContent = String(terms?.length ?? "");
  if (drawn === state.consistency) return;
  drawn = state.consistency;
  const body = $("consistency-panel");
  const again = element("button", { type: "button", class: "tool wide", onclick: () => showConsistency() }, "Look again");
  if (failure) body.replaceChildren(element("p", { class: "quiet" }, failure), again);
  else if (!terms) body.replaceChildren(element("p", { class: "quiet" }, "Looking through the document …"));
  else if (!terms.length) body.replaceChildren(element("p", { class: "invitation" }, "Every term that comes more than once is translated in one way."));
  else {
    body.replaceChildren(
      element("p", { class: "quiet" }, "Terms that are translated in several ways. Approve one, and drafts that have the term are translated again with it."),
      element("ul", { class: "terms" }, ...terms.map(termItem)),
      again,
    );
  }
}

/** @param {import("./store.js").Term} term */
function termItem({ source, variants }) {
  return element("li", { class: "term" }, element("h3", { lang: languages().source.code }, source), element("ul", {}, ...variants.map((variant) => variantItem(source, variant))), otherForm(source));
}

/** Where none of them is right: a field for what is. @param {string} source */
function otherForm(source) {
  const { code, direction } = languages().target;
  const field = /** @type {HTMLInputElement} */ (element("input", { lang: code, dir: direction, maxlength: 500, placeholder: "Another translation", "aria-label": `Another translation of ${source}` }));
  const form = element("form", { class: "name-form", autocomplete: "off" }, field, element("button", { class: "small" }, "Approve", element("span", { class: "visually-hidden" }, ` it for ${source}`)));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (field.value.trim()) approveTerm(source, field.value.trim());
    else say("Type the right translation first.");
  });
  return form;
}

/** @param {string} source @param {import("./store.js").Variant} variant */
function variantItem(source, { target, count: times, positions, approved }) {
  const { code, direction } = languages().target;
  return element(
    "li",
    { class: "variant" },
    element("span", { class: "variant-text", lang: code, dir: direction }, target, element("span", { class: "count" }, `${times}×`)),
    approved
      ? element("span", { class: "approved" }, "✓ approved")
      : element("button", { type: "button", class: "small", onclick: () => approveTerm(source, target) }, "Approve", element("span", { class: "visually-hidden" }, ` ${target} for ${source}`)),
    element(
      "span",
      { class: "places" },
      positions.length > 1 ? "rows " : "row ",
      ...positions.slice(0, 8).map((position) =>
        element("button", { type: "button", class: "place-link", "aria-label": `Row ${position + 1}`, onclick: () => focusRow(position) }, String(position + 1)),
      ),
      positions.length > 8 ? `and ${positions.length - 8} more` : null,
    ),
  );
}

/** @param {string} source @param {string} target */
function approveTerm(source, target) {
  return attempt(`${target} is not approved`, async () => {
    await makeTerm(source, target);
    say(`${target} is now the approved translation of ${source}.`);
    await showConsistency({ quietly: true });
    $("consistency-panel").focus({ preventScroll: true });
  });
}
