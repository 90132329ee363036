// The whole state of the page is its address: #/view/part/part?name=value. Language, theme and the loaded run stay across links.

const KEPT = ["lang", "theme", "run"];
let timer = null;

export function here() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [view, ...parts] = path.split("/").filter(Boolean).map(decodeSafely);
  return { view: view || "tree", parts, query: Object.fromEntries(new URLSearchParams(query)) };
}

function decodeSafely(part) {
  try { return decodeURIComponent(part); } catch { return part; }
}

/** The address of another view; a name with slashes may be one part. */
export function link(view, parts = [], query = {}) {
  const kept = Object.fromEntries(Object.entries(here().query).filter(([name]) => KEPT.includes(name)));
  return address(view, parts, { ...kept, ...query });
}

function address(view, parts, query) {
  const path = [view, ...parts.flatMap((part) => String(part).split("/"))].map(encodeURIComponent).join("/");
  const given = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== ""));
  return `#/${path}${given.size ? `?${given}` : ""}`;
}

/** Changes the query of this address in place, not too often: browsers refuse hundreds of changes a minute. */
export function amend(changes) {
  const now = here();
  pending = { ...pending, ...changes };
  clearTimeout(timer);
  timer = setTimeout(settle, 150, now.view, now.parts);
}

let pending = {};

function settle(view, parts) {
  const now = here();
  if (now.view === view && now.parts.join("/") === parts.join("/")) {
    history.replaceState(null, "", address(view, parts, { ...now.query, ...pending }));
  }
  pending = {};
}

/** Goes to an address that is made of this one's path and a changed query. */
export function turn(changes) {
  const now = here();
  location.hash = address(now.view, now.parts, { ...now.query, ...pending, ...changes });
  pending = {};
}
