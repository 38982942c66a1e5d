/* The panel for one word: what it says about itself, and the context it looked at. */

import { alignedWith, attentionOf, data, encoder, hasAttention, querySide } from "./data.js";
import { $, count, element, heat, meter, percent, relative, shape, signed } from "./elements.js";

/* `view`: { side, sentence, word, head (null: all), query (the query word shown, if chosen) }. `actions.arrange` may show
   the parts in another way than one after the other. */
export async function showWord(view, actions) {
  const { sentence } = view;
  const query = queryOf(view);
  const attention = query === null ? null : await attentionOf(sentence);
  if (!actions.isCurrent(view)) return null;
  const row = !attention ? null : view.head === null ? attention.average(query) : attention.row(query, view.head);
  const parts = [probabilities(view), approved(view), partners(view, query, actions)];
  if (row) {
    parts.push(measures(sentence, query, row, view.head), headChooser(attention, query, view, actions));
    parts.push(ribbon(row.entries, sentence, actions), contextList(row, sentence, actions));
  } else if (hasAttention && query !== null) {
    parts.push(element("p", { class: "quiet" }, "This sentence has no context to look at."));
  }
  const shown = actions.arrange ? actions.arrange(view, parts.filter(Boolean), row) : [headline(view), ...parts];
  $("word-panel").replaceChildren(...shown.filter(Boolean));
  (actions.announce ?? announce)(view, query, row);
  return row && { ...row, query };
}

/* The word whose attention is shown: the word itself, or the one of the other side it belongs to. */
function queryOf(view) {
  if (!hasAttention) return null;
  if (view.side === querySide) return view.word;
  const aligned = alignedWith(view.side, view.sentence, view.word);
  if (view.query !== null && aligned.some(([index]) => index === view.query)) return view.query;
  return aligned.length ? aligned[0][0] : null;
}

function headline({ side, sentence, word }) {
  return element(
    "header",
    { class: "word-head" },
    element("h2", { lang: side === "source" ? data.source_language : data.target_language, dir: "auto" }, data.sentences[sentence][side].text[word]),
    element("p", { class: "quiet" }, `${side === "source" ? "source" : "target"} word · sentence ${sentence + 1}`),
  );
}

/* Target words: how probable with and without context. */
function probabilities({ side, sentence, word }) {
  const score = side === "target" ? data.sentences[sentence].scores[word] : undefined;
  if (!score) return null;
  const [withContext, without, divergence, instead] = score;
  const line = (name, logProbability) =>
    element(
      "div",
      { class: "probability" },
      element("span", {}, name),
      meter(Math.exp(logProbability), `probability ${percent(Math.exp(logProbability))}`),
      element("span", { class: "figure" }, percent(Math.exp(logProbability))),
    );
  if (!hasAttention && data.model.kind === "none") {
    return element("section", { class: "block" }, line("probability", withContext), element("p", { class: "quiet" }, `log-probability ${signed(withContext, 3)} nats`));
  }
  return element(
    "section",
    { class: "block" },
    line("with context", withContext),
    line("without", without),
    element("p", { class: "quiet" }, `${signed(withContext - without)} nats in log-probability · KL ${divergence.toFixed(2)} nats`),
    instead === undefined
      ? null
      : element("p", { class: "instead" }, "Without context it would say ", element("b", { lang: data.target_language, dir: "auto" }, instead)),
  );
}

/* Target words: the approved sentence that the word was fetched from, and its share in the probability. */
function approved({ side, sentence, word }) {
  const fetched = data.sentences[sentence].fetched;
  if (side !== "target" || !fetched) return null;
  const own = fetched.find((one) => one.word === word);
  if (!own) {
    return fetched.length ? null : element("p", { class: "block quiet" }, "Nothing in this sentence was taken from approved translations.");
  }
  const place = own.sentence === null ? own.origin : `sentence ${own.sentence + 1}`;
  return element(
    "section",
    { class: "block fetched" },
    element("p", {}, `${percent(own.share)} from an approved translation${place ? ` (${place})` : ""}: `, element("b", { lang: data.target_language, dir: "auto" }, own.text)),
    element("p", { class: "quiet", lang: data.source_language, dir: "auto" }, own.source),
    element("p", { lang: data.target_language, dir: "auto" }, own.target),
  );
}

/* The words of the other side; where they are the ones that attend, one of them is chosen. */
function partners(view, query, actions) {
  const aligned = alignedWith(view.side, view.sentence, view.word).slice(0, 6);
  if (!aligned.length) return null;
  const other = view.side === "source" ? "target" : "source";
  const chooses = view.side !== querySide && hasAttention;
  const name = view.side === "target" ? "Reads" : "Read by";
  return element(
    "section",
    { class: "block partners" },
    element(
      "p",
      { class: "chips" },
      element("span", { class: "quiet" }, name),
      ...aligned.map(([index, weight]) =>
        element(
          "button",
          {
            type: "button",
            class: "chip",
            lang: other === "source" ? data.source_language : data.target_language,
            "aria-pressed": chooses ? String(index === query) : null,
            onclick: () => (chooses ? actions.chooseQuery(index) : actions.select({ side: other, sentence: view.sentence, word: index })),
          },
          data.sentences[view.sentence][other].text[index],
          element("span", { class: "chip-note" }, percent(weight)),
        ),
      ),
    ),
    chooses ? element("p", { class: "quiet" }, "The context below is that of the chosen word.") : null,
  );
}

