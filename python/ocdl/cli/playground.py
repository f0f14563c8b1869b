"""``ocdl playground``: a page in which the core of ocdl learns live, in a browser."""

from __future__ import annotations

import argparse
import webbrowser
from pathlib import Path
from typing import Any

import ocdl
from ocdl.cli._output import UserError, add_command, json_text, require_place_for, write_text

BUILT_PAGE = Path(ocdl.__file__).with_name("playground.html")  # `make playground` puts it there; wheels contain it
EXAMPLES = """\
  ocdl playground
  ocdl playground --out page.html --no-browser

The page is one file that needs nothing but a browser: no server, no network."""


def add_parser(commands: argparse._SubParsersAction[Any]) -> None:
    """Add the command."""
    summary = "write a page on which networks learn live, and open it in a browser"
    parser = add_command(commands, "playground", summary, EXAMPLES)
    parser.add_argument(
        "--out", default="ocdl-playground.html", metavar="FILE", help="the file for the page; default: %(default)s"
    )
    parser.add_argument("--no-browser", action="store_true", help="write the page only")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Write the page and open it."""
    if not BUILT_PAGE.is_file():
        raise UserError("this installation has no page; in a checkout of ocdl, build it with: make playground")
    require_place_for(arguments.out, str(BUILT_PAGE))
    write_text(arguments.out, BUILT_PAGE.read_text(encoding="utf-8"))
    address = Path(arguments.out).resolve().as_uri()
    opened = not arguments.no_browser and webbrowser.open(address)
    if arguments.json:
        print(json_text({"page": arguments.out, "address": address, "opened": opened}))
    else:
        print(f"page: {arguments.out}" + ("" if opened else f"\nopen it in a browser: {address}"))
