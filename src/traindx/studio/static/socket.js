// The studio behind the page: questions and answers over one websocket, which is opened again when it breaks.

const WAITS = [300, 600, 1200, 2500, 5000]; // milliseconds between attempts

export function loadPlotly() {
  return new Promise((resolve) => {
    const script = document.createElement("script");
    script.src = "plotly.min.js";
    script.onload = resolve;
    document.head.append(script);
  });
}

export function source(onState) { return new Socket(onState); }

class Socket {
  hasRuns = true;
  canWrite = true;

  /** `onState(connected)` is called when the connection breaks and when it is back. */
  constructor(onState) {
    this.onState = onState;
    this.live = true;
    this.count = 0;
    this.open = new Map(); // questions without an answer
    this.watching = new Map(); // run -> callback
    this.failed = 0;
    this.connect();
  }

  connect() {
    this.socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/socket`);
    this.socket.onopen = () => {
      if (this.failed) this.onState(true);
      this.failed = 0;
      for (const { message } of this.open.values()) this.socket.send(message);
      for (const run of this.watching.keys()) this.tell({ ask: "watch", name: run });
    };
    this.socket.onmessage = (event) => this.take(JSON.parse(event.data));
    this.socket.onclose = () => {
      if (this.failed === 0) this.onState(false);
      setTimeout(() => this.connect(), WAITS[Math.min(this.failed++, WAITS.length - 1)]);
    };
  }

  take(message) {
    if (message.push) {
      this.watching.get(message.push)?.(message);
      return;
    }
    const asked = this.open.get(message.id);
    if (!asked) return;
    this.open.delete(message.id);
    if ("error" in message) asked.reject(Object.assign(new Error(String(message.error)), { text: message.error }));
    else asked.resolve(message.answer);
  }

  tell(fields) {
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify({ id: ++this.count, ...fields }));
  }

  /** Of several questions with the same `slot` only the last one is answered. */
  ask(fields, slot = null) {
    const id = ++this.count;
    const message = JSON.stringify({ id, ...fields });
    if (slot) for (const [other, asked] of this.open) if (asked.slot === slot) this.open.delete(other);
    return new Promise((resolve, reject) => {
      this.open.set(id, { message, slot, resolve, reject });
      if (this.socket.readyState === WebSocket.OPEN) this.socket.send(message);
    });
  }

  catalogue() { return this.ask({ ask: "catalogue" }); }
  lab(name, state) { return this.ask({ ask: "lab", name, state }, `lab ${name}`); }
  leaf(name, seed) { return this.ask({ ask: "leaf", name, seed }, "leaf"); }
  rule(name) { return this.ask({ ask: "rule", name }); }

  // -- runs
  runs() { return this.ask({ ask: "runs" }); }
  run(name) { return this.ask({ ask: "run", name }); }
  checklist(name) { return this.ask({ ask: "checklist", name }); }
  compare(names) { return this.ask({ ask: "compare", names }); }
  note(name, lines) { return this.ask({ ask: "note", name, lines }); }
  pageUrl(run, page) { return `pages/${encodeURIComponent(run)}/${encodeURIComponent(page)}`; }

  /** News of one run, pushed until it is over; watching another one ends it. */
  watch(name, tell) {
    this.watching.clear();
    this.watching.set(name, tell);
    this.tell({ ask: "watch", name });
  }

  unwatch(name) {
    if (this.watching.delete(name)) this.tell({ ask: "watch", name: "" });
  }
}
