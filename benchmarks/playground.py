"""How long does a picture of the playground take while it learns, when does the first one come, how large is the page?

It needs the page (`make playground`), playwright and a browser, which runs without a screen and draws on the processor.
"""

from __future__ import annotations

import argparse
import shutil
from statistics import median
from typing import Any
from urllib.parse import urlencode

import matplotlib.pyplot as plt
import numpy as np
import report
from playwright.sync_api import Browser, Page, sync_playwright

from ocdl.cli.playground import BUILT_PAGE

MOST_FRAME_MS, MOST_FIRST_SECONDS, MOST_BYTES = 33.0, 2.0, 1.5e6  # what was promised
ROUNDS = 7
PICTURES = 200
SIZE = {"width": 1280, "height": 900}
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "as it opens": ("8", {}),
    "as fast as it can": ("Infinity", {"optimiser": "Backtracking"}),
    "on the simplex": ("8", {"architecture": "odenet+simplex", "optimiser": "Backtracking", "horizon": 1}),
    "Kutta 4 in 4 dimensions": ("8", {"tableau": "kutta4", "augment": 2, "optimiser": "Adam"}),
    "implicit": ("8", {"tableau": "gauss2", "optimiser": "Adam"}),
    "everything largest": ("8", {"size": 2000, "layers": 50, "tableau": "kutta4", "optimiser": "Adam"}),
}
FIRST_PICTURE = "() => window.playground?.frame && !playground.isDirty && performance.now()"
# The times between pictures of the training, by the clock of the browser's own frames.
PICTURE_TIMES = """(count) => new Promise((resolve) => {
  const times = [];
  let [shown, before] = [playground.frame, 0];
  const look = (now) => {
    if (playground.frame !== shown) {
      if (before) times.push(now - before);
      [shown, before] = [playground.frame, now];
    }
    if (times.length < count && playground.isPlaying) requestAnimationFrame(look);
    else resolve(times);
  };
  requestAnimationFrame(look);
})"""


def opened(browser: Browser, chosen: dict[str, Any]) -> tuple[Page, float]:
    """The page on a first visit, and the seconds until it shows a picture."""
    page = browser.new_context(viewport=SIZE).new_page()
    page.goto(f"{BUILT_PAGE.as_uri()}#{urlencode(chosen)}")
    return page, 1e-3 * page.wait_for_function(FIRST_PICTURE).json_value()


def measure(browser: Browser, name: str) -> dict[str, Any]:
    speed, chosen = CASES[name]
    page, first = opened(browser, chosen)
    page.select_option("#speed", speed)
    page.click("#play")
    times = page.evaluate(PICTURE_TIMES, PICTURES)
    iterations = page.evaluate("() => playground.frame.iteration")
    page.context.close()
    return {
        "case": name,
        "milliseconds": times,
        "median": median(times),
        "slow": float(np.quantile(times, 0.95)),
        "iterations": iterations,
        "first_picture": first,
    }


def first_pictures(browser: Browser, rounds: int) -> list[float]:
    result = []
    for _ in range(rounds):
        page, seconds = opened(browser, {})
        page.context.close()
        result.append(seconds)
    return result


def print_rows(rows: list[dict[str, Any]]) -> None:
    report.print_table(
        ("while it learns", "a picture, median", "95 %", "iterations seen"),
        [(row["case"], f"{row['median']:.1f} ms", f"{row['slow']:.1f} ms", f"{row['iterations']}") for row in rows],
    )


def plot(rows: list[dict[str, Any]]) -> None:
    """A box per case: the middle half of the times between pictures, whiskers from 5 to 95 percent."""
    with plt.rc_context(report.STYLE):
        figure, axes = plt.subplots(figsize=(8, 1.2 + 0.4 * len(rows)))
        names = [row["case"] for row in rows]
        axes.boxplot(
            [row["milliseconds"] for row in rows], orientation="horizontal", whis=(5, 95), sym="", tick_labels=names
        )
        axes.axvline(MOST_FRAME_MS, color=report.COLOURS[3], linestyle="--", label="30 pictures a second")
        axes.set_xlim(left=0)
        axes.invert_yaxis()
        axes.set_xlabel("milliseconds from one picture to the next")
        axes.set_title("The playground while it learns", loc="left")
        axes.legend(loc="upper left", bbox_to_anchor=(1, 1))
        report.save_figure("playground", figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="how often the page is opened for the first picture")
    options = parser.parse_args()
    result = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)
    if result is None or not BUILT_PAGE.is_file():
        raise SystemExit("there is no browser, or no page: install chromium, and run make playground")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=result, args=["--no-sandbox"])
        version = browser.version
        first = first_pictures(browser, options.rounds)
        rows = [measure(browser, name) for name in CASES]
        browser.close()
    size = BUILT_PAGE.stat().st_size
    print_rows(rows)
    print(f"first picture after {median(first):.2f} s (slowest of {len(first)}: {max(first):.2f} s)")
    print(f"the page has {size / 1e6:.2f} MB")
    targets = {"milliseconds": MOST_FRAME_MS, "first_picture": MOST_FIRST_SECONDS, "bytes": MOST_BYTES}
    report.save(
        "playground",
        {"browser": version, "targets": targets, "bytes": size, "first_picture": first, "rows": rows},
    )
    plot(rows)


if __name__ == "__main__":
    main()
