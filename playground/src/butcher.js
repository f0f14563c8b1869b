// The Butcher table of the method: to look at, or to type coefficients into; the core derives the order at once.

import { byId, element } from "./elements.js";
import { MOST_STAGES } from "./link.js";

/** @typedef {{A: number[][], b: number[]}} Method */

/** A number as people type it: 0.5, -1, 1/3. @param {string} text */
export function parsedCoefficient(text) {
  const match = /^\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?)\s*(?:\/\s*(\d+\.?\d*))?\s*$/i.exec(text);
  const value = match ? Number(match[1]) / Number(match[2] ?? 1) : NaN;
  if (!Number.isFinite(value)) throw new RangeError(`“${text.slice(0, 30)}” is no number; write 0.5, -1 or 1/3`);
  return value;
}

const LARGEST_DENOMINATOR = 200;

/** A fraction where a number is one. @param {number} value */
export function shownCoefficient(value) {
  for (let bottom = 1; bottom <= LARGEST_DENOMINATOR; bottom++) {
    const top = Math.round(value * bottom);
    if (top / bottom === value) return bottom === 1 ? String(top) : `${top}/${bottom}`;
  }
  return String(value);
}

const shortNumber = (/** @type {number} */ value) => {
  const text = shownCoefficient(value);
  return text.length > 7 ? String(Number(value.toPrecision(4))) : text;
};

export class ButcherTable {
  /**
   * @param {(method: Method) => Promise<import("./tableau.js").Tableau>} describe asks the core
   * @param {(method: Method) => void} onMethod a valid method was typed
   */
  constructor(describe, onMethod) {
    this.describe = describe;
    this.onMethod = onMethod;
    this.place = byId("butcher", HTMLElement);
    this.verdict = element("p", { class: "order", role: "status", id: "order" });
    this.shownKey = "";
  }

  /** @param {string | Method} method a name of the core, or coefficients that can be changed */
  async show(method) {
    const key = JSON.stringify(method);
    if (key === this.shownKey) return;
    this.shownKey = key;
    try {
      const tableau = await this.describe(/** @type {any} */ (method));
      if (key !== this.shownKey) return;
      this.#fill(tableau, typeof method !== "string");
      this.#judge(tableau);
    } catch (error) {
      if (typeof method !== "string") this.#fill({ ...method, c: method.A.map(() => NaN) }, true);
      this.#refuse(/** @type {Error} */ (error).message);
    }
  }

  hide() {
    this.shownKey = "";
    this.place.replaceChildren();
  }

  /** @param {Method & {c: number[]}} method @param {boolean} isEditable */
  #fill({ A, b, c }, isEditable) {
    const cell = (/** @type {number} */ value, /** @type {string} */ name) => {
      if (!isEditable) return element("td", {}, shortNumber(value));
      const input = element("input", {
        type: "text",
        value: shownCoefficient(value),
        "aria-label": name,
        autocomplete: "off",
      });
      input.addEventListener("input", () => this.#typed());
      return element("td", {}, input);
    };
    const rows = A.map((row, i) =>
      element(
        "tr",
        {},
        element("td", { class: "c" }, Number.isFinite(c[i]) ? shortNumber(c[i]) : ""),
        ...row.map((a, j) => cell(a, `a ${i + 1} ${j + 1}`)),
      ),
    );
    rows.push(
      element(
        "tr",
        { class: "weights" },
        element("td", { class: "c" }),
        ...b.map((value, i) => cell(value, `b ${i + 1}`)),
      ),
    );
    const table = element("table", { "aria-label": "Butcher table" }, element("tbody", {}, ...rows));
    const scroll = element("div", { class: "scroll" }, table);
    if (table.rows.length > 5) scroll.tabIndex = 0;
    const more = element("button", { class: "quiet" }, "Add a stage");
    const fewer = element("button", { class: "quiet" }, "Remove one");
    more.disabled = b.length >= MOST_STAGES;
    fewer.disabled = b.length <= 1;
    more.addEventListener("click", () => this.#resized(b.length + 1));
    fewer.addEventListener("click", () => this.#resized(b.length - 1));
    const help = isEditable
      ? "Left of the line the nodes c, to the right A, below it the weights b, which sum to 1; fractions such as 1/3 are fine."
      : "Left of the line the nodes c, to the right A, below it the weights b; choose “your own coefficients” to change them.";
    const buttons = isEditable ? [element("div", { class: "row" }, more, fewer)] : [];
    this.place.replaceChildren(this.verdict, scroll, ...buttons, element("p", { class: "help" }, help));
    this.size = b.length;
  }

  /** @param {import("./tableau.js").Tableau} tableau */
  #judge({ order, isExplicit, b }) {
    this.verdict.className = "order";
    this.verdict.textContent = `Order ${order}${order === 6 ? " or higher" : ""}, ${isExplicit ? "explicit" : "implicit"}, ${b.length} stage${b.length === 1 ? "" : "s"}`;
  }

  /** @param {string} reason */
  #refuse(reason) {
    this.verdict.className = "bad";
    this.verdict.textContent = `No method yet: ${reason}`;
  }

  /** @returns {Method} */
  #method() {
    const numbers = Array.from(this.place.querySelectorAll("input"), (input) => parsedCoefficient(input.value));
    const s = /** @type {number} */ (this.size);
    return { A: Array.from({ length: s }, (_, i) => numbers.slice(i * s, (i + 1) * s)), b: numbers.slice(s * s) };
  }

  async #typed() {
    try {
      const method = this.#method();
      const tableau = await this.describe(method);
      const nodes = this.place.querySelectorAll("td.c");
      tableau.c.forEach((c, i) => (nodes[i].textContent = shortNumber(c)));
      this.#judge(tableau);
      this.shownKey = JSON.stringify(method);
      this.onMethod(method);
    } catch (error) {
      this.#refuse(/** @type {Error} */ (error).message);
    }
  }

  /** Keeps what fits; a new stage has weight 0 and changes nothing. @param {number} stages */
  #resized(stages) {
    let old;
    try {
      old = this.#method();
    } catch (error) {
      this.#refuse(/** @type {Error} */ (error).message);
      return;
    }
    const at = (/** @type {number} */ i, /** @type {number} */ j) => old.A[i]?.[j] ?? 0;
    const A = Array.from({ length: stages }, (_, i) => Array.from({ length: stages }, (_, j) => at(i, j)));
    const b = Array.from({ length: stages }, (_, i) => old.b[i] ?? 0);
    this.#fill({ A, b, c: A.map((row) => row.reduce((sum, a) => sum + a, 0)) }, true);
    this.#typed();
  }
}