function measures(sentence, query, row, head) {
  const share = data.sentences[sentence].context_share[query];
  const others = data.sentences.length - 1;
  return element(
    "dl",
    { class: "measures" },
    share === undefined
      ? null
      : element("div", {}, element("dt", {}, "gate open to context"), element("dd", {}, percent(share), meter(share))),
    element(
      "div",
      {},
      element("dt", {}, head === null ? "sentences attended (mean)" : `attended by head ${head + 1}`),
      element("dd", {}, `${Number(row.attended.toFixed(1))} of ${others}`, meter(others ? row.attended / others : 0)),
    ),
  );
}

function headChooser(attention, query, view, actions) {
  const choice = (head, name, attended) =>
    element(
      "button",
      {
        type: "button",
        role: "radio",
        "aria-checked": String(view.head === head),
        "aria-label": head === null ? "all heads" : `head ${name}, ${count(attended, "sentence", "sentences")}`,
        tabindex: view.head === head ? "0" : "-1",
        "data-head": head === null ? "all" : head,
        onclick: () => actions.chooseHead(head),
      },
      element("span", {}, name),
      element("small", { title: "sentences attended" }, attended),
    );
  const heads = Array.from({ length: attention.heads }, (_, head) =>
    choice(head, String(head + 1), attention.row(query, head).attended),
  );
  return element(
    "section",
    {},
    element("p", { class: "quiet", id: "heads-name" }, "Attention heads, and how many sentences each looks at"),
    element(
      "div",
      { class: "heads", role: "radiogroup", "aria-labelledby": "heads-name" },
      choice(null, "All heads", attention.average(query).attended.toFixed(1)),
      ...heads,
    ),
  );
}

/* The whole document as a ribbon: a bar for each sentence, as high as its mass. */
function ribbon(entries, current, actions) {
  const total = data.sentences.length;
  const height = 40;
  const most = Math.max(...entries.map((entry) => entry.mass), 0.001);
  const width = 1000 / total;
  const bars = entries.map(({ sentence, mass }) => {
    const size = Math.max(3, (mass / most) * height);
    const bar = shape("rect", { x: sentence * width, y: height - size, width: Math.max(width * 0.8, 3), height: size, class: "ribbon-bar" });
    bar.addEventListener("click", () => actions.visit(sentence));
    bar.append(shape("title"));
    bar.firstChild.textContent = `sentence ${sentence + 1}: ${percent(mass)}`;
    return bar;
  });
  const here = shape("rect", { x: current * width, y: 0, width: Math.max(width * 0.8, 3), height, class: "ribbon-here" });
  return element(
    "figure",
    { class: "ribbon" },
    shape("svg", { viewBox: `0 0 1000 ${height}`, preserveAspectRatio: "none", role: "img", "aria-label": "Where in the document attention goes" }, here, ...bars),
    element("figcaption", {}, element("span", {}, "1"), element("span", {}, "where in the document"), element("span", {}, String(total))),
  );
}

function contextList(row, current, actions) {
  const cards = row.entries.map((entry) => contextCard(entry, current, actions));
  const unlisted = row.rest > 0.0005 ? element("p", { class: "quiet" }, `Lighter sentences, not listed, share ${percent(row.rest)}.`) : null;
  if (!cards.length) return element("p", { class: "quiet" }, "It looked at no other sentence.");
  return element(
    "section",
    {},
    element("p", { class: "quiet" }, "Where it looks, heaviest first. Small numbers are percent of all that it looks at."),
    element("ol", { class: "context", "aria-label": "Context sentences in decreasing probability mass" }, ...cards),
    unlisted,
  );
}

function contextCard({ sentence, mass, words }, current, actions) {
  const side = data.sentences[sentence].context_words;
  const glued = new Set(side.glued);
  const heaviest = words.indexOf(Math.max(...words));
  const spans = side.text.flatMap((text, word) => {
    const weight = mass * (words[word] ?? 0); // of all that this word attends to
    const step = heat(weight);
    const numbered = step >= 3 || (word === heaviest && step > 0);
    const span = element(
      "span",
      step ? { class: "c", "data-heat": step, title: percent(weight) } : {},
      text,
      numbered ? element("sup", {}, percent(weight).replace(" %", "")) : null,
    );
    return word && !glued.has(word) ? [" ", span] : [span];
  });
  return element(
    "li",
    { class: "context-card", "data-sentence": sentence, "data-mass": mass.toFixed(6) },
    element(
      "button",
      { type: "button", class: "context-head", onclick: () => actions.visit(sentence), title: "Show in the document" },
      element("span", { class: "place" }, "s", element("sup", {}, relative(sentence, current))),
      element("span", { class: "quiet" }, `sentence ${sentence + 1}`),
      meter(mass),
      element("span", { class: "figure" }, percent(mass)),
    ),
    element("p", { class: "context-text", lang: encoder ? data.source_language : data.target_language, dir: "auto" }, ...spans),
  );
}

function announce({ side, sentence, word }, query, row) {
  const text = data.sentences[sentence][side].text[word];
  const share = query === null ? undefined : data.sentences[sentence].context_share[query];
  const gate = share === undefined ? "" : ` Gate ${percent(share)} open.`;
  const looked = row ? ` ${row.entries.slice(0, 3).map((entry) => `Sentence ${entry.sentence + 1}, ${percent(entry.mass)}`).join("; ")}.` : "";
  $("announcement").textContent = `${text}.${gate}${looked}`;
}
