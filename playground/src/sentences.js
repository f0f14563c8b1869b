// Numbers and states of affairs, as people say them.

/** @param {number} value */
export function shortNumber(value) {
  if (!Number.isFinite(value)) return "∞";
  return value !== 0 && Math.abs(value) < 1e-3 ? value.toExponential(1) : value.toFixed(4);
}

/** @param {number} share */
export function percent(share) {
  return `${(100 * share).toFixed(1)} %`;
}

/** @type {Record<string, string>} */
export const STATUS_SENTENCES = {
  gradient: "done: the gradient is 0",
  step_tolerance: "done: steps are below roundoff",
  line_search_failed: "done: no step lowers the loss",
  most_iterations: "done: a training makes up to 100000 iterations here",
  not_finite: "the numbers left the finite range: try a shorter horizon or smaller steps",
};

/** @param {number[]} steps @param {string} architecture */
export function stepsSentence(steps, architecture) {
  const zeros = steps.filter((h) => h === 0).length;
  if (zeros) return `${zeros} of ${steps.length} steps are exactly 0: those layers do nothing.`;
  if (architecture === "resnet") return "A ResNet has equal steps; an ODENet learns them.";
  if (architecture === "odenet") return "Free steps: as long as they like, backward too.";
  return "On the simplex: none is negative, and their sum stays.";
}

/** @param {{net: {layers: number}, isIdentical: boolean, milliseconds: number[]}} pruned @param {number} layers before */
export function pruningSentence({ net, isIdentical, milliseconds: [before, after] }, layers) {
  const bits = isIdentical ? "the same to the last bit" : "NOT the same";
  return `${layers - net.layers} of ${layers} layers dropped. The prediction is ${bits}, and takes ${after.toFixed(3)} ms instead of ${before.toFixed(3)} ms.`;
}
