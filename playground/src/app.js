// The page: what was chosen goes to the worker, what it sends is drawn.

import { ButcherTable } from "./butcher.js";
import { drawCurves, drawSteps, History } from "./charts.js";
import { DATA_CHOICES, NETWORK_CHOICES, PENALTY_CHOICES, standardChoices, TRAINING_CHOICES } from "./choices.js";
import { Drawing } from "./drawing.js";
import { byId } from "./elements.js";
import { Engine } from "./engine.js";
import { fromLink, MOST_POINTS, SHOWABLE, standardState, toLink } from "./link.js";
import { Panel } from "./panels.js";
import { drawPlane, INPUT_VIEW, viewOf, widened } from "./plane.js";
import { pointsOf, problemOf } from "./problem.js";
import { showNumbers, showTask, showTransport } from "./readings.js";
import { Tour } from "./tour.js";

/** @typedef {import("./problem.js").State} State */

const FINE_GRID = 128; // while nothing moves
const COARSE_GRIDS = [72, 56, 40]; // while it learns: as fine as the time allows
const MOST_FRAME_MS = 24;
const FLOW_SECONDS = 3;
/** Columns that are coordinates as they are. */
export const NO_TABLE = {
  names: /** @type {string[] | null} */ (null),
  mean: [0, 0],
  scale: [1, 1],
  classes: /** @type {string[]} */ ([]),
};

export class App {
  /** @param {string} worker @param {Uint8Array} core */
  constructor(worker, core) {
    /** @type {State} */
    this.state = standardState();
    this.points = pointsOf(this.state);
    this.table = NO_TABLE;
    this.history = new History();
    /** @type {import("./session.js").Frame | null} */
    this.frame = null;
    this.isPlaying = false;
    this.flowStart = 0;
    this.isAwaiting = false; // a frame
    this.isStale = true; // what the worker was asked to show
    this.isDirty = true; // what is painted
    this.fineness = 0;
    this.lastFrame = 0;
    /** @type {number[]} milliseconds from frame to frame, for tests */
    this.frameTimes = [];
    this.plane = byId("plane", HTMLCanvasElement);
    this.slider = byId("layer", HTMLInputElement);
    this.engine = new Engine(
      worker,
      (frame, isPlaying) => this.#received(frame, isPlaying),
      (message) => this.#failed(message),
    );
    const choose = (/** @type {string} */ key, /** @type {string | number} */ value) => this.choose({ [key]: value });
    this.panels = [
      new Panel("data-fields", DATA_CHOICES, choose),
      new Panel("network-fields", NETWORK_CHOICES, choose),
      new Panel("training-fields", TRAINING_CHOICES, choose),
      new Panel("penalty-fields", PENALTY_CHOICES, choose),
    ];
    this.butcher = new ButcherTable(
      (method) => this.engine.ask("tableau", { method }),
      (method) => this.restart({ ...this.state, method, iterations: 0 }),
    );
    this.drawing = new Drawing(
      this.plane,
      () => this.#view(),
      (point) => this.#drew(point),
    );
    this.tour = new Tour((stop) => this.#toured(stop));
    this.#listen();
    this.ready = this.engine.ask("core", { bytes: core }).then(() => this.openLink(location.hash));
    requestAnimationFrame((now) => this.#tick(now));
  }

  get isCurve() {
    return this.state.chosen.task === "regression";
  }

  /** With a fraction: between two layers. */
  get layer() {
    const layers = Number(this.state.chosen.layers);
    return Math.min(layers, this.state.layer ?? (this.isCurve ? layers : 0));
  }

  get hasOwnPoints() {
    return this.state.chosen[this.isCurve ? "curve" : "data"] === "own";
  }

  /** @param {string} sentence */
  tell(sentence) {
    const notice = byId("notice", HTMLElement);
    notice.hidden = sentence === "";
    const text = notice.querySelector("p");
    if (text) text.textContent = sentence;
  }

  /** @param {string} hash */
  async openLink(hash) {
    let state = standardState();
    this.tell("");
    try {
      state = fromLink(hash);
      if (state.chosen.tableau === "own") await this.engine.ask("tableau", { method: state.method });
    } catch (error) {
      state = standardState();
      this.tell(`This link is damaged: ${/** @type {Error} */ (error).message}. Here is the playground as it starts.`);
    }
    await this.restart(state);
  }

  /** Something else was chosen: the training starts anew. @param {Record<string, string | number>} changes */
  choose(changes) {
    const layer = "task" in changes ? null : this.state.layer;
    return this.restart({
      ...this.state,
      chosen: { ...this.state.chosen, ...changes },
      iterations: 0,
      start: null,
      layer,
    });
  }

  /** Sets up a state, trains as far as it says, and goes on playing if it was. @param {State} state */
  async restart(state) {
    const wasPlaying = this.isPlaying;
    this.state = state;
    this.points = pointsOf(state);
    this.history = new History();
    this.frame = null;
    this.isAwaiting = false;
    this.isPlaying = false;
    this.#showState();
    const isEmpty = !this.points.train.length;
    try {
      await this.engine.setUp(isEmpty ? null : problemOf(state), state.iterations);
      if (wasPlaying && !isEmpty && !state.iterations) this.play(true);
    } catch (error) {
      this.tell(`${/** @type {Error} */ (error).message}.`);
    }
    this.isStale = true;
  }

  /** @param {boolean} isPlaying */
  play(isPlaying) {
    if (isPlaying && !this.points.train.length)
      return this.tell("There is nothing to learn yet: draw some points in the picture, or load a CSV.");
    this.isPlaying = isPlaying;
    this.engine.order("play", { isPlaying, perFrame: Number(byId("speed", HTMLSelectElement).value) });
    this.isStale = true;
    showTransport(this);
    if (!isPlaying) this.#keepLink();
  }

  async step() {
    if (this.isPlaying) this.play(false);
    await this.engine.order("step");
    this.isStale = true;
  }

  reset() {
    return this.restart({ ...this.state, iterations: 0 });
  }

  /** The link of what is shown. */
  link() {
    return toLink(this.state);
  }

  #keepLink() {
    const link = this.link();
    if (link !== (location.hash || "#")) history.replaceState(null, "", link);
  }

  #showState() {
    const { chosen, method } = this.state;
    this.panels.forEach((panel) => panel.show(chosen));
    if (chosen.architecture === "net") this.butcher.hide();
    else this.butcher.show(chosen.tableau === "own" ? method : String(chosen.tableau));
    this.drawing.activate(this.hasOwnPoints, !this.isCurve);
    this.slider.max = String(chosen.layers);
    this.#showLayer();
    for (const one of SHOWABLE) byId(`show-${one}`, HTMLInputElement).checked = this.state.shown.includes(one);
    showTask(this);
    this.#keepLink();
    showTransport(this);
    this.isDirty = true;
  }

