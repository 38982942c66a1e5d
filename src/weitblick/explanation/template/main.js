/* Which word is looked at, and the ways to look at another. */

import { alignedWith, data, hasAttention, influences, querySide, useExplanation } from "./data.js";
import { $, HEAT_STEPS, count, element, percent } from "./elements.js";
import { buildInfluencePanel, showEmptyPanel } from "./influence_panel.js";
import { calm, coveredHeight, openPanel, setUpPanel, setUpTabs, setUpTheme } from "./panel.js";
import { buildRows, clearMarks, mark, markContext, rows, spanOf, wordOf } from "./text.js";
import { showWord } from "./word_panel.js";

let view = null; // { side, sentence, word, head, query, held }

const actions = {
  isCurrent: (other) => view === other,
  select: (place) => look(place, { hold: true, focus: true, scroll: true }),
  chooseHead: (head) => look(view, { hold: true, head, keepQuery: true }),
  chooseQuery: (query) => look({ ...view, query }, { hold: true, keepQuery: true }),
  visit: (sentence) => {
    rows[sentence].row.scrollIntoView({ block: "center", behavior: calm() ? "auto" : "smooth" });
    rows[sentence].row.classList.remove("visited");
    void rows[sentence].row.offsetWidth; // starts the animation again
    rows[sentence].row.classList.add("visited");
  },
};

/* Shows a word. `hold` keeps it while the pointer wanders. */
async function look(place, { hold = false, focus = false, scroll = false, head, keepQuery = false } = {}) {
  const span = spanOf(place);
  if (!span) return;
  const focused = document.activeElement?.dataset?.head;
  view = {
    side: place.side,
    sentence: place.sentence,
    word: place.word,
    head: head === undefined ? view?.head ?? null : head,
    query: keepQuery ? place.query ?? null : null,
    held: hold,
  };
  const current = view;
  if (hold) {
    holdFocusable(span);
    openPanel(true);
  }
  if (scroll || (hold && coveredHeight())) scrollToWord(span);
  if (focus) span.focus({ preventScroll: true });
  showTab("word");
  const row = await showWord(current, actions);
  if (view !== current) return;
  clearMarks();
  mark(span, "selected");
  for (const [word] of alignedWith(current.side, current.sentence, current.word).slice(0, 3)) {
    mark(spanOf({ side: current.side === "source" ? "target" : "source", sentence: current.sentence, word }), "aligned");
  }
  mark(rows[current.sentence].row, "current");
  if (row) markContext(row.entries, current.sentence);
  if (hold) remember(current);
  if (focused !== undefined) document.querySelector(`[data-head="${current.head ?? "all"}"]`)?.focus();
}

function letGo() {
  view = null;
  clearMarks();
  showEmptyPanel(actions);
}

/* Roving tabindex: the document is one stop of the Tab key, at the word that was last held. */
let stop = null;
function holdFocusable(span) {
  stop?.setAttribute("tabindex", "-1");
  span.setAttribute("tabindex", "0");
  stop = span;
}

function scrollToWord(span) {
  const box = span.getBoundingClientRect();
  const covered = coveredHeight();
  if (box.top < $("legend").offsetHeight + 20 || box.bottom > innerHeight - covered - 40) {
    const middle = (innerHeight - covered) / 2;
    scrollBy({ top: box.top - middle, behavior: calm() ? "auto" : "smooth" });
  }
}

function remember({ side, sentence, word }) {
  try {
    history.replaceState(null, "", `#${side[0]}${sentence + 1}.${word + 1}`);
  } catch {
    /* some viewers forbid it for local files; the page works without */
  }
}

function recall() {
  const match = /^#([st])(\d+)\.(\d+)$/.exec(location.hash);
  if (!match) return;
  const place = { side: match[1] === "s" ? "source" : "target", sentence: match[2] - 1, word: match[3] - 1 };
  if (data.sentences[place.sentence]?.[place.side].text[place.word] !== undefined) look(place, { hold: true, scroll: true });
}

/* ---- pointer ---- */

