/* Talking to the server. What could not be sent yet is kept in the browser, and sent when the server is back. */

class ServerError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

async function ask(method, path, body, signal) {
  const options = { method, signal };
  if (body instanceof FormData) options.body = body;
  else if (body !== undefined) {
    options.body = JSON.stringify(body);
    options.headers = { "Content-Type": "application/json" };
  }
  const answer = await fetch(path, options);
  if (answer.ok) return answer.status === 204 ? null : answer.json();
  const value = await answer.json().catch(() => ({}));
  throw new ServerError(answer.status, value.error ?? `The server answered ${answer.status}.`);
}

const projectPath = () => `/v1/projects/${state.project}`;
const documentPath = () => `${projectPath()}/documents/${state.document}`;
const rowPath = (position) => `${documentPath()}/segments/${position}`;

/* Edits on their way, the latest of each row: { path: { target, state } }. One request at a time for a row, so that an
   older text never overtakes a newer one. */
const unsent = {
  key: "weitblick.unsent",
  edits: JSON.parse(localStorage.getItem("weitblick.unsent") ?? "{}"),
  sending: new Set(),

  put(path, edit) {
    this.edits[path] = edit;
    this.store();
    return this.send(path);
  },

  store() {
    localStorage.setItem(this.key, JSON.stringify(this.edits));
  },

  async send(path) {
    if (this.sending.has(path)) return;
    this.sending.add(path);
    try {
      while (this.edits[path]) {
        const edit = this.edits[path];
        const row = await ask("PUT", path, { ...edit, focus: state.focus ?? undefined });
        if (this.edits[path] === edit) {
          delete this.edits[path];
          this.store();
          if (path === rowPath(row.position)) receiveRows([row]);
        }
      }
    } catch (error) {
      const refused = error instanceof ServerError && error.status < 500 && error.status !== 429;
      if (refused) {
        delete this.edits[path];
        this.store();
      }
      const reason = error instanceof ServerError ? error.message : "the server cannot be reached";
      say(refused ? `Not saved: ${reason}` : `Not saved yet: ${reason}. Your text is kept here and sent again.`);
    } finally {
      this.sending.delete(path);
    }
  },

  retry() {
    for (const path of Object.keys(this.edits)) this.send(path);
  },
};
setInterval(() => unsent.retry(), 3000);
