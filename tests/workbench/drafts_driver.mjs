// Runs the page's drafts.js for tests: tabs of one browser, whose requests a test answers as it likes. One JSON command
// a line comes in, one JSON answer a line goes out: the requests that were sent since, and what is kept.
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";

const script = readFileSync(process.argv[2], "base64");
const { Drafts } = await import(`data:text/javascript;base64,${script}`);

let storage, tabs, requests, clock, serial;

/* As localStorage: one for all tabs of a browser. `full` refuses whatever is new. */
class Keeper {
  kept = new Map();
  full = false;
  get length() {
    return this.kept.size;
  }
  key(index) {
    return [...this.kept.keys()][index] ?? null;
  }
  getItem(key) {
    return this.kept.get(key) ?? null;
  }
  setItem(key, value) {
    if (this.full) throw new Error("full");
    this.kept.set(key, value);
  }
  removeItem(key) {
    this.kept.delete(key);
  }
}

const acts = {
  reset() {
    storage = new Keeper();
    tabs = new Map();
    requests = new Map();
    clock = serial = 0;
  },
  open({ tab }) {
    const send = (draft) => new Promise((answer) => requests.set(++serial, { tab, draft, answer }));
    tabs.set(tab, new Drafts({ tab, storage, send, answered: () => {}, unkept: () => {}, now: () => ++clock }));
  },
  close({ tab }) {
    tabs.delete(tab);
    for (const [id, request] of requests) if (request.tab === tab) requests.delete(id);
  },
  keep: ({ tab, path, target, state, version }) => tabs.get(tab).keep(path, { target, state, version }),
  send: ({ tab, path }) => void tabs.get(tab).send(path),
  flush: ({ tab }) => tabs.get(tab).flush(),
  retry: ({ tab }) => void tabs.get(tab).retry(),
  keepMine: ({ tab, path, row }) => tabs.get(tab).keepMine(path, row),
  forget: ({ tab, path }) => tabs.get(tab).forget(path),
  adopt: ({ tab, prefix, rows }) => tabs.get(tab).adopt(prefix, (path) => rows[path], (other) => tabs.has(other)),
  answer({ id, answer }) {
    requests.get(id).answer(answer);
    requests.delete(id);
  },
};

acts.reset();
for await (const line of createInterface({ input: process.stdin })) {
  const command = JSON.parse(line);
  const value = acts[command.act](command);
  await new Promise((done) => setImmediate(done)); // what follows from an answer has happened
  const sent = [...requests].map(([id, { tab, draft }]) => ({ id, tab, draft }));
  const drafts = [...tabs].flatMap(([tab, { drafts: own }]) => [...own.values()].map((draft) => ({ ...draft, tab })));
  const kept = [...storage.kept.values()].map((text) => JSON.parse(text));
  process.stdout.write(`${JSON.stringify({ value, sent, drafts, kept })}\n`);
}
