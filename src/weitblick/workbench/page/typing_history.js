// @ts-check
/* What was typed in one row since the cursor came to it, to be taken back and done again piece by piece. The browser's own
   history does not know where a row ends: it would go on in the row before. */

/** @typedef {{ text: string, cursor: number }} Moment */

const PAUSE = 1000; // ms after which typing is another piece

export class TypingHistory {
  /** @param {number} position @param {string} text @param {() => number} [now] */
  constructor(position, text, now = () => performance.now()) {
    this.position = position;
    /** @type {Moment[]} */
    this.moments = [{ text, cursor: text.length }];
    this.at = 0;
    this.now = now;
    this.latest = -PAUSE;
    this.kind = "";
  }

  /** A text that was typed. What goes on without a pause within a word is one piece.
   * @param {Moment} moment @param {string} kind what was done, as `InputEvent.inputType` says it */
  add(moment, kind) {
    const before = this.moments[this.at];
    if (before.text === moment.text) return;
    const begins = kind === "insertText" && /\s$/.test(before.text.slice(0, moment.cursor - 1)) && !/^\s/.test(moment.text.slice(moment.cursor - 1));
    const isTyping = kind === "insertText" || kind.startsWith("deleteContent");
    const goesOn = this.at > 0 && isTyping && kind === this.kind && this.now() - this.latest < PAUSE && !begins && Math.abs(moment.text.length - before.text.length) === 1;
    this.moments.splice(this.at + (goesOn ? 0 : 1));
    this.moments.push(moment);
    this.at = this.moments.length - 1;
    this.kind = kind;
    this.latest = this.now();
  }

  /** The moment before or after, if the row still has the text of the latest; null: there is none.
   * @param {"undo" | "redo"} direction @param {string} text that the row has now */
  go(direction, text) {
    const next = this.at + (direction === "undo" ? -1 : 1);
    if (this.moments[this.at].text !== text || !this.moments[next]) return null;
    this.at = next;
    this.kind = "";
    return this.moments[next];
  }

  /** Whether everything is taken back. */
  get isAtStart() {
    return this.at === 0;
  }
}
