// Lines where numbers on a grid are 0, by marching squares.

/**
 * @param {(i: number, j: number) => number} at row and column
 * @param {number} cells along a side
 * @param {(x0: number, y0: number, x1: number, y1: number) => void} draw a piece of the line, in units of cells
 */
export function zeroLines(at, cells, draw) {
  for (let i = 0; i < cells; i++)
    for (let j = 0; j < cells; j++) {
      const corners = [at(i, j), at(i, j + 1), at(i + 1, j + 1), at(i + 1, j)];
      /** @type {[number, number][]} */
      const crossings = [];
      for (let side = 0; side < 4; side++) {
        const [a, b] = [corners[side], corners[(side + 1) % 4]];
        if (a > 0 === b > 0) continue;
        const t = a / (a - b);
        const starts = [
          [j, i],
          [j + 1, i],
          [j + 1, i + 1],
          [j, i + 1],
        ];
        const [from, to] = [starts[side], starts[(side + 1) % 4]];
        crossings.push([from[0] + t * (to[0] - from[0]), from[1] + t * (to[1] - from[1])]);
      }
      for (let k = 0; k + 1 < crossings.length; k += 2) draw(...crossings[k], ...crossings[k + 1]);
    }
}
