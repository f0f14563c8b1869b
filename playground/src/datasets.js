// The paper's four data sets, as ocdl.datasets makes them, and curves to learn.

import { Random } from "./random.js";

/** @typedef {{x: number, y: number, target: number}} Point target: a class, or of a curve y */

/** @typedef {(count: number, random: Random) => {x: number, y: number, target: number}[]} Maker without noise */

/** @param {number} angle @param {number} count @param {number} target */
const spiralArm = (angle, count, target) =>
  Array.from({ length: count }, (_, i) => {
    const t = count > 1 ? i / (count - 1) : 0;
    const radius = 0.1 + 0.9 * t;
    const turned = angle + 0.1 + (2 * Math.PI - 0.1) * t;
    return { x: radius * Math.cos(turned), y: radius * Math.sin(turned), target };
  });

/** @param {{x: number, y: number}[]} candidates @param {number} share one in so many is of the inner class */
const donut = (candidates, share) => (/** @type {number} */ count, /** @type {Random} */ random) => {
  const inner = Math.ceil(count / share);
  const drawn = (/** @type {number} */ size, /** @type {number} */ middle, /** @type {number} */ target) => {
    let sum = 0;
    const sums = candidates.map(({ x, y }) => (sum += Math.exp(-((Math.hypot(x, y) - middle) ** 2) / 0.02)));
    return Array.from({ length: size }, () => {
      const wanted = random.uniform() * sum;
      const found = sums.findIndex((upTo) => upTo > wanted);
      return { ...candidates[found], target };
    });
  };
  return [...drawn(count - inner, 0.5, 0), ...drawn(inner, 0, 1)];
};

const LINE = Array.from({ length: 100 }, (_, i) => -1 + (2 * i) / 99);

/** @type {Record<string, Maker>} */
export const PLANAR = {
  spiral: (count) => {
    const ones = Math.ceil(count / 2);
    return [...spiralArm(0, count - ones, 0), ...spiralArm(Math.PI, ones, 1)];
  },
  donut1d: donut(
    LINE.map((x) => ({ x, y: 0 })),
    3,
  ),
  donut2d: donut(
    LINE.flatMap((y) => LINE.map((x) => ({ x, y }))),
    2,
  ),
  squares: (count, random) =>
    Array.from({ length: count }, () => {
      const x = 1.4 * random.uniform() - 0.7;
      const y = 1.4 * random.uniform() - 0.7;
      return { x, y, target: Number(x * y > 0) };
    }),
};

/** @type {Record<string, (x: number) => number>} */
const FORMULAS = {
  sine: (x) => 0.8 * Math.sin(1.5 * Math.PI * x),
  bump: (x) => 1.2 * Math.exp(-((x / 0.25) ** 2)) - 0.4,
  step: (x) => (x > 0 ? 0.6 : -0.6),
};

/** @type {Record<string, Maker>} */
export const CURVES = Object.fromEntries(
  Object.entries(FORMULAS).map(([name, formula]) => [
    name,
    (/** @type {number} */ count, /** @type {Random} */ random) =>
      Array.from({ length: count }, () => {
        const x = 2 * random.uniform() - 1;
        return { x, y: formula(x), target: 0 };
      }),
  ]),
);

/**
 * Points with noise, in random order. Another stream of the same seed: test data.
 * @param {string} name
 * @param {{size: number, noise: number, seed: number, stream: number}} how
 * @returns {Point[]}
 */
export function makePoints(name, { size, noise, seed, stream }) {
  const random = new Random(seed, stream);
  const isCurve = name in CURVES;
  const points = (isCurve ? CURVES : PLANAR)[name](size, random);
  return random.permutation(size).map((i) => {
    const { x, y, target } = points[i];
    const noisy = { x: isCurve ? x : x + noise * random.normal(), y: y + noise * random.normal() };
    return { ...noisy, target: isCurve ? noisy.y : target };
  });
}

const HELD_OUT = 5; // one in so many
const ENOUGH_TO_HOLD_OUT = 50;

/**
 * Points of one's own, divided: of many, one in five is kept for the test.
 * @param {Point[]} points
 * @returns {{train: Point[], test: Point[]}}
 */
export function divided(points) {
  if (points.length < ENOUGH_TO_HOLD_OUT) return { train: points, test: [] };
  const isHeldOut = (/** @type {number} */ i) => i % HELD_OUT === HELD_OUT - 1;
  return { train: points.filter((_, i) => !isHeldOut(i)), test: points.filter((_, i) => isHeldOut(i)) };
}
