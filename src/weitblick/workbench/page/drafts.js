// @ts-check
/* What this tab has written and the server has not yet taken: kept from the first key on, sent one request at a time for
   each row, and never written over something that this tab has not seen.

   This module knows neither the page nor the network. It is given a storage and a way to send, so that tests run it as
   it is, with a server that dies and saves that are refused. */

/**
 * A text for a row. `version` is the row's version that it was written over, `number` counts what the tab wrote.
 * `ask`: the row is not to be confirmed if something looks wrong in it that nobody has been asked about.
 * `stopped` says why it is not sent: "" (it is), "conflict" (somebody else has written the row meanwhile), or what the
 * server has against it.
 * @typedef {object} Draft
 * @property {string} path
 * @property {string} target
 * @property {"draft" | "edited" | "confirmed" | "reviewed"} state
 * @property {number} version
 * @property {string} tab
 * @property {number} number
 * @property {boolean} ask
 * @property {"alternative" | "copy" | "clear" | null} [act] how the text came about, unless it was typed
 * @property {string} stopped
 * @property {number} time
 *
 * What is read of a row.
 * @typedef {object} Saved
 * @property {string} target
 * @property {string} state
 * @property {number} version
 * @property {number} written
 * @property {string | null} writer
 * @property {number} writer_edit
 *
 * What the server said: the row as it is now, or why not.
 * @typedef {{ kind: "saved", row: Saved } | { kind: "conflict", row: Saved } | { kind: "refused", reason: string }
 *   | { kind: "failed", reason: string }} Answer
 *
 * @typedef {Pick<Storage, "getItem" | "setItem" | "removeItem" | "key" | "length">} Keeper
 */

const PREFIX = "weitblick.draft.";
const CONFLICT = "conflict";
const MOST_AGE = 60 * 24 * 3600 * 1000; // ms that a text is kept whose document is never opened again

export class Drafts {
  /** @param {{ tab: string, storage: Keeper, send: (draft: Draft) => Promise<Answer>,
   *   answered: (draft: Draft, answer: Answer) => void, unkept: () => void, now?: () => number }} given
   * `answered` is told of every answer once the draft has been seen to, `unkept` that the browser keeps nothing */
  constructor({ tab, storage, send, answered, unkept, now = Date.now }) {
    this.tab = tab;
    this.storage = storage;
    this.transport = send;
    this.answered = answered;
    this.unkept = unkept;
    this.now = now;
    this.number = 0;
    /** @type {Map<string, Draft>} by path */
    this.drafts = new Map();
    /** @type {Map<string, Draft>} what is on its way to the server */
    this.sending = new Map();
    /** What waits for that, by path. @type {Map<string, Promise<void>>} */
    this.arriving = new Map();
  }

  /** @param {string} path */
  of(path) {
    return this.drafts.get(path);
  }

  /** Keeps what was written in a row, at every key. `version` is the row's that was shown when writing began.
   * @param {string} path @param {{ target: string, state: Draft["state"], version: number, ask?: boolean, act?: Draft["act"] }} written */
  keep(path, { target, state, version, ask = false, act = null }) {
    const known = this.drafts.get(path);
    this.put({
      path, target, state, ask, act,
      version: known ? known.version : version,
      tab: this.tab,
      number: ++this.number,
      stopped: known?.stopped === CONFLICT ? CONFLICT : "",
      time: this.now(),
    });
  }

  /** Sends what is kept for a row, and what is written until that has arrived: waits for all of it, also for what is on
   * its way already. @param {string} path */
  async send(path) {
    const known = this.arriving.get(path);
    if (known || !this.waiting(path)) return known;
    const arriving = this.sendAll(path);
    this.arriving.set(path, arriving);
    return arriving;
  }

  /** @param {string} path */
  async sendAll(path) {
    try {
      for (let draft = this.waiting(path); draft; draft = this.waiting(path)) {
        this.sending.set(path, draft);
        const answer = await this.transport(draft);
        this.sending.delete(path);
        this.settle(draft, answer);
        if (answer.kind === "failed") return;
      }
    } finally {
      this.arriving.delete(path);
    }
  }

  /** Sends everything at once, not waiting for what is on its way: the page is about to go. The server keeps the order
   * of a tab's writes by their numbers. */
  flush() {
    for (const path of this.drafts.keys()) {
      const draft = this.waiting(path);
      if (draft && this.sending.get(path) !== draft) this.transport(draft).then((answer) => this.settle(draft, answer));
    }
  }

