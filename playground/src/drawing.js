// Points drawn by hand: with a mouse, a finger, a pen or the keyboard.

import { byId, element } from "./elements.js";
import { rounded } from "./link.js";
import { COLOURS } from "./palette.js";

const SPACING = 14; // pixels between the points of one stroke
const KEYBOARD_STEP = 0.05;
const BRUSHES = 3;
/** @type {Record<string, [number, number]>} */
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };

export class Drawing {
  /**
   * @param {HTMLCanvasElement} canvas
   * @param {() => import("./plane.js").View} view
   * @param {(point: {x: number, y: number, target: number}) => void} onPoint
   */
  constructor(canvas, view, onPoint) {
    this.canvas = canvas;
    this.view = view;
    this.onPoint = onPoint;
    this.isActive = false;
    this.brush = 0;
    /** @type {{x: number, y: number} | null} */
    this.cross = null;
    /** @type {{x: number, y: number} | null} the last place of a stroke, in pixels */
    this.last = null;
    const chips = Array.from({ length: BRUSHES }, (_, k) => this.#brush(k));
    const group = byId("brushes", HTMLElement);
    group.classList.add("chips");
    group.append(...chips);
    canvas.addEventListener("pointerdown", (event) => this.#down(event));
    canvas.addEventListener("pointermove", (event) => this.#move(event));
    for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, () => (this.last = null));
    canvas.addEventListener("keydown", (event) => this.#key(event));
    canvas.addEventListener("blur", () => (this.cross = null));
  }

  /** @param {boolean} isActive @param {boolean} hasClasses */
  activate(isActive, hasClasses) {
    this.isActive = isActive;
    this.canvas.classList.toggle("draws", isActive);
    byId("own-data", HTMLElement).hidden = !isActive;
    byId("brushes", HTMLElement).hidden = !hasClasses;
  }

  /** @param {number} target */
  #brush(target) {
    const names = ["blue", "red", "green"];
    const input = element("input", { type: "radio", name: "brush", value: String(target) });
    input.checked = target === 0;
    input.addEventListener("change", () => (this.brush = target));
    const swatch = element("i", { class: "swatch", "aria-hidden": "true" });
    swatch.style.background = COLOURS[target];
    return element("label", {}, input, element("span", {}, swatch, names[target]));
  }

  /** @param {PointerEvent} event */
  #down(event) {
    if (!this.isActive || event.button !== 0) return;
    this.canvas.setPointerCapture(event.pointerId);
    this.#draw(event);
  }

  /** @param {PointerEvent} event */
  #move(event) {
    if (!this.last || Math.hypot(event.offsetX - this.last.x, event.offsetY - this.last.y) < SPACING) return;
    this.#draw(event);
  }

  /** @param {PointerEvent} event */
  #draw({ offsetX, offsetY }) {
    this.last = { x: offsetX, y: offsetY };
    const [left, right, bottom, top] = this.view();
    const x = left + (offsetX / this.canvas.clientWidth) * (right - left);
    const y = top - (offsetY / this.canvas.clientHeight) * (top - bottom);
    this.#add(x, y);
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (!this.isActive) return;
    const { x, y } = this.cross ?? { x: 0, y: 0 };
    if (event.key in ARROWS) {
      const [dx, dy] = ARROWS[event.key];
      this.cross = { x: x + dx * KEYBOARD_STEP, y: y + dy * KEYBOARD_STEP };
      event.preventDefault();
    } else if (event.key === "Enter") {
      this.cross = { x, y };
      this.#add(x, y);
    } else if (/^[1-3]$/.test(event.key)) {
      this.brush = Number(event.key) - 1;
      const input = byId("brushes", HTMLElement).querySelectorAll("input")[this.brush];
      input.checked = true;
    }
  }

  /** @param {number} x @param {number} y */
  #add(x, y) {
    this.onPoint({ x: rounded(x), y: rounded(y), target: this.brush });
  }
}
