"""Every class that a public function takes or returns is public itself: users name it in annotations and look it up."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from typing import Any

import pytest
from test_docstrings import CLASSES, FUNCTIONS, NAMES, PROPERTIES, Public, named

import ocdl

PUBLIC = {actual.thing for actual in CLASSES}
INTERNAL = {
    "Flow": "the base class of Network, which its methods name instead",
    "ControlLayout": "controls are made by Network.controls",
    "Encoding": "made by ocdl train",
}
SKIPPED = ("torch", "jax", "interop", "reproduce", "__main__", "_core")  # extras, figures of the paper, the command


def modules_of_ours() -> Iterator[Any]:
    for module in pkgutil.walk_packages(ocdl.__path__, "ocdl."):
        if not module.name.split(".")[1].startswith(SKIPPED):
            yield importlib.import_module(module.name)


OURS = {
    name: thing
    for module in modules_of_ours()
    for name, thing in vars(module).items()
    if inspect.isclass(thing) and thing.__module__ == module.__name__
}


def classes_in(annotation: object) -> Iterator[type]:
    """Yield the classes of ours that an annotation names."""
    for node in ast.walk(ast.parse(str(annotation), mode="eval")):
        name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
        if name in OURS and not getattr(OURS[name], "_is_protocol", False):
            yield OURS[name]


def annotations_of(actual: Public) -> Iterator[object]:
    """Yield the annotations of the parameters and of the result of something public."""
    function = getattr(actual.thing, "fget", None) or getattr(actual.thing, "func", None) or actual.thing
    if inspect.isclass(actual.thing):
        yield from inspect.get_annotations(actual.thing).values()
        function = actual.thing.__init__
    yield from getattr(inspect.unwrap(function), "__annotations__", {}).values()


@pytest.mark.parametrize("actual", [*NAMES, *FUNCTIONS, *PROPERTIES], ids=named)
def test_its_annotations_name_public_classes(actual: Public) -> None:
    hidden = {
        kind.__name__
        for annotation in annotations_of(actual)
        if isinstance(annotation, str)
        for kind in classes_in(annotation)
        if kind not in PUBLIC and kind.__name__ not in INTERNAL
    }
    assert not hidden


def test_the_walk_sees_classes() -> None:
    assert list(classes_in("Network | None")) == [ocdl.Network]
    assert len(OURS) > 100
