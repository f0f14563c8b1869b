// Small charts: how the loss fell, and how long the time steps are.

import { cleared } from "./canvas.js";
import { styled } from "./palette.js";

const MARGIN = { left: 44, right: 34, top: 8, bottom: 18 };
const MOST_KEPT = 1500;

/** What was seen of a training, thinned out as it grows. */
export class History {
  constructor() {
    /** @type {{iteration: number, loss: number}[]} */
    this.losses = [];
    /** @type {{iteration: number, score: number, test: number | null}[]} */
    this.scores = [];
  }

  /** @param {import("./session.js").Frame} frame */
  add(frame) {
    for (const one of frame.losses) this.losses.push(one);
    const last = this.scores[this.scores.length - 1];
    if (last?.iteration !== frame.iteration)
      this.scores.push({ iteration: frame.iteration, score: frame.now.score, test: frame.now.testScore });
    if (this.losses.length > MOST_KEPT) this.losses = halved(this.losses);
    if (this.scores.length > MOST_KEPT) this.scores = halved(this.scores);
  }
}

/** Every second one, and the last. @template T @param {T[]} all */
function halved(all) {
  return all.filter((_, i) => i % 2 === 0 || i === all.length - 1);
}

/** @param {HTMLCanvasElement} canvas @param {History} history */
export function drawCurves(canvas, { losses, scores }) {
  const { context, width, height } = cleared(canvas);
  const [left, right] = [MARGIN.left, width - MARGIN.right];
  const [top, bottom] = [MARGIN.top, height - MARGIN.bottom];
  const last = Math.max(10, losses[losses.length - 1]?.iteration ?? 0);
  const positive = losses.map(({ loss }) => loss).filter((loss) => loss > 0 && Number.isFinite(loss));
  let high = Math.ceil(Math.log10(Math.max(1e-12, ...positive.slice(0, MOST_KEPT))) * 2) / 2;
  let low = Math.floor(Math.log10(Math.min(1e12, ...positive)));
  if (!positive.length) [low, high] = [-2, 0];
  if (high - low < 1) high = low + 1;
  const toX = (/** @type {number} */ iteration) => left + (iteration / last) * (right - left);
  const lossToY = (/** @type {number} */ loss) =>
    top + ((high - Math.log10(Math.max(loss, 1e-300))) / (high - low)) * (bottom - top);
  const scoreToY = (/** @type {number} */ score) => bottom - Math.max(0, Math.min(1, score)) * (bottom - top);

  context.font = "11px system-ui, sans-serif";
  context.fillStyle = styled("--soft");
  context.strokeStyle = styled("--line");
  context.lineWidth = 1;
  context.textBaseline = "middle";
  const stride = Math.max(1, Math.ceil((high - low) / 4));
  for (let power = low; power <= high; power += stride) {
    const y = lossToY(10 ** power);
    line(context, [
      [left, y],
      [right, y],
    ]);
    context.textAlign = "right";
    context.fillText(power < -3 || power > 3 ? `1e${power}` : `${Number((10 ** power).toPrecision(1))}`, left - 6, y);
  }
  context.textAlign = "left";
  for (const score of [0, 0.5, 1]) context.fillText(String(score), right + 6, scoreToY(score));
  context.textBaseline = "alphabetic";
  context.textAlign = "center";
  context.fillText("0", left, height - 4);
  context.textAlign = "right";
  context.fillText(String(last), right, height - 4);

  context.lineWidth = 2;
  context.setLineDash([5, 4]);
  context.strokeStyle = styled("--warm");
  line(
    context,
    scores.filter(({ test }) => test !== null).map(({ iteration, test }) => [toX(iteration), scoreToY(test ?? 0)]),
  );
  context.setLineDash([]);
  context.strokeStyle = styled("--accent");
  line(
    context,
    scores.map(({ iteration, score }) => [toX(iteration), scoreToY(score)]),
  );
  context.strokeStyle = styled("--ink");
  line(
    context,
    losses.filter(({ loss }) => Number.isFinite(loss)).map(({ iteration, loss }) => [toX(iteration), lossToY(loss)]),
  );
}

/** @param {CanvasRenderingContext2D} context @param {number[][]} places */
function line(context, places) {
  context.beginPath();
  places.forEach(([x, y], i) => (i === 0 ? context.moveTo(x, y) : context.lineTo(x, y)));
  context.stroke();
}

/**
 * Bars from 0, downward where a step goes back in time; a ring marks a step that is 0.
 * @param {HTMLCanvasElement} canvas @param {number[]} steps @param {number} layer the one that the picture shows
 */
export function drawSteps(canvas, steps, layer) {
  const { context, width, height } = cleared(canvas);
  const [left, right, top, bottom] = [MARGIN.left, width - 8, MARGIN.top + 4, height - MARGIN.bottom - 4];
  const high = Math.max(1e-9, ...steps);
  const low = Math.min(0, ...steps);
  const toY = (/** @type {number} */ h) => top + ((high - h) / (high - low)) * (bottom - top);
  context.font = "11px system-ui, sans-serif";
  context.fillStyle = styled("--soft");
  context.textBaseline = "middle";
  context.textAlign = "right";
  context.fillText(high.toPrecision(2), left - 6, toY(high));
  context.fillText("0", left - 6, toY(0));
  if (low < -0.1 * high) context.fillText(low.toPrecision(2), left - 6, toY(low));
  context.strokeStyle = styled("--edge");
  context.lineWidth = 1;
  line(context, [
    [left, toY(0)],
    [right, toY(0)],
  ]);
  const slot = (right - left) / steps.length;
  steps.forEach((h, j) => {
    const x = left + j * slot + slot * 0.14;
    context.fillStyle = styled(j < layer ? "--accent" : "--edge");
    if (h === 0) {
      context.strokeStyle = styled("--warm");
      context.lineWidth = 2;
      context.beginPath();
      context.arc(x + slot * 0.36, toY(0), Math.min(5, slot * 0.34), 0, 2 * Math.PI);
      context.stroke();
    } else {
      context.fillRect(x, Math.min(toY(h), toY(0)), slot * 0.72, Math.max(1, Math.abs(toY(h) - toY(0))));
    }
  });
  context.fillStyle = styled("--soft");
  context.textBaseline = "alphabetic";
  context.textAlign = "center";
  context.fillText("1", left + slot / 2, height - 4);
  if (steps.length > 1) context.fillText(String(steps.length), right - slot / 2, height - 4);
}
