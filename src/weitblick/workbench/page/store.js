// @ts-check
/* What the page knows, in one place. `change` is the only way to alter it, and draws the page afterwards. */

/**
 * @typedef {"empty" | "draft" | "edited" | "confirmed" | "reviewed"} RowState
 * @typedef {{ id: number, text: string, person: string | null, time: number, version: number }} Comment
 *
 * A row as the server has it. `version` counts its changes; `written` is the version at which a person last wrote it,
 * from the tab `writer`, as the write number `writer_edit` of that tab. `before` is the text before the model changed
 * it because something was confirmed, or before a replacement, until somebody has seen to that.
 * @typedef {object} Row
 * @property {number} position
 * @property {string} source
 * @property {string} target
 * @property {RowState} state
 * @property {number} version
 * @property {number} written
 * @property {string | null} writer
 * @property {number} writer_edit
 * @property {string | null} before
 * @property {number | null} cause the edit because of which the model changed it; below zero the number of a term
 * @property {string | null} person who wrote it last
 * @property {number | null} decided when, in seconds
 * @property {string | null} origin where its draft comes from
 * @property {number | null} match how like the matched source is, in per cent
 * @property {string | null} matched_source
 * @property {PlacedFormat[]} placed
 * @property {Comment[]} comments
 *
 * Formatting that somebody has put around characters of a translation: its number in the source, and which characters,
 * counted as the server counts them (see `characters` in tags.js).
 * @typedef {{ mark: number, start: number, end: number }} PlacedFormat
 *
 * A placeholder or formatting in a text. `automatic`: nobody has placed it.
 * @typedef {{ start: number, end: number, kind: "placeholder" | "format", text: string, automatic: boolean }} Mark
 * A term in a source: its words there, its translations, and where it comes from.
 * @typedef {{ start: number, end: number, source: string, targets: string[], origin: string }} TermMark
 * @typedef {{ code: string, name: string, direction: string }} Language
 * @typedef {{ id: string, name: string }} Named
 * @typedef {{ source: string, target: string, similarity: number }} Match
 * @typedef {{ target: string, count: number, positions: number[], approved: boolean }} Variant
 * @typedef {{ source: string, variants: Variant[] }} Term
 * @typedef {{ id: number, kind: string, source: string, target: string }} Pair
 *
 * What looks wrong in a row, and what is known of a row's text: whether that has been asked.
 * @typedef {{ position: number, rule: string, words: string, message: string }} Finding
 * @typedef {{ target: string, found: Finding[], asked: boolean }} KnownFindings
 * @typedef {{ name: string, source?: string, target?: string, missing?: string, message?: string }} OwnRule
 * @typedef {{ id: number, rule: string, words: string | null, position: number | null }} IgnoredFindings
 * @typedef {{ id: string, name: string, formality: import("./formality.js").Formality, formalities: import("./formality.js").Formality[], confirmed: number, documents: Named[], pairs: Pair[], ignored: IgnoredFindings[], rules: OwnRule[] }} ProjectDetails
 *
 * The word that the panel is about: `head` null means all attention heads.
 * @typedef {{ side: "source" | "target", sentence: number, word: number, head: number | null, query: number | null }} WordView
 */

export const state = {
  /** @type {{ source: Language, target: Language } | null} */
  languages: null,
  /** @type {string[]} the file names' endings that the server reads */
  fileKinds: [],
  /** @type {Named[]} */
  projects: [],
  /** @type {string | null} */
  project: null,
  /** @type {Named[]} of the project */
  documents: [],
  /** @type {string | null} the document that is shown */
  document: null,
  /** @type {Named | null} the document that was shown when another one was to be added */
  left: null,
  /** Whether the shown document is on its way: its news wait until it is here. */
  loading: false,
  /** @type {Row[]} as the server has them; what this tab has not saved yet lies over them (see saving.js) */
  rows: [],
  /** @type {string | null} the document that the rows belong to */
  rowsOf: null,
  /** @type {Set<number> | null} the rows that were looked for and are shown; null: all. Replaced, never changed */
  found: null,
  /** @type {Set<number>} the rows that are chosen, to do something to all of them. Replaced, never changed */
  chosen: new Set(),
  /** @type {Map<number, Mark[]>} what is no language in the sources, by row. Replaced, never changed */
  tags: new Map(),
  /** @type {Map<number, TermMark[]>} the terms in the sources, by row. Replaced, never changed */
  terms: new Map(),
  /** @type {{ position: number, target: string, marks: Mark[] } | null} where the formatting of the row under the cursor goes */
  placed: null,
  /** @type {number | null} the row whose matched source is shown */
  compared: null,
  /** @type {{ pair: number, source: string, target: string } | null} the latest term, until somebody has seen to it */
  term: null,
  /** @type {(import("./corrections.js").Corrected & { position: number })[]} what was corrected, the latest first, until somebody has seen to it */
  corrected: [],
  /** @type {Map<number, import("./typists.js").Typing>} rows that somebody else types in. Replaced, never changed */
  typists: new Map(),
  /** @type {number | null} the row under the cursor */
  focus: null,
  /** @type {number | null} the row under the pointer, whose words are elements */
  pointed: null,
  /** @type {number | null} the changed row that was visited last */
  visited: null,
  /** @type {import("./completion.js").Completion | null} what may follow what is typed */
  completion: null,
  /** @type {{ position: number, texts: string[], matches: Match[], found: boolean, failure: string } | null} */
  alternatives: null,
  /** @type {{ view: WordView, target: string } | null} the word that is explained, and the text it was a word of */
  word: null,
  /** Why a word is not explained. */
  wordFailure: "",
  /** @type {Map<number, number>} of the rows that the explained word looked at: how much */
  attended: new Map(),
  /** @type {Map<number, KnownFindings>} by row; entries are replaced, never changed */
  findings: new Map(),
  /** @type {{ terms: Term[] | null, failure: string }} null: not looked for yet */
  consistency: { terms: null, failure: "" },
  /** @type {ProjectDetails | null} what the dialog of the project shows */
  details: null,
  /** The one status line. */
  status: "",
};

/** @type {() => void} */
let draw = () => {};
let depth = 0;

/** Says how the page is drawn. @param {() => void} render */
export function drawWith(render) {
  draw = render;
}

/** Alters the state and draws the page: once, however many changes are made inside of one.
 * @param {(state: typeof import("./store.js").state) => void} alter */
export function change(alter) {
  depth += 1;
  try {
    alter(state);
  } finally {
    depth -= 1;
  }
  if (depth === 0) draw();
}

const WARNING = 10_000; // ms that a warning stands before news may replace it
let warned = -WARNING;

/** Says what somebody's own action did. @param {string} text */
export function say(text) {
  change((now) => {
    now.status = text;
  });
}

/** Says what needs somebody's attention. @param {string} text */
export function warn(text) {
  warned = performance.now();
  say(text);
}

/** Says what has happened by itself, unless there is something more important to read. @param {string} text */
export function tell(text) {
  if (performance.now() - warned > WARNING) say(text);
}

/** Whether a row changed because something was confirmed or replaced, and nobody has seen to that. @param {Row} row */
export const isChanged = (row) => row.before !== null;

/** Whether somebody has confirmed or reviewed a row. @param {{ state: string }} row */
export const isApproved = (row) => row.state === "confirmed" || row.state === "reviewed";

/** The languages of the model, which are known before anything is shown. */
export function languages() {
  if (!state.languages) throw new Error("the languages are not known yet");
  return state.languages;
}
