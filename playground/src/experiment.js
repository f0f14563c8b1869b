// A network with its objective and its samples, computed by the core.

import { withTableau } from "./tableau.js";

/**
 * @typedef {object} NetworkSpec
 * @property {number} features
 * @property {number} augment
 * @property {number} layers
 * @property {number} outputs
 * @property {string | {A: number[][], b: number[]}} tableau
 * @property {string} activation
 * @property {string} field
 * @property {boolean} residual
 * @property {"fixed" | "free" | "simplex"} timeSteps
 * @property {number} horizon
 */

/**
 * @typedef {object} ObjectiveSpec
 * @property {string} loss
 * @property {Record<string, number>} penalties weights by the names of the core
 */

/** @typedef {{X: Float64Array, targets: Float64Array}} Samples rows of X, and labels or numbers */

/** @typedef {{name: string, begin: number, shape: number[]}} Part of the vector of controls */

/**
 * @param {NetworkSpec} net
 * @returns {Part[]} K, b, h, W, mu: the order of the core
 */
export function partsOf(net) {
  const d = net.features + net.augment;
  const shapes = [
    [net.layers, d, d],
    [net.layers, d],
    [net.residual ? net.layers : 0],
    [net.outputs, d],
    [net.outputs],
  ];
  let begin = 0;
  return ["K", "b", "h", "W", "mu"].map((name, i) => {
    const part = { name, begin, shape: shapes[i] };
    begin += sizeOf(part);
    return part;
  });
}

/** @param {Part} part */
export function sizeOf(part) {
  return part.shape.reduce((product, length) => product * length, 1);
}

/**
 * @param {NetworkSpec} net
 * @param {Float64Array} u
 * @param {string} name
 */
export function partOf(net, u, name) {
  const part = partsOf(net).find((one) => one.name === name);
  if (!part) throw new RangeError(name);
  return u.subarray(part.begin, part.begin + sizeOf(part));
}

/**
 * The network of some of the layers, and its controls.
 * @param {NetworkSpec} net
 * @param {Float64Array} u
 * @param {number[]} kept
 * @param {number} [features] what the first of them takes
 * @returns {{net: NetworkSpec, u: Float64Array}}
 */
export function someLayers(net, u, kept, features = net.features) {
  const augment = net.features + net.augment - features;
  const numbers = partsOf(net).flatMap((part) => {
    const values = partOf(net, u, part.name);
    if (part.name === "W" || part.name === "mu") return [...values];
    const size = sizeOf(part) / net.layers;
    return kept.flatMap((j) => [...values.subarray(j * size, (j + 1) * size)]);
  });
  return { net: { ...net, features, augment, layers: kept.length }, u: Float64Array.from(numbers) };
}

export class Experiment {
  /**
   * @param {import("./core.js").Core} core
   * @param {NetworkSpec} net
   * @param {ObjectiveSpec} objective
   */
  constructor(core, net, objective) {
    this.core = core;
    this.net = net;
    this.dim = net.features + net.augment;
    this.samples = 0;
    this.pointer = withTableau(core, net.tableau, (tableau) =>
      core.call(
        ...["make_experiment", net.features, this.dim, net.layers, net.outputs, tableau, net.activation],
        ...[Number(net.residual), Number(net.timeSteps !== "fixed"), Number(net.timeSteps === "simplex")],
        ...[net.horizon, net.field],
      ),
    );
    core.call("set_loss", this.pointer, objective.loss, 1);
    for (const [name, weight] of Object.entries(objective.penalties))
      if (weight > 0) core.call("add_penalty", this.pointer, name, weight);
    this.controlSize = core.call("control_size", this.pointer);
    this.meanSize = core.call("mean_size", this.pointer);
    this.records = core.room(5 * MOST_RECORDS);
  }

  free() {
    this.records.free();
    this.core.call("free_experiment", this.pointer);
  }

  /** @param {Samples} samples */
  setSamples({ X, targets }) {
    this.samples = X.length / this.net.features;
    this.core.borrowing((borrow) =>
      this.core.call("set_samples", this.pointer, borrow(X), borrow(targets), this.samples),
    );
  }

  /**
   * States (layers + 1, rows, dim), outputs and what they stand for, (rows, meanSize).
   * @param {Float64Array} u
   * @param {Float64Array} X
   * @param {boolean} withStates
   * @returns {{states: Float64Array, outputs: Float64Array, means: Float64Array}}
   */
  predict(u, X, withStates = false) {
    const { core, net } = this;
    const rows = X.length / net.features;
    return core.borrowing((borrow) => {
      const states = withStates ? borrow((net.layers + 1) * rows * this.dim) : null;
      const outputs = borrow(rows * net.outputs);
      core.call("forward", this.pointer, borrow(u), borrow(X), rows, states, outputs);
      return {
        states: states?.copy() ?? new Float64Array(),
        means: this.#meansOf(outputs, rows),
        outputs: outputs.copy(),
      };
    });
  }