  /** @param {number} layer */
  setLayer(layer) {
    this.state.layer = Math.round(layer * 100) / 100;
    this.#showLayer();
  }

  #showLayer() {
    const { layer } = this;
    this.slider.value = String(layer);
    byId("layer-value", HTMLElement).textContent = Number.isInteger(layer) ? String(layer) : layer.toFixed(1);
    this.isStale = this.isDirty = true;
  }

  /** @param {{x: number, y: number, target: number}} point */
  #drew(point) {
    if (this.state.points.length >= MOST_POINTS) return this.tell(`This page takes up to ${MOST_POINTS} points.`);
    this.table = NO_TABLE;
    this.restart({ ...this.state, points: [...this.state.points, point], iterations: 0, start: null, layer: null });
  }

  /** @param {import("./tour.js").Stop} stop */
  async #toured(stop) {
    this.isPlaying = false;
    const chosen = { ...standardChoices(), ...stop.chosen };
    await this.restart({ ...standardState(), chosen, layer: stop.layer * Number(chosen.layers) || null });
    if (stop.plays) this.play(true);
  }

  /** @returns {import("./plane.js").View} */
  #view() {
    const view = this.frame ? viewOf(this.frame, this.layer, this.isCurve) : INPUT_VIEW;
    return widened(view, this.plane.clientWidth, this.plane.clientHeight);
  }

  /** @param {import("./session.js").Frame} frame @param {boolean | null} isPlaying */
  #received(frame, isPlaying) {
    this.isAwaiting = false;
    this.frame = frame;
    this.history.add(frame);
    this.state.iterations = frame.iteration;
    if (isPlaying !== null && this.isPlaying !== isPlaying) {
      this.isPlaying = isPlaying;
      showTransport(this);
      if (!isPlaying) this.#keepLink();
      this.isStale = true; // a still picture is a finer one
    }
    // The frame may have moved the points, and with them the view, for which the colours are then computed again.
    if (!this.isPlaying && this.#view().some((edge, k) => edge !== frame.look.frame[k])) this.isStale = true;
    this.isDirty = true;
  }

  /** Something in the worker went wrong that nobody asked for. @param {string} message */
  #failed(message) {
    this.isAwaiting = false;
    if (this.isPlaying) this.play(false);
    this.tell(`The training stopped: ${message}. Reset starts it anew.`);
  }

  /** @param {number} now */
  #tick(now) {
    requestAnimationFrame((next) => this.#tick(next));
    if (this.flowStart) this.#flowOn(now);
    if (this.isDirty) {
      this.#paint();
      if (this.isPlaying) this.#noteFrameTime(now);
      else this.lastFrame = 0;
    }
    const isMoving = this.isPlaying || this.flowStart > 0;
    if (!this.isAwaiting && (this.isStale || isMoving) && this.points.train.length) {
      const grid = isMoving ? COARSE_GRIDS[this.fineness] : FINE_GRID;
      this.engine.look({ layer: Math.round(this.layer), frame: this.#view(), grid: this.isCurve ? FINE_GRID : grid });
      this.isAwaiting = true;
      this.isStale = false;
    }
  }

  /** A picture that takes too long becomes coarser. @param {number} now */
  #noteFrameTime(now) {
    if (this.lastFrame) {
      this.frameTimes.push(now - this.lastFrame);
      if (this.frameTimes.length > 300) this.frameTimes.shift();
      const recent = this.frameTimes.slice(-20);
      const mean = recent.reduce((sum, one) => sum + one, 0) / recent.length;
      if (recent.length === 20 && mean > MOST_FRAME_MS && this.fineness < COARSE_GRIDS.length - 1) {
        this.fineness += 1;
        this.frameTimes.splice(-20);
      }
    }
    this.lastFrame = now;
  }

  /** @param {number} now */
  #flowOn(now) {
    const layers = Number(this.state.chosen.layers);
    const share = Math.min(1, (now - this.flowStart) / 1000 / FLOW_SECONDS);
    this.setLayer(share * layers);
    if (share < 1) return;
    this.flowStart = 0;
    this.#keepLink();
  }

  #paint() {
    this.isDirty = false;
    const shown = new Set(this.state.shown);
    const { train, test } = this.points;
    const cross = this.drawing.isActive ? this.drawing.cross : null;
    drawPlane(this.plane, {
      frame: this.frame,
      view: this.#view(),
      layer: this.layer,
      train,
      test,
      isCurve: this.isCurve,
      shown,
      cross,
    });
    drawCurves(byId("curves", HTMLCanvasElement), this.history);
    if (!byId("steps-card", HTMLElement).hidden)
      drawSteps(byId("steps", HTMLCanvasElement), this.frame?.steps ?? [], this.layer);
    showNumbers(this);
  }

  #listen() {
    const on = (/** @type {string} */ id, /** @type {string} */ event, /** @type {() => void} */ act) =>
      byId(id, HTMLElement).addEventListener(event, act);
    on("play", "click", () => this.play(!this.isPlaying));
    on("step", "click", () => this.step());
    on("reset", "click", () => this.reset());
    on("speed", "change", () => this.isPlaying && this.play(true));
    on("layer", "input", () => {
      this.flowStart = 0;
      this.setLayer(Number(this.slider.value));
    });
    on("flow", "click", () => (this.flowStart = performance.now()));
    on("layer", "change", () => this.#keepLink());
    for (const one of SHOWABLE) on(`show-${one}`, "change", () => this.#show(one));
    on("plane", "keydown", () => (this.isDirty = true));
    on("plane", "blur", () => (this.isDirty = true));
    on("erase", "click", () => this.#replacePoints([]));
    on("undo", "click", () => this.#replacePoints(this.state.points.slice(0, -1)));
    byId("notice", HTMLElement)
      .querySelector("button")
      ?.addEventListener("click", () => this.tell(""));
    window.addEventListener("hashchange", () => this.openLink(location.hash));
    new ResizeObserver(() => (this.isStale = this.isDirty = true)).observe(this.plane);
    document.addEventListener("keydown", (event) => this.#shortcut(event));
  }

  /** @param {string} one that was switched on or off */
  #show(one) {
    const isShown = byId(`show-${one}`, HTMLInputElement).checked;
    this.state.shown = SHOWABLE.filter((other) => (other === one ? isShown : this.state.shown.includes(other)));
    this.isDirty = true;
    this.#keepLink();
  }

  /** @param {import("./datasets.js").Point[]} points */
  #replacePoints(points) {
    this.restart({ ...this.state, points, iterations: 0, start: null });
  }

  /** Keys that act wherever no field takes them. @param {KeyboardEvent} event */
  #shortcut(event) {
    const isField = event.target instanceof Element && event.target.closest("input, select, button, summary, a");
    if (isField || event.ctrlKey || event.metaKey || event.altKey) return;
    /** @type {Record<string, () => void>} */
    const acts = { " ": () => this.play(!this.isPlaying), s: () => this.step(), r: () => this.reset() };
    if (!Object.hasOwn(acts, event.key)) return;
    acts[event.key]();
    event.preventDefault();
  }
}
