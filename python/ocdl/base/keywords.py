"""Refuse unknown keywords with a TypeError that suggests a known one."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import Any, TypeVar, cast

from ocdl.base.names import NO_ALIASES, suggestion

Called = TypeVar("Called", bound=Callable[..., Any])


def known_keywords(
    suggestions: Mapping[str, str] = NO_ALIASES, *, forwards_to: Callable[..., Any] | None = None
) -> Callable[[Called], Called]:
    """Return a decorator for functions and classes whose calls refuse unknown keywords with a suggestion.

    ``train(optimizer=...)`` raises ``TypeError: train() got an unexpected keyword argument 'optimizer'; did you mean
    'optimiser'?``. The decorator keeps signature, name and docstring.

    Parameters
    ----------
    instead : mapping
        Suggestions for keywords of other libraries that have no similar name here.
    also : callable, optional
        The callable that receives the keywords that the function passes on.
    """

    def decorate(called: Called) -> Called:
        if isinstance(called, type):
            kind = cast(Any, called)
            kind.__init__ = _check_calls(kind.__init__, suggestions, forwards_to)
            return called
        return cast(Called, _check_calls(called, suggestions, forwards_to))

    return decorate


def _check_calls(
    function: Callable[..., Any], suggestions: Mapping[str, str], forwards_to: Callable[..., Any] | None
) -> Callable[..., Any]:
    known = dict.fromkeys([*_list_keywords(function), *(_list_keywords(forwards_to) if forwards_to else ())])

    @wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:
        for keyword in keywords:
            if keyword not in known:
                name = type(args[0]).__name__ if function.__name__ == "__init__" else function.__name__
                hint = (
                    f"; did you mean {suggestions[keyword]!r}?"
                    if keyword in suggestions
                    else suggestion(keyword, known)
                )
                raise TypeError(f"{name}() got an unexpected keyword argument {keyword!r}{hint}")
        return function(*args, **keywords)

    return call


def _list_keywords(function: Callable[..., Any]) -> Iterable[str]:
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return [name for name, parameter in inspect.signature(function).parameters.items() if parameter.kind in kinds]
