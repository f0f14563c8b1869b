// The certificate as a table.

import { element } from "./elements.js";

/** @param {import("./certificate.js").Check[]} checks */
export function certificateTable(checks) {
  const head = ["What must hold", "Measured", "Expected", "Verdict"].map((text) =>
    element("th", { scope: "col" }, text),
  );
  const rows = checks.map(({ name, value, expected, passed }) => {
    const shown =
      value === null ? "–" : Math.abs(value) >= 0.01 ? value.toFixed(3) : value === 0 ? "0" : value.toExponential(1);
    const verdict =
      passed === null
        ? element("td", {}, "–")
        : element("td", { class: passed ? "holds" : "fails" }, passed ? "✓ holds" : "✗ fails");
    return element("tr", {}, element("td", {}, name), element("td", {}, shown), element("td", {}, expected), verdict);
  });
  const table = element("table", {}, element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...rows));
  return element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Certificate" }, table);
}
