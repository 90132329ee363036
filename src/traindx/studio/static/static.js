// The studio in one file: every answer was computed when it was written, and lies packed in this page. Stands in for socket.js.

const packed = (name) => document.getElementById(`data-${name}`)?.textContent.trim();

async function unpack(name) {
  const bytes = Uint8Array.from(atob(packed(name)), (letter) => letter.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).text();
}

export async function loadPlotly() {
  const script = document.createElement("script");
  script.textContent = await unpack("plotly");
  document.head.append(script);
}

export function source() { return new Chapter(); }

class Chapter {
  canWrite = false;
  seeds = 1;
  hasRuns = packed("record") !== undefined;

  constructor() { this.read = new Map(); }

  open(name) {
    if (!this.read.has(name)) this.read.set(name, unpack(name).then(JSON.parse));
    return this.read.get(name);
  }

  catalogue() { return this.open("catalogue"); }

  /** The outcome of a state: states are counted as Python does it, the last knob fastest. */
  async lab(name, state) {
    const [book, outcomes] = await Promise.all([this.catalogue(), this.open(`lab-${name}`)]);
    const { knobs } = book.labs.find((lab) => lab.name === name);
    return { state, ...outcomes[knobs.reduce((at, knob) => at * knob.values.length + knob.values.indexOf(state[knob.name]), 0)] };
  }

  async leaf(name) { return found((await this.open("leaves"))[name]); }

  async rule(name) { return found((await this.open("rules"))[name]); }

  async runs() { return (await this.open("record")).list; }

  async run(name) { return found((await this.open("record")).runs[name]); }

  async checklist(name) { return found((await this.open("record")).checklists[name]); }

  async compare() { return found(null); }

  pageUrl() { return "#"; }

  watch() {}
}

function found(answer) {
  if (!answer) throw Object.assign(new Error(), { text: { $: ["This is not in the exported page; a running studio has it: traindx studio", "导出的页面里没有这一项；请运行 traindx studio 来看"] } });
  return answer;
}
