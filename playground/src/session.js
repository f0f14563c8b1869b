// A training in the worker: it runs in slices, and between two slices makes pictures of itself.

import { Experiment, MOST_ITERATIONS, partOf, someLayers } from "./experiment.js";

/**
 * @typedef {object} Look what the page wants to see
 * @property {number} layer the layer whose states are shown
 * @property {[number, number, number, number]} frame left, right, bottom, top
 * @property {number} grid cells along a side
 */

/**
 * @typedef {object} Frame
 * @property {number} iteration
 * @property {string} status
 * @property {{loss: number, gradientNorm: number, score: number, testLoss: number | null, testScore: number | null}} now
 * @property {{iteration: number, loss: number}[]} losses since the last frame
 * @property {number[]} steps
 * @property {Float32Array} states (layers + 1, points, 2)
 * @property {Float32Array | null} means (rows, columns, numbers): what is predicted on the grid, or along the curve
 * @property {number} meanSize
 * @property {Look} look
 * @property {number} dim of the state
 * @property {number} layers
 */

export class Session {
  /**
   * @param {import("./core.js").Core} core
   * @param {import("./problem.js").Problem} problem
   */
  constructor(core, problem) {
    this.core = core;
    this.problem = problem;
    this.experiment = new Experiment(core, problem.net, problem.objective);
    this.experiment.setSamples(problem.train);
    this.experiment.start(problem.start, problem.method);
    this.iteration = 0;
    /** @type {{iteration: number, loss: number}[]} */
    this.losses = [{ iteration: 0, loss: this.experiment.record.loss }];
    /** @type {{key: string, experiment: Experiment} | null} of the layers behind the one that is shown */
    this.tail = null;
  }

  free() {
    this.experiment.free();
    this.tail?.experiment.free();
  }

  get controls() {
    return this.experiment.controls;
  }

  get status() {
    return this.iteration < MOST_ITERATIONS ? this.experiment.status : "most_iterations";
  }

  get isRunning() {
    return this.status === "running";
  }

  /**
   * @param {number} most iterations
   * @param {number} seconds
   */
  run(most, seconds) {
    const made = this.experiment.run(Math.min(most, MOST_ITERATIONS - this.iteration), seconds);
    made.forEach(({ loss }, i) => this.losses.push({ iteration: this.iteration + i + 1, loss }));
    this.iteration += made.length;
  }

  /**
   * @param {Look} look
   * @returns {Frame}
   */
  frame(look) {
    const { experiment, problem } = this;
    const u = this.controls;
    const { loss, gradientNorm } = experiment.record;
    const test = problem.test.X.length ? experiment.assess(u, problem.test) : null;
    const losses = this.losses;
    this.losses = [];
    const { states } = experiment.predict(u, problem.train.X, true);
    const layer = Math.min(look.layer, problem.net.layers);
    return {
      iteration: this.iteration,
      status: this.status,
      now: {
        ...{ loss, gradientNorm, score: experiment.score },
        ...{ testLoss: test?.loss ?? null, testScore: test?.score ?? null },
      },
      losses,
      steps: [...partOf(problem.net, u, "h")],
      states: firstTwo(states, experiment.dim),
      means: problem.isCurve ? this.#curve(u, { ...look, layer }) : this.#grid(u, { ...look, layer }),
      meanSize: experiment.meanSize,
      look: { ...look, layer },
      dim: experiment.dim,
      layers: problem.net.layers,
    };
  }

  /**
   * What is read out of the states at a layer: a straight line of the inputs, which the layers bend.
   * @param {Float64Array} u
   * @param {Look} look
   */
  #curve(u, { layer, frame: [left, right], grid }) {
    const X = Float64Array.from({ length: grid + 1 }, (_, i) => left + ((right - left) * i) / grid);
    const { states } = this.experiment.predict(u, X, true);
    const size = X.length * this.experiment.dim;
    return Float32Array.from(
      this.experiment.means(this.#readOut(u, states.subarray(layer * size, (layer + 1) * size))),
    );
  }

  /**
   * What the layers behind the shown one predict for states on a grid. States of more than two dimensions have no plane
   * of their own, but their inputs have.
   * @param {Float64Array} u
   * @param {Look} look
   */
  #grid(u, { layer, frame: [left, right, bottom, top], grid }) {
    const { net } = this.problem;
    if (layer > 0 && this.experiment.dim > 2) return null;
    const points = new Float64Array(2 * (grid + 1) ** 2);
    for (let i = 0, n = 0; i <= grid; i++)
      for (let j = 0; j <= grid; j++) {
        points[n++] = left + ((right - left) * j) / grid;
        points[n++] = bottom + ((top - bottom) * i) / grid;
      }
    if (layer === 0) return Float32Array.from(this.experiment.predict(u, points).means);
    if (layer === net.layers) return Float32Array.from(this.experiment.means(this.#readOut(u, points)));
    const behind = Array.from({ length: net.layers - layer }, (_, j) => layer + j);
    const rest = someLayers(net, u, behind, net.features);
    const key = String(rest.net.layers);
    if (this.tail?.key !== key) {
      this.tail?.experiment.free();
      this.tail = { key, experiment: new Experiment(this.core, rest.net, this.problem.objective) };
    }
    return Float32Array.from(this.tail.experiment.predict(rest.u, points).means);
  }

  /** W y + mu. @param {Float64Array} u @param {Float64Array} states */
  #readOut(u, states) {
    const { net } = this.problem;
    const [W, mu] = [partOf(net, u, "W"), partOf(net, u, "mu")];
    const d = this.experiment.dim;
    return Float64Array.from({ length: (states.length / d) * net.outputs }, (_, n) => {
      const [i, o] = [Math.floor(n / net.outputs), n % net.outputs];
      let sum = mu[o];
      for (let k = 0; k < d; k++) sum += W[o * d + k] * states[i * d + k];
      return sum;
    });
  }

  /** Without the layers whose step is 0: the network, whether it predicts the same bits, and how long both take. */
  pruned() {
    const { problem, core } = this;
    const u = this.controls;
    const h = partOf(problem.net, u, "h");
    const all = Array.from(h, (_, j) => j);
    const kept = all.filter((j) => h[j] !== 0);
    const small = someLayers(problem.net, u, kept.length ? kept : [0]);
    const shorter = new Experiment(core, small.net, problem.objective);
    const measured = (/** @type {Experiment} */ experiment, /** @type {Float64Array} */ controls) => {
      const times = Array.from({ length: 15 }, () => {
        const start = performance.now();
        for (let i = 0; i < 5; i++) experiment.predict(controls, problem.train.X);
        return performance.now() - start;
      });
      return Math.min(...times) / 5;
    };
    const before = this.experiment.predict(u, problem.train.X).outputs;
    const after = shorter.predict(small.u, problem.train.X).outputs;
    const milliseconds = [measured(this.experiment, u), measured(shorter, small.u)];
    shorter.free();
    return { ...small, isIdentical: before.every((x, n) => Object.is(x, after[n])), milliseconds };
  }
}

/** The first two of `dim` components; a line lies on the axis. @param {Float64Array} rows @param {number} dim */
function firstTwo(rows, dim) {
  const found = new Float32Array((2 * rows.length) / dim);
  for (let i = 0; i < rows.length / dim; i++) {
    found[2 * i] = rows[i * dim];
    found[2 * i + 1] = dim > 1 ? rows[i * dim + 1] : 0;
  }
  return found;
}
