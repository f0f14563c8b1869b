// Panels of choices: a field for each, with its name, its value and its sentence.

import { parsedChoice } from "./choices.js";
import { byId, element } from "./elements.js";

/** @typedef {import("./choices.js").Choice} Choice */
/** @typedef {import("./choices.js").Chosen} Chosen */

const MOST_CHIPS = 5; // more values than this are a list

export class Panel {
  /**
   * @param {string} id of the element that the fields go into
   * @param {Record<string, Choice>} choices
   * @param {(key: string, value: string | number) => void} onChoice
   */
  constructor(id, choices, onChoice) {
    this.choices = choices;
    this.onChoice = onChoice;
    /** @type {Record<string, {field: HTMLElement, show: (value: string | number) => void}>} */
    this.fields = {};
    for (const [key, choice] of Object.entries(choices)) {
      this.fields[key] = this.#field(key, choice);
      byId(id, HTMLElement).append(this.fields[key].field);
    }
  }

  /** @param {Chosen} chosen */
  show(chosen) {
    for (const [key, { field, show }] of Object.entries(this.fields)) {
      field.hidden = !(this.choices[key].applies?.(chosen) ?? true);
      show(chosen[key]);
    }
  }

  /** @param {string} key @param {Choice} choice */
  #field(key, choice) {
    if (choice.kind !== "one of") return choice.step ? this.#slider(key, choice) : this.#number(key, choice);
    return (choice.values ?? []).length <= MOST_CHIPS ? this.#chips(key, choice) : this.#list(key, choice);
  }

  /** @param {string} key @param {Choice} choice */
  #help(key, choice) {
    return element("p", { class: "help", id: `help-${key}` }, choice.help);
  }

  /** @param {string} key @param {Choice} choice */
  #chips(key, choice) {
    const { values = [], names = {} } = choice;
    const chips = values.map((value) => {
      const input = element("input", { type: "radio", name: key, value });
      input.addEventListener("change", () => this.onChoice(key, value));
      return { input, label: element("label", {}, input, element("span", {}, names[value] ?? value)) };
    });
    const attributes = {
      class: "chips",
      role: "radiogroup",
      "aria-label": choice.label,
      "aria-describedby": `help-${key}`,
    };
    const group = element("div", attributes, ...chips.map((chip) => chip.label));
    const name = element("div", { class: "name" }, choice.label);
    const field = element("div", { class: "field" }, name, group, this.#help(key, choice));
    const show = (/** @type {string | number} */ value) =>
      chips.forEach(({ input }) => (input.checked = input.value === value));
    return { field, show };
  }

  /** @param {string} key @param {Choice} choice */
  #list(key, choice) {
    const { values = [], names = {}, label } = choice;
    const select = element("select", { id: `choice-${key}`, "aria-describedby": `help-${key}` });
    for (const value of values) select.append(element("option", { value }, names[value] ?? value.replaceAll("_", " ")));
    select.addEventListener("change", () => this.onChoice(key, select.value));
    const name = element("label", { class: "name", for: `choice-${key}` }, label);
    const show = (/** @type {string | number} */ value) => (select.value = String(value));
    return { field: element("div", { class: "field" }, name, select, this.#help(key, choice)), show };
  }

  /** @param {string} key @param {Choice} choice */
  #slider(key, choice) {
    const { label, least = 0, most = 0, step = 1 } = choice;
    const input = element("input", {
      ...{ type: "range", id: `choice-${key}`, min: String(least), max: String(most), step: String(step) },
      "aria-describedby": `help-${key}`,
    });
    const output = element("output", { for: `choice-${key}` });
    const name = element("label", { class: "name", for: `choice-${key}` }, label, output);
    input.addEventListener("input", () => (output.textContent = input.value));
    input.addEventListener("change", () => this.onChoice(key, parsedChoice(key, input.value)));
    const show = (/** @type {string | number} */ value) => {
      input.value = String(value);
      output.textContent = String(value);
    };
    return { field: element("div", { class: "field" }, name, input, this.#help(key, choice)), show };
  }

  /** @param {string} key @param {Choice} choice */
  #number(key, choice) {
    const input = element("input", {
      type: "text",
      inputmode: "decimal",
      id: `choice-${key}`,
      "aria-describedby": `help-${key} bad-${key}`,
    });
    const bad = element("p", { class: "bad", id: `bad-${key}`, role: "alert" });
    input.addEventListener("change", () => {
      try {
        const value = parsedChoice(key, input.value);
        bad.textContent = "";
        this.onChoice(key, value);
      } catch (error) {
        bad.textContent = /** @type {Error} */ (error).message;
      }
    });
    const name = element("label", { class: "name", for: `choice-${key}` }, choice.label);
    const show = (/** @type {string | number} */ value) => {
      if (document.activeElement !== input || !bad.textContent) {
        input.value = String(value);
        bad.textContent = "";
      }
    };
    return { field: element("div", { class: "field" }, name, input, bad, this.#help(key, choice)), show };
  }
}
