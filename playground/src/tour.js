// The paper's story in six steps, each with settings that show it.

import { byId } from "./elements.js";

/**
 * @typedef {object} Stop
 * @property {string} title
 * @property {string} text
 * @property {Record<string, string | number>} chosen what differs from the standard
 * @property {number} layer to look at, as a share of all
 * @property {boolean} plays
 */

/** The paper's objective and optimiser, where its findings depend on them. */
const AS_IN_THE_PAPER = { loss: "squared", tikhonov: 0, horizon: 1, optimiser: "Backtracking", seed: 1 };

/** @type {Stop[]} */
export const STOPS = [
  {
    title: "A network is a flow",
    text: "Each layer moves every point a little: y ← y + h σ(Ky + b), one step of Euler's method for an ODE. Training chooses the controls K and b so that a straight line can divide the points in the end. Watch two spirals, not yet trained, at the last layer.",
    chosen: { architecture: "resnet" },
    layer: 1,
    plays: false,
  },
  {
    title: "Net fails",
    text: "A plain network replaces the state in each layer, y ← σ(Ky + b). Twenty of these squash the plane; with gradient descent it hardly learns the spirals: a third of the points keep the wrong colour.",
    chosen: { ...AS_IN_THE_PAPER, architecture: "net", seed: 3 },
    layer: 0,
    plays: true,
  },
  {
    title: "ResNet unrolls",
    text: "With steps of a flow the same layers unroll the spirals. Drag the layer slider, or press Flow, to see how they are taken apart until a line divides them.",
    chosen: { ...AS_IN_THE_PAPER, architecture: "resnet" },
    layer: 0,
    plays: true,
  },
  {
    title: "ODENet folds",
    text: "Time steps are controls too: an ODENet decides how long each layer lasts, and may even go back in time. With steps as long as it likes it folds the plane where a ResNet unrolls it. The bars show the steps as they change.",
    chosen: { ...AS_IN_THE_PAPER, architecture: "odenet", seed: 2 },
    layer: 0,
    plays: true,
  },
  {
    title: "The simplex keeps few steps",
    text: "Steps that stay positive with a fixed sum lie on a simplex, and gradient steps are projected back onto it. Many end at exactly 0: rings mark them. Prune drops those layers, and not one bit of the prediction changes.",
    chosen: { ...AS_IN_THE_PAPER, architecture: "odenet+simplex" },
    layer: 0,
    plays: true,
  },
  {
    title: "Any Runge-Kutta method, exact gradients",
    text: "A layer can be a step of any method; this is Kutta's, of order 4. Gradients come from the adjoint equation with the partner method, exact to roundoff: measure the certificate below. Then play: draw your own points.",
    chosen: { architecture: "resnet", tableau: "kutta4", seed: 1 },
    layer: 1,
    plays: true,
  },
];

export class Tour {
  /** @param {(stop: Stop) => void} onStop */
  constructor(onStop) {
    this.onStop = onStop;
    this.at = -1;
    this.box = byId("tour", HTMLElement);
    byId("tour-start", HTMLButtonElement).addEventListener("click", () => this.go(0));
    byId("tour-next", HTMLButtonElement).addEventListener("click", () => this.go(this.at + 1));
    byId("tour-back", HTMLButtonElement).addEventListener("click", () => this.go(this.at - 1));
    byId("tour-end", HTMLButtonElement).addEventListener("click", () => this.end());
  }

  /** @param {number} number */
  go(number) {
    if (number >= STOPS.length) return this.end();
    this.at = Math.max(0, number);
    const stop = STOPS[this.at];
    this.box.hidden = false;
    byId("tour-count", HTMLElement).textContent = `${this.at + 1} of ${STOPS.length}`;
    byId("tour-title", HTMLElement).textContent = stop.title;
    byId("tour-body", HTMLElement).textContent = stop.text;
    byId("tour-back", HTMLButtonElement).disabled = this.at === 0;
    byId("tour-next", HTMLButtonElement).textContent = this.at === STOPS.length - 1 ? "Play" : "Next";
    byId("tour-next", HTMLButtonElement).focus();
    this.onStop(stop);
  }

  end() {
    this.box.hidden = true;
    byId("tour-start", HTMLButtonElement).focus();
  }
}
