/* Where context mattered: target words that it changed, ranked. */

import { data, hasAttention, influences } from "./data.js";
import { $, element, percent, signed } from "./elements.js";

const ORDERS = {
  rank: ["changed choices first", null],
  gain: ["change in log-probability", (a, b) => Math.abs(b.gain) - Math.abs(a.gain)],
  divergence: ["KL divergence", (a, b) => b.divergence - a.divergence],
  place: ["place in the document", (a, b) => a.sentence - b.sentence || a.word - b.word],
};
const FIRST_SHOWN = 60;

export function buildInfluencePanel(actions) {
  $("influence-count").textContent = influences.length;
  if (!influences.length) {
    const words = hasAttention
      ? "Context changed the probability of no word of this translation by 10 % or more."
      : "Without a context layer, context can have changed nothing.";
    $("influence-panel").replaceChildren(element("p", { class: "invitation" }, words));
    return;
  }
  const list = element("ol", { class: "influences" });
  const more = element("button", { type: "button", class: "tool wide" });
  const order = element(
    "select",
    { id: "influence-order" },
    ...Object.entries(ORDERS).map(([name, [text]]) => element("option", { value: name }, text)),
  );
  const only = element("input", { type: "checkbox", id: "influence-only" });
  const fill = (shown) => {
    const [, compare] = ORDERS[order.value];
    let chosen = only.checked ? influences.filter((entry) => entry.changed) : influences;
    if (compare) chosen = [...chosen].sort(compare);
    list.replaceChildren(...chosen.slice(0, shown).map((entry) => influenceItem(entry, actions)));
    more.hidden = chosen.length <= shown;
    more.textContent = `Show all ${chosen.length.toLocaleString("en")}`;
  };
  order.addEventListener("change", () => fill(FIRST_SHOWN));
  only.addEventListener("change", () => fill(FIRST_SHOWN));
  more.addEventListener("click", () => fill(Infinity));
  fill(FIRST_SHOWN);
  $("influence-panel").replaceChildren(
    element("p", { class: "quiet" }, "In bold the word that stands there, struck out the one that would without context. Figures are in nats: by how much context raised the log-probability of the word, and how far its predictions with and without context diverge (KL). The number beside a context word is its sentence."),
    element(
      "div",
      { class: "influence-tools" },
      element("label", {}, "Order ", order),
      element("label", {}, only, " only other choices"),
    ),
    list,
    more,
  );
}

function influenceItem(entry, actions) {
  const { sentence, word, gain, divergence, changed, carriers } = entry;
  const target = data.sentences[sentence].target;
  const instead = data.sentences[sentence].scores[word][3];
  const select = () => actions.select({ side: "target", sentence, word });
  return element(
    "li",
    { class: "influence", "data-place": `${sentence}.${word}` },
    element(
      "button",
      { type: "button", class: "influence-word", onclick: select },
      element("span", { class: "influence-choice", lang: data.target_language, dir: "auto" }, element("b", {}, target.text[word]), changed ? element("del", {}, instead) : null),
      element("span", { class: "figure" }, signed(gain)),
      element("span", { class: "quiet" }, `KL ${divergence.toFixed(2)}`),
      element("span", { class: "snippet", lang: data.target_language, dir: "auto" }, `${sentence + 1}  `, ...snippet(target, word)),
    ),
    carriers.length
      ? element(
          "p",
          { class: "chips" },
          element("span", { class: "quiet" }, "carried by"),
          ...carriers.slice(0, 4).map(([other, place, weight]) =>
            element(
              "button",
              { type: "button", class: "chip", title: `${percent(weight)} of what came through, sentence ${other + 1}`, onclick: () => (select(), actions.visit(other)) },
              place === null ? "sentence" : data.sentences[other].context_words.text[place],
              element("span", { class: "chip-note" }, String(other + 1)),
            ),
          ),
        )
      : null,
  );
}

/* A few words around the word, itself in bold. */
function snippet(side, word) {
  const glued = new Set(side.glued);
  const first = Math.max(0, word - 4);
  const last = Math.min(side.text.length, word + 5);
  const parts = first ? ["…"] : [];
  for (let index = first; index < last; index++) {
    if (index && !glued.has(index)) parts.push(" ");
    parts.push(index === word ? element("b", {}, side.text[index]) : side.text[index]);
  }
  if (last < side.text.length) parts.push(" …");
  return parts;
}

/* What stands in the panel until a word is looked at. */
export function showEmptyPanel(actions) {
  const invitation = hasAttention
    ? "Point at a word, click it, or move to it with the arrow keys, to see which sentences of the document it looked at."
    : "Point at a word to see how probable the model found it.";
  const first = influences.slice(0, 3);
  const start = first.length ? [element("h3", {}, "Where context mattered most"), element("ol", { class: "influences" }, ...first.map((entry) => influenceItem(entry, actions)))] : [];
  $("word-panel").replaceChildren(element("p", { class: "invitation" }, invitation), ...start);
}