let hoverTimer = 0;
$("rows").addEventListener("pointerover", (event) => {
  clearTimeout(hoverTimer);
  const place = wordOf(event);
  if (!place || event.pointerType === "touch" || view?.held) return;
  hoverTimer = setTimeout(() => look(place), 60);
});
$("rows").addEventListener("pointerout", () => clearTimeout(hoverTimer));
$("rows").addEventListener("click", (event) => {
  clearTimeout(hoverTimer);
  const place = wordOf(event);
  if (!place) return;
  const same = view?.held && view.side === place.side && view.sentence === place.sentence && view.word === place.word;
  if (same) letGo();
  else look(place, { hold: true, focus: true });
});

/* ---- keyboard ---- */

function sentenceFrom(start, step, side) {
  for (let index = start; index >= 0 && index < data.sentences.length; index += step) {
    if (data.sentences[index][side].text.length) return index;
  }
  return null;
}

function moved(key) {
  const { side, sentence, word } = view;
  const length = (index) => data.sentences[index][side].text.length;
  if (key === "Home") return { side, sentence, word: 0 };
  if (key === "End") return { side, sentence, word: length(sentence) - 1 };
  if (key === "ArrowRight" && word + 1 < length(sentence)) return { side, sentence, word: word + 1 };
  if (key === "ArrowLeft" && word > 0) return { side, sentence, word: word - 1 };
  const step = key === "ArrowRight" || key === "ArrowDown" ? 1 : -1;
  const next = sentenceFrom(sentence + step, step, side);
  if (next === null) return null;
  if (key === "ArrowRight") return { side, sentence: next, word: 0 };
  if (key === "ArrowLeft") return { side, sentence: next, word: length(next) - 1 };
  return { side, sentence: next, word: Math.min(word, length(next) - 1) };
}

function nextInfluence(step) {
  const places = influences.map(({ sentence, word }) => [sentence, word]).sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const here = view ? [view.sentence, view.side === "target" ? view.word : -1] : [-1, -1];
  const after = ([sentence, word]) => sentence - here[0] || word - here[1];
  const found = step > 0 ? places.find((place) => after(place) > 0) : places.findLast((place) => after(place) < 0);
  return found && { side: "target", sentence: found[0], word: found[1] };
}

function crossed() {
  const aligned = alignedWith(view.side, view.sentence, view.word);
  return aligned.length ? { side: view.side === "source" ? "target" : "source", sentence: view.sentence, word: aligned[0][0] } : null;
}

/* The keys work from the start: as long as nothing else has the focus, they begin at the word where Tab would. */
document.addEventListener("keydown", (event) => {
  if (event.altKey || event.ctrlKey || event.metaKey || $("help").open) return;
  if (event.key === "?") return openHelp();
  const focused = wordOf(event);
  const fresh = !focused && event.target === document.body;
  if (!focused && !fresh) return;
  const { key } = event;
  const here = focused ?? (view?.held ? view : null) ?? (stop && wordOf({ target: stop }));
  if (!here) return;
  const moves = /^Arrow|^Home$|^End$/.test(key);
  const from = view?.held ? view : { ...here, head: view?.head ?? null, query: null };
  let next;
  if (moves && fresh && !view?.held) next = here;
  else if (/^[npx]$|^\d$/.test(key) || moves || key === "Enter" || key === " ") {
    if (fresh && (key === "Enter" || key === " ")) return;
    view = from;
    if (moves) next = moved(key);
    else if (key === "n" || key === "p") next = nextInfluence(key === "n" ? 1 : -1);
    else if (key === "x") next = crossed();
    else if (!/^\d$/.test(key)) next = here;
    else if (hasAttention && Number(key) <= data.model.heads) {
      look(from, { hold: true, head: key === "0" ? null : Number(key) - 1, keepQuery: true });
    }
  } else return;
  event.preventDefault();
  if (next) look(next, { hold: true, focus: true, scroll: true });
});
$("rows").addEventListener("focusin", (event) => {
  const place = wordOf(event);
  const span = event.target;
  if (place && span.matches(":focus-visible") && !(view?.held && spanOf(view) === span)) look(place, { hold: true });
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && view && !$("help").open) letGo();
});
$("word-panel").addEventListener("keydown", (event) => {
  const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
  if (!step || event.target.getAttribute("role") !== "radio") return;
  event.preventDefault();
  const choices = data.model.heads + 1;
  const place = view.head === null ? 0 : view.head + 1;
  const next = (place + step + choices) % choices;
  actions.chooseHead(next === 0 ? null : next - 1);
});

