// The colours of the classes, those of plot/_style.py, which readers with any kind of colour vision can distinguish.

export const COLOURS = ["#0f4c91", "#e0472f", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"];

/** @type {Record<string, [number, number, number][]>} the same as numbers, softer where they fill the plane */
const FILLS = {
  light: [
    [140, 170, 208],
    [240, 166, 153],
    [138, 205, 182],
    [229, 190, 212],
    [244, 214, 143],
    [172, 216, 242],
  ],
  dark: [
    [16, 58, 110],
    [132, 46, 32],
    [12, 92, 70],
    [118, 66, 96],
    [125, 92, 18],
    [44, 92, 122],
  ],
};

/** @param {string} theme */
export function fillsOf(theme) {
  return FILLS[theme];
}

/** A colour of the style sheet. @param {string} name */
export function styled(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

export function theme() {
  return document.documentElement.dataset.theme ?? "light";
}