  /** What outputs (rows, outputs) stand for. @param {Float64Array} outputs */
  means(outputs) {
    return this.core.borrowing((borrow) => this.#meansOf(borrow(outputs), outputs.length / this.net.outputs));
  }

  /** @param {import("./core.js").Doubles} outputs @param {number} rows */
  #meansOf(outputs, rows) {
    return this.core.borrowing((borrow) => {
      const means = borrow(rows * this.meanSize);
      this.core.call("means", this.pointer, outputs, rows, means);
      return means.copy();
    });
  }

  /**
   * J of the samples, or of other inputs with their targets.
   * @param {Float64Array} u
   * @param {Float64Array | null} X
   */
  value(u, X = null) {
    return this.core.borrowing((borrow) =>
      this.core.call("value_and_derivatives", this.pointer, borrow(u), X && borrow(X), 1, null, null, null),
    );
  }

  /**
   * J of the samples and its derivatives; costates are (layers + 1, samples, dim).
   * @param {Float64Array} u
   * @param {boolean} penalised
   * @returns {{value: number, gradient: Float64Array, inputs: Float64Array, costates: Float64Array}}
   */
  derivatives(u, penalised) {
    return this.core.borrowing((borrow) => {
      const gradient = borrow(this.controlSize);
      const inputs = borrow(this.samples * this.net.features);
      const costates = borrow((this.net.layers + 1) * this.samples * this.dim);
      const value = this.core.call(
        ...["value_and_derivatives", this.pointer, borrow(u), null, Number(penalised), gradient, inputs, costates],
      );
      return { value, gradient: gradient.copy(), inputs: inputs.copy(), costates: costates.copy() };
    });
  }

  /**
   * The variational trajectory (layers + 1, samples, dim).
   * @param {Float64Array} u
   * @param {Float64Array | null} du
   * @param {Float64Array} dX
   * @returns {Float64Array}
   */
  tangent(u, du, dX) {
    return this.core.borrowing((borrow) => {
      const tangents = borrow((this.net.layers + 1) * this.samples * this.dim);
      this.core.call("tangent", this.pointer, borrow(u), du && borrow(du), borrow(dX), tangents);
      return tangents.copy();
    });
  }

  /**
   * J and the score of other samples.
   * @param {Float64Array} u
   * @param {Samples} samples
   */
  assess(u, { X, targets }) {
    return this.core.borrowing((borrow) => {
      const value = borrow(1);
      const rows = X.length / this.net.features;
      const score = this.core.call("assess", this.pointer, borrow(u), borrow(X), borrow(targets), rows, value);
      return { loss: value.view[0], score };
    });
  }

  /**
   * @param {Float64Array} u the first controls
   * @param {{name: string, settings: number[]}} method settings in the order of the core
   */
  start(u, method) {
    if (u.length !== this.controlSize)
      throw new RangeError(`the network has ${this.controlSize} controls, but ${u.length} are given`);
    this.core.borrowing((borrow) =>
      this.core.call("start_training", this.pointer, borrow(u), method.name, borrow(method.settings), TOLERANCE),
    );
  }

  /**
   * Iterates for a while and returns the losses and gradient norms of the iterations.
   * @param {number} most
   * @param {number} seconds
   */
  run(most, seconds) {
    const count = Math.min(most, MOST_RECORDS);
    const made = this.core.call("run_training", this.pointer, count, seconds, this.records);
    const all = this.records.view;
    return Array.from({ length: made }, (_, i) => ({ loss: all[5 * i], gradientNorm: all[5 * i + 1] }));
  }

  get record() {
    this.core.call("training_record", this.pointer, this.records);
    const [loss, gradientNorm] = this.records.view;
    return { loss, gradientNorm };
  }

  /** @returns {typeof STATUS[number]} */
  get status() {
    return STATUS[this.core.call("training_status", this.pointer)];
  }

  get controls() {
    return this.core.doublesAt(this.core.call("trained_controls", this.pointer), this.controlSize).slice();
  }

  get score() {
    return this.core.call("training_score", this.pointer);
  }
}

export const MOST_ITERATIONS = 100000; // of a training: a link says how far it came, and is followed
const MOST_RECORDS = 1000;
const TOLERANCE = 1e-10; // of the norm of the gradient: the default of ocdl.train
const STATUS = /** @type {const} */ ([
  "running",
  "gradient",
  "step_tolerance",
  "line_search_failed",
  "not_finite",
  "loss_tolerance",
]);
