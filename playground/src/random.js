// Random numbers that follow from a seed, so that a link gives the same picture.

/** The generator xoshiro128** (Blackman and Vigna 2018), seeded by splitmix32. */
export class Random {
  /** @param {number} seed @param {number} [stream] several sequences of one seed */
  constructor(seed, stream = 0) {
    let state = (seed ^ Math.imul(stream + 1, 0x9e3779b9)) >>> 0;
    this.state = Uint32Array.from({ length: 4 }, () => {
      state = (state + 0x9e3779b9) >>> 0;
      let x = state;
      x = Math.imul(x ^ (x >>> 16), 0x21f0aaad);
      x = Math.imul(x ^ (x >>> 15), 0x735a2d97);
      return (x ^ (x >>> 15)) >>> 0;
    });
    /** @type {number | null} */
    this.spare = null;
  }

  /** A whole number of 32 bits. */
  bits() {
    const s = this.state;
    const product = Math.imul(s[1], 5);
    const result = Math.imul((product << 7) | (product >>> 25), 9) >>> 0;
    const shifted = s[1] << 9;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= shifted;
    s[3] = (s[3] << 11) | (s[3] >>> 21);
    return result;
  }

  /** Uniform on [0, 1), with 53 bits. */
  uniform() {
    return ((this.bits() >>> 5) * 2 ** 26 + (this.bits() >>> 6)) / 2 ** 53;
  }

  /** Standard normal, by Marsaglia's polar method. */
  normal() {
    if (this.spare !== null) {
      const kept = this.spare;
      this.spare = null;
      return kept;
    }
    for (;;) {
      const x = 2 * this.uniform() - 1;
      const y = 2 * this.uniform() - 1;
      const square = x * x + y * y;
      if (square >= 1 || square === 0) continue;
      const factor = Math.sqrt((-2 * Math.log(square)) / square);
      this.spare = y * factor;
      return x * factor;
    }
  }

  /** 0, 1, ..., count - 1 in random order. @param {number} count */
  permutation(count) {
    const order = Array.from({ length: count }, (_, i) => i);
    for (let left = count; left > 1; left--) {
      const chosen = Math.floor(this.uniform() * left);
      [order[left - 1], order[chosen]] = [order[chosen], order[left - 1]];
    }
    return order;
  }
}
