// Colours that colour-blind people can tell apart (Okabe and Ito 2008), one for each class.

export const COLOURS = ["#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"];

/** @type {Record<string, [number, number, number][]>} the same as numbers, softer where they fill the plane */
const FILLS = {
  light: [
    [243, 178, 122],
    [133, 184, 222],
    [138, 205, 182],
    [229, 190, 212],
    [244, 214, 143],
    [172, 216, 242],
  ],
  dark: [
    [128, 62, 14],
    [18, 72, 110],
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
