"""``ocdl demo``: the paper's four architectures learn two spirals, as a table and as a page of pictures."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ocdl import datasets
from ocdl.base.threads import get_num_threads
from ocdl.base.validation import FloatArray, LabelArray
from ocdl.cli._output import add_command, add_seed, format_table, json_text, require_folder_for, write_in_folder
from ocdl.model.architecture import PRESETS
from ocdl.model.controls import Controls
from ocdl.network import Network
from ocdl.training.loop import train
from ocdl.training.parallel import ShouldStop, run_parallel, shared_progress
from ocdl.training.result import Result

LAYERS = 20
ITERATIONS, QUICK_ITERATIONS = 10_000, 300  # the paper makes 20,000
HEADER = ("architecture", "train accuracy", "test accuracy", "loss", "steps used", "seconds")
PAGE = "index.html"
EXAMPLES = """\
  ocdl demo
  ocdl demo --seed 3 --out spirals
  ocdl demo --quick --json

The page is one file, index.html, with its pictures in it."""


def add_parser(commands: argparse._SubParsersAction[Any]) -> None:
    """Add the command."""
    summary = "train four architectures on two spirals and show the results on a page"
    parser = add_command(commands, "demo", summary, EXAMPLES)
    parser.add_argument(
        "--out", default="ocdl-demo", metavar="FOLDER", help="the folder for the page; default: %(default)s"
    )
    add_seed(parser)
    parser.add_argument(
        "--quick", action="store_true", help=f"make {QUICK_ITERATIONS} iterations instead of {ITERATIONS}"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Train, print a table of the results, and write the page."""
    require_folder_for(arguments.out, PAGE)
    iterations = QUICK_ITERATIONS if arguments.quick else ITERATIONS
    rng = np.random.default_rng(arguments.seed)
    data, test = datasets.make_spiral(random_state=rng), datasets.make_spiral(random_state=rng)
    networks = {name: Network.preset(name, 2, LAYERS) for name in PRESETS}
    starts = {name: (net, net.init(random_state=arguments.seed)) for name, net in networks.items()}
    progress = not arguments.json and sys.stderr.isatty()
    results = train_all(starts, data, test, max_iter=iterations, progress=progress)
    report = [_summarise(name, networks[name], result) for name, result in results.items()]
    rows = [_row(one) for one in report]
    if not arguments.json:
        print(format_table(HEADER, rows), flush=True)  # before the pictures, which take a while

    from ocdl.cli._demo_page import Demo, demo_page

    demo = Demo(networks, results, data, test, arguments.seed, iterations)
    write_in_folder(arguments.out, PAGE, demo_page(demo, HEADER, rows))
    target = os.path.join(arguments.out, PAGE)
    if arguments.json:
        print(json_text({"seed": arguments.seed, "iterations": iterations, "networks": report, "out": target}))
    else:
        print(f"\npage: {target}")


def train_all(
    starts: Mapping[str, tuple[Network, Controls]],
    data: tuple[FloatArray, LabelArray],
    test: tuple[FloatArray, LabelArray],
    *,
    max_iter: int,
    progress: bool,
) -> dict[str, Result]:
    """Train each network with Algorithm 2 and the paper's constants, as many at a time as ocdl has threads."""
    with shared_progress(max_iter * len(starts), shown=progress) as make_callback:

        def training(net: Network, start: Controls) -> Callable[[ShouldStop], Result]:
            return lambda should_stop: train(
                net, start, *data, validation=test, max_iter=max_iter, callback=make_callback(should_stop)
            )

        trainings = {name: training(net, start) for name, (net, start) in starts.items()}
        done = dict(run_parallel(trainings, min(get_num_threads(), len(starts))))
    return {name: done[name] for name in starts}


def _summarise(name: str, net: Network, result: Result) -> dict[str, Any]:
    history = result.history
    return {
        "architecture": name,
        "train_accuracy": float(history.accuracy[-1]),
        "test_accuracy": float(history.val_accuracy[-1]),
        "loss": float(history.loss[-1]),
        "layers": net.n_layers,
        "steps_used": int(np.count_nonzero(result.controls.h)) if net.residual else None,
        "seconds": round(float(history.seconds[-1]), 3),
    }


def _row(report: dict[str, Any]) -> tuple[str, ...]:
    steps = "none" if report["steps_used"] is None else f"{report['steps_used']} of {report['layers']}"
    return (
        report["architecture"],
        f"{report['train_accuracy']:.3f}",
        f"{report['test_accuracy']:.3f}",
        f"{report['loss']:.2e}",
        steps,
        f"{report['seconds']:.1f}",
    )
