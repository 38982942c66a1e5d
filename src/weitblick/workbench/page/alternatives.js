// @ts-check
/* Other translations of the row under the cursor, and what was approved for similar sentences. */

import { withNewWords } from "./differences.js";
import { replaceText } from "./editing.js";
import { $, element } from "./elements.js";
import { shown } from "./saving.js";
import { ask, isAborted, reasonOf, rowPath, sentence } from "./server.js";
import { change, languages, say, state } from "./store.js";

const PATIENCE = 250; // ms that the cursor rests in a row before other translations are looked for

let asking = new AbortController();
let timer = 0;
/** @type {typeof state.alternatives} */
let drawn = null;

/** Looks for other translations of a row. @param {number} position */
export function showAlternatives(position) {
  asking.abort();
  asking = new AbortController();
  const { signal } = asking;
  clearTimeout(timer);
  change((now) => {
    now.alternatives = { position, texts: [], matches: [], found: false, failure: "" };
  });
  $("row-panel").scrollTop = 0;
  timer = setTimeout(async () => {
    let found = { alternatives: [], matches: [] };
    let failure = "";
    try {
      found = await ask("GET", `${rowPath(position)}/alternatives`, undefined, { signal });
    } catch (error) {
      if (isAborted(error)) return;
      failure = `Other translations could not be looked for: ${sentence(reasonOf(error))}`;
    }
    if (signal.aborted) return;
    change((now) => {
      now.alternatives = { position, texts: found.alternatives, matches: found.matches, found: !failure, failure };
    });
  }, PATIENCE);
}

export function forgetAlternatives() {
  asking.abort();
  clearTimeout(timer);
  change((now) => {
    now.alternatives = null;
  });
}

/** @param {number} position @param {number} index */
export function takeAlternative(position, index) {
  const offered = state.alternatives?.position === position ? state.alternatives : null;
  const text = offered?.texts[index];
  if (text === undefined) return say(offered?.found ? "There is no such alternative." : "Still looking for other translations.");
  take(position, text);
}

/** @param {number} position @param {string} text */
function take(position, text) {
  if (replaceText(position, text, "alternative")) say("Alternative taken. Esc or Ctrl+Z brings back what was there.");
}

export function drawAlternatives() {
  const offered = state.alternatives;
  if (offered === drawn) return;
  drawn = offered;
  if (!offered) return $("alternatives").replaceChildren();
  const { position, texts, matches, found, failure } = offered;
  const { code, direction } = languages().target;
  const current = shown(state.rows[position]).target;
  const item = (/** @type {string} */ text, /** @type {number} */ index) =>
    element(
      "li",
      {},
      element("button", { type: "button", class: "alternative", onclick: () => take(position, text) },
        element("kbd", {}, `Ctrl ${index + 1}`), element("span", { lang: code, dir: direction }, ...withNewWords(current, text))),
    );
  const match = (/** @type {import("./store.js").Match} */ { source, target, similarity }) =>
    element("li", {}, element("button", { type: "button", class: "alternative", onclick: () => take(position, target) },
      element("span", { class: "figure" }, `${Math.round(similarity * 100)} %`), element("span", { lang: code, dir: direction, title: source }, target)));
  const nothing = failure || (found ? "There is no other." : "Looking …");
  $("alternatives").replaceChildren(
    element("h3", {}, `Row ${position + 1}: other translations`),
    texts.length ? element("ol", { class: "alternatives" }, ...texts.map(item)) : element("p", { class: "quiet" }, nothing),
    ...(matches.length ? [element("h3", {}, "Approved for a similar sentence"), element("ul", { class: "alternatives" }, ...matches.map(match))] : []),
  );
}
