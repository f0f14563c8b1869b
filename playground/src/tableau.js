// Runge-Kutta methods: the core checks their coefficients and derives what they are.

/**
 * @typedef {object} Tableau
 * @property {string | null} name
 * @property {number[][]} A
 * @property {number[]} b
 * @property {number[]} c
 * @property {number} order derived by the core from the order conditions
 * @property {boolean} isExplicit
 */

/**
 * Runs a function with the core's own tableau.
 * @template T
 * @param {import("./core.js").Core} core
 * @param {string | {A: number[][], b: number[]}} method a name, or coefficients
 * @param {(pointer: number) => T} body
 * @returns {T}
 */
export function withTableau(core, method, body) {
  const pointer =
    typeof method === "string"
      ? core.call("named_tableau", method)
      : core.borrowing((borrow) =>
          core.call("make_tableau", method.b.length, borrow(method.A.flat()), borrow(method.b)),
        );
  try {
    return body(pointer);
  } finally {
    core.call("free_tableau", pointer);
  }
}

/**
 * @param {import("./core.js").Core} core
 * @param {string | {A: number[][], b: number[]}} method
 * @returns {Tableau}
 */
export function describeTableau(core, method) {
  return withTableau(core, method, (pointer) => {
    const stages = core.call("tableau_stages", pointer);
    const numbers = (/** @type {string} */ part, /** @type {number} */ count) =>
      Array.from(core.doublesAt(core.call(`tableau_${part}`, pointer), count));
    const A = numbers("A", stages * stages);
    return {
      name: typeof method === "string" ? method : null,
      A: Array.from({ length: stages }, (_, i) => A.slice(i * stages, (i + 1) * stages)),
      b: numbers("b", stages),
      c: numbers("c", stages),
      order: core.call("tableau_order", pointer),
      isExplicit: core.call("tableau_is_explicit", pointer) === 1,
    };
  });
}

/**
 * The largest |b_i a~_ij + b~_j a_ji - b_i b~_j| over the entries of a method and its symplectic partner, and what of
 * it is roundoff; null where a weight is 0 and there is no partner.
 * @param {import("./core.js").Core} core
 * @param {Tableau} tableau
 */
export function symplecticityDefect(core, { A, b }) {
  if (b.includes(0)) return null;
  return withTableau(core, { A, b }, (pointer) => {
    const partner = core.call("adjoint_tableau", pointer);
    const s = b.length;
    const other = Array.from(core.doublesAt(core.call("tableau_A", partner), s * s));
    core.call("free_tableau", partner);
    let defect = 0;
    for (let i = 0; i < s; i++)
      for (let j = 0; j < s; j++)
        defect = Math.max(defect, Math.abs(b[i] * other[i * s + j] + b[j] * A[j][i] - b[i] * b[j]));
    return { defect, limit: 8 * Math.max(1, ...other.map(Math.abs)) * Number.EPSILON };
  });
}
