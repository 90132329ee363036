// The language of the page, and its words. A text from Python is a string, or {"$": [English, Chinese]}.

let language = document.documentElement.lang.startsWith("zh") ? "zh" : "en";
let words = {};

export function setWords(found) { words = found; }

export function currentLanguage() { return language; }

export function setLanguage(wanted) {
  language = wanted === "zh" ? "zh" : "en";
  document.documentElement.lang = language === "zh" ? "zh-CN" : "en";
}

export function isPair(value) { return value !== null && typeof value === "object" && Array.isArray(value.$); }

/** A text or a whole document in the page's language. */
export function say(value) {
  if (isPair(value)) return value.$[language === "zh" ? 1 : 0];
  if (Array.isArray(value)) return typeof value[0] === "number" ? value : value.map(say);
  if (value !== null && typeof value === "object") return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, say(item)]));
  return value;
}

/** A word of the page by its name; `{field}` is filled from `values`, and `{field:|s}` is an s unless that is 1, as in Python's Text. */
export function word(name, values = {}) {
  const text = name in words ? say(words[name]) : name;
  return text.replace(/\{(\w+)(?::([^|}]*)\|([^}]*))?\}/g, (whole, field, one, more) => {
    if (!(field in values)) return whole;
    const value = String(values[field]);
    return more === undefined ? value : value === "1" ? one : more;
  });
}

/** A number as people write it, as in Python's traindx.core.text.number. */
export function number(value, digits = 3) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (Number.isInteger(value) && Math.abs(value) < 1e5) return String(value);
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  const size = Math.floor(Math.log10(Math.abs(value)));
  if (size < -4 || size >= 5) return value.toExponential(digits - 1).replace(/\.?0+e/, "e");
  return String(Number(value.toPrecision(digits)));
}