  /** Sends everything that is kept, also what has failed, and waits for its arrival. */
  retry() {
    return Promise.all([...this.drafts.keys()].map((path) => this.send(path)));
  }

  /** Two texts for one row: the tab's own goes over the other, which was seen. @param {string} path @param {Saved} row */
  keepMine(path, row) {
    const draft = this.drafts.get(path);
    if (!draft) return;
    this.put({ ...draft, version: row.version, number: ++this.number, stopped: "", time: this.now() });
  }

  /** The tab's own text is given up. @param {string} path */
  forget(path) {
    this.drafts.delete(path);
    this.storage.removeItem(this.key(this.tab, path));
  }

  /** Takes over what tabs that are gone have left for rows of a document: it is sent again, unless somebody has written
   * since. Gives the paths of the rows that have such a text.
   * @param {string} prefix of the rows' paths @param {(path: string) => Saved | undefined} rowAt
   * @param {(tab: string) => boolean} isAlive */
  adopt(prefix, rowAt, isAlive) {
    const adopted = [];
    for (const [key, left] of this.left(prefix)) {
      const row = rowAt(left.path);
      if (!row || isAlive(left.tab) || this.drafts.has(left.path)) continue;
      if (!hasArrived(left, row)) {
        const own = row.writer === left.tab; // only the tab itself has written since
        const stopped = row.written > left.version && !own ? CONFLICT : left.stopped;
        this.put({ ...left, tab: this.tab, number: ++this.number, version: own ? row.version : left.version, stopped });
        adopted.push(left.path);
      }
      this.storage.removeItem(key);
    }
    return adopted;
  }

  /** What other tabs have kept for these rows, the latest first; what is very old is thrown away. @param {string} prefix */
  left(prefix) {
    /** @type {[string, Draft][]} */
    const found = [];
    for (const key of keysOf(this.storage)) {
      if (!key.startsWith(PREFIX) || key.startsWith(this.key(this.tab, ""))) continue;
      const draft = parsed(this.storage.getItem(key));
      if (!draft || this.now() - draft.time > MOST_AGE) this.storage.removeItem(key);
      else if (draft.path.startsWith(prefix)) found.push([key, draft]);
    }
    return found.sort(([, a], [, b]) => b.time - a.time);
  }

  /** Whether anything is to be sent. */
  get isWaiting() {
    return [...this.drafts.keys()].some((path) => this.waiting(path));
  }

  /** @param {string} path */
  waiting(path) {
    const draft = this.drafts.get(path);
    return draft && !draft.stopped ? draft : undefined;
  }

  /** @param {Draft} draft @param {Answer} answer */
  settle(draft, answer) {
    const latest = this.drafts.get(draft.path);
    if (latest && answer.kind === "saved") {
      if (latest.number <= draft.number) this.forget(draft.path);
      else if (!latest.stopped) this.put({ ...latest, version: Math.max(latest.version, answer.row.version) });
    } else if (latest && answer.kind === "conflict") {
      if (latest.version <= draft.version) this.put({ ...latest, stopped: CONFLICT });
    } else if (latest && answer.kind === "refused") {
      if (latest.number === draft.number) this.put({ ...latest, stopped: answer.reason });
    }
    this.answered(draft, answer);
  }

  /** @param {Draft} draft */
  put(draft) {
    this.drafts.set(draft.path, draft);
    try {
      this.storage.setItem(this.key(this.tab, draft.path), JSON.stringify(draft));
    } catch {
      this.unkept();
    }
  }

  /** @param {string} tab @param {string} path */
  key(tab, path) {
    return `${PREFIX}${tab}.${path}`;
  }
}

/** Whether two texts for a row wait for a decision. @param {Draft | undefined} draft */
export const isConflict = (draft) => draft?.stopped === CONFLICT;

/** Whether the server has this text already, or a later one of the same tab. @param {Draft} draft @param {Saved} row */
function hasArrived(draft, row) {
  if (row.writer === draft.tab && row.writer_edit >= draft.number) return true;
  return row.target === draft.target && (row.state === draft.state || draft.state === "edited");
}

/** @param {Keeper} storage */
function keysOf(storage) {
  return Array.from({ length: storage.length }, (_, index) => storage.key(index)).filter((key) => key !== null);
}

/** @param {string | null} text @returns {Draft | null} */
function parsed(text) {
  try {
    const value = JSON.parse(text ?? "");
    return typeof value?.path === "string" && typeof value.target === "string" ? value : null;
  } catch {
    return null;
  }
}