/* ---- tabs, theme, help ---- */

setUpPanel();
const showTab = setUpTabs(["word", "influence"]);
setUpTheme();

const openHelp = () => $("help").showModal();
$("help-button").addEventListener("click", openHelp);

/* ---- the head of the page ---- */

function languageName(code) {
  try {
    return new Intl.DisplayNames(["en"], { type: "language" }).of(code);
  } catch {
    return code;
  }
}

function buildHead() {
  const { model, summary } = data;
  const source = languageName(data.source_language);
  const target = languageName(data.target_language);
  $("title").textContent = data.document;
  $("source-name").textContent = source;
  $("target-name").textContent = target;
  const names = [model.sentence_attention, model.word_attention].filter(Boolean).join("–");
  const kinds = { none: "no context layer", sentence: "attention to sentences", word: "attention to words", hierarchical: `hierarchical attention (${names})` };
  const facts = [
    `${source} → ${target}`,
    `${count(summary.sentences, "sentence", "sentences")}, ${count(summary.source_words, "word", "words")}`,
    kinds[model.kind] ?? model.kind,
    model.kind === "none" ? null : `${model.direction}, ${model.integration} integration, ${count(model.heads, "head", "heads")}`,
    summary.sentences_attended === null ? null : `a word attends to ${summary.sentences_attended.toFixed(1)} sentences on average`,
    summary.context_share === null ? null : `gate ${percent(summary.context_share)} open`,
    model.kind === "none" ? null : `context changed ${count(summary.sentences_changed, "translation", "translations")} and mattered for ${count(summary.words_influenced, "word", "words")}`,
  ];
  $("facts").append(...facts.filter(Boolean).map((fact) => element("li", {}, fact)));
  $("notes").hidden = !data.notes.length;
  $("notes").append(...data.notes.map((note) => element("p", {}, note)));
  if (hasAttention) buildLegend();
  else $("legend").hidden = true;
}

function buildLegend() {
  const steps = HEAT_STEPS.map((least, index) =>
    element("span", { class: "c", "data-heat": index + 1 }, `${Math.round(least * 100)}${index === HEAT_STEPS.length - 1 ? "+" : ""}`),
  );
  $("legend").append(
    element("span", { class: "legend-item" }, element("span", { class: "legend-ramp" }, ...steps), "% of a word's attention, also as small numbers"),
    element("span", { class: "legend-item" }, element("span", { class: "mattered" }, "word"), "context changed its probability by 10 % or more"),
    element("span", { class: "legend-item" }, element("span", { class: "mattered changed" }, "word"), "and decided the choice"),
    element("span", { class: "legend-item" }, element("span", { class: "added" }, "word"), "only with context"),
    element("span", { class: "legend-item without-sample" }, element("del", {}, "word"), "only without context"),
  );
}

/* The panel begins where the legend ends, on however many lines that is. */
new ResizeObserver(() => document.documentElement.style.setProperty("--legend", `${$("legend").offsetHeight}px`)).observe($("legend"));

useExplanation(JSON.parse($("data").textContent));
buildHead();
buildRows();
buildInfluencePanel(actions);
showEmptyPanel(actions);
data.sentences.length && sentenceFrom(0, 1, querySide) !== null && holdFocusable(spanOf({ side: querySide, sentence: sentenceFrom(0, 1, querySide), word: 0 }));
if (!data.sentences.length) $("rows").append(element("p", { class: "invitation" }, "This document is empty."));
recall();
addEventListener("hashchange", recall);
