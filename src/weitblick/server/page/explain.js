/* Why this word: the report's panel for a word of the table. */

const HOVER = 220; // ms that the pointer rests on a word
let view = null; // { side, sentence, word, head, query }, as the panel takes it
let known = { key: null, promise: null };
let hoverTimer = 0;
let caretTimer = 0;

const panelActions = {
  announce: () => {}, // the panel is read on demand: the status line is for what happened
  isCurrent: (other) => view === other,
  select: (place) => show({ ...place, head: view?.head ?? null, query: null }),
  chooseHead: (head) => show({ ...view, head }),
  chooseQuery: (query) => show({ ...view, query }),
  visit: (position) => {
    views[position].element.scrollIntoView({ block: "center", behavior: calm() ? "auto" : "smooth" });
    views[position].element.classList.remove("visited");
    void views[position].element.offsetWidth; // starts the animation again
    views[position].element.classList.add("visited");
  },
};

/* The explanation of a row as it stands, asked for once. */
function explanationOf(position) {
  const row = state.rows[position];
  const confirmed = state.rows.filter(({ state: name }) => name === "confirmed").length;
  const key = JSON.stringify([state.document, position, row.target, confirmed]);
  if (known.key !== key) known = { key, promise: ask("GET", `${rowPath(position)}/explanation`) };
  return known.promise;
}

/* `offset`: where in the text of that side the word begins. Of several that were asked for the last is shown. */
let asked = 0;
async function explainWord(position, side, offset, pointed = false) {
  if (!state.rows[position].target.trim()) return;
  clearTimeout(caretTimer);
  const own = ++asked;
  let value;
  try {
    value = await explanationOf(position);
  } catch (error) {
    known = { key: null, promise: null };
    if (own === asked) return $("word-panel").replaceChildren(element("p", { class: "quiet" }, error.message));
  }
  if (own !== asked || value === undefined) return;
  if (data !== value) useExplanation(value);
  const word = wordAt(data.sentences[position][side].text, side === "source" ? state.rows[position].source : state.rows[position].target, offset);
  if (word === null) return;
  await show({ side, sentence: position, word, head: null, query: null });
  if (pointed) $("row-panel").scrollTop = $("word-panel").offsetTop - $("row-panel").offsetTop - 16; // other translations stand above
}

/* The index of the model's word that holds a character of the text. A model may write a word in another way (quotes,
   dashes): it stands where the one before it ends. */
function wordAt(words, text, offset) {
  let from = 0;
  for (let index = 0; index < words.length; index++) {
    const found = text.indexOf(words[index], from);
    const start = found < 0 || found > from + 40 ? from + text.slice(from).search(/\S|$/) : found;
    from = start + words[index].length;
    if (offset < from) return index;
  }
  return null;
}

async function show(place) {
  view = { side: place.side, sentence: place.sentence, word: place.word, head: place.head, query: place.query ?? null };
  clearContext();
  const row = await showWord(view, panelActions);
  if (!row) return;
  for (const { sentence, mass } of row.entries.slice(0, 8)) markContextRow(sentence, mass);
}

let markedRows = [];
function markContextRow(position, mass) {
  const number = views[position]?.element.querySelector(".number");
  number?.setAttribute("data-mass", percent(mass));
  if (number) markedRows.push(number);
}
function clearContext() {
  for (const number of markedRows) number.removeAttribute("data-mass");
  markedRows = [];
}

function invite() {
  view = null;
  clearContext();
  $("alternatives").replaceChildren();
  $("word-panel").replaceChildren(
    element("p", { class: "invitation" }, "Point at a word, or move the cursor to it, to see which sentences and which approved translations decided it, and what would stand there without them."),
  );
}

/* The word under the pointer: in the source, or behind the text field. */
$("rows").addEventListener("pointerover", (event) => {
  const row = event.target.closest("tr");
  if (row) splitWords(Number(row.dataset.position));
});
$("rows").addEventListener("pointermove", (event) => {
  clearTimeout(hoverTimer);
  if (event.pointerType === "touch" || event.buttons) return;
  const { clientX, clientY } = event;
  hoverTimer = setTimeout(() => pointAt(clientX, clientY), HOVER);
});
$("rows").addEventListener("pointerleave", () => clearTimeout(hoverTimer));
$("rows").addEventListener("click", (event) => pointAt(event.clientX, event.clientY));

function pointAt(x, y) {
  const row = document.elementFromPoint(x, y)?.closest("#rows tr");
  if (!row) return;
  splitWords(Number(row.dataset.position));
  const span = document.elementsFromPoint(x, y).find((node) => node.classList.contains("w") && node.closest("#rows"));
  if (!span) return;
  const position = Number(row.dataset.position);
  const side = span.closest(".source") ? "source" : "target";
  let offset = 0;
  for (let node = span.previousSibling; node; node = node.previousSibling) offset += node.textContent.length;
  explainWord(position, side, offset, true);
}

/* The word at the cursor, once it rests there. */
document.addEventListener("selectionchange", () => {
  clearTimeout(caretTimer);
  const field = document.activeElement;
  if (field?.tagName !== "TEXTAREA" || !field.closest("#rows") || field.selectionStart !== field.selectionEnd) return;
  const position = Number(field.dataset.position);
  caretTimer = setTimeout(() => {
    if (document.activeElement === field && field.value === state.rows[position].target && !typingTimer) explainWord(position, "target", field.selectionStart);
  }, 600);
});
