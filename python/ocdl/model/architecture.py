"""The architecture of a network: its sizes, method, field and controls."""

from __future__ import annotations

import dataclasses
import math
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from ocdl import _core
from ocdl.base import markup, memory, validation
from ocdl.base.keywords import known_keywords
from ocdl.base.names import pluralise
from ocdl.base.randomness import random_source
from ocdl.base.validation import FloatArray
from ocdl.model import control_intervals, layers_picture
from ocdl.model.controls import ControlLayout, Controls, Part
from ocdl.model.fields import FIELD_OPTIONS, FIELDS
from ocdl.model.nonexpansive import clip_singular_values, require_nonexpansive, singular_value_bounds
from ocdl.model.projection import project_simplex
from ocdl.model.start import draw_field_parts
from ocdl.model.tableau import Tableau

DEFAULT_TABLEAU = "euler"
TIME_STEPS = ("fixed", "free", "simplex")
INPUT_HOLDS = ("linear", "zero")
PRESETS: dict[str, dict[str, Any]] = {
    "net": {"residual": False},
    "resnet": {"time_steps": "fixed"},
    "odenet": {"time_steps": "free"},
    "odenet+simplex": {"time_steps": "simplex"},
}
PRESET_ALIASES = {"ResNet/Euler": "resnet", "odenet_simplex": "odenet+simplex", "feed_forward": "net"}


RESIDUAL = "a residual network (residual=True, or an architecture other than 'net')"


@dataclasses.dataclass(frozen=True)
class Architecture:
    """The arguments of `Network`, checked and converted, and what follows from them.

    An immutable value: compared and hashed by its arguments; its repr and its pickle are the call that creates it.
    """

    n_features: int
    n_layers: int
    n_outputs: int
    tableau: Tableau
    residual: bool
    field: str
    width: int | None
    degree: int | None
    activation: str
    time_steps: str
    horizon: float
    augment: int
    stage_controls: bool
    control_intervals: int | tuple[int, ...] | None
    n_inputs: int
    input_hold: str
    nonexpansive: bool
    dtype: np.dtype[Any]
    _core_network: _core.Network = dataclasses.field(init=False, repr=False, compare=False)
    _layout: ControlLayout = dataclasses.field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.residual and self.field != "dense":
            raise ValueError(f"field={self.field!r} needs {RESIDUAL}: a feed-forward network has no flow")
        if not self.residual and self.tableau != Tableau.named(DEFAULT_TABLEAU):
            raise ValueError(
                f"tableau={self.tableau.name or self.tableau!r} needs {RESIDUAL}: a feed-forward network has no "
                "Runge-Kutta steps; leave it out"
            )
        self._check_field_options()
        if FIELDS[self.field].needs_even_dim and self.dim % 2:
            raise ValueError(
                f"field={self.field!r} needs a state of even dimension, positions and momenta, got n_features + "
                f"augment = {self.dim}; one more augmented component makes it even"
            )
        if not self.residual and self.time_steps != "fixed":
            raise ValueError(
                f"time_steps={self.time_steps!r} needs {RESIDUAL}: a feed-forward network has no steps to learn"
            )
        self._check_inputs()
        if self.nonexpansive:
            require_nonexpansive(self.field, self.time_steps, self.activation, self.tableau)
        core = _core.Network(
            features=self.n_features,
            dim=self.dim,
            layers=self.n_layers,
            outputs=self.n_outputs,
            tableau=self.tableau._core_tableau,
            activation=self.activation,
            residual=self.residual,
            stage_controls=self.stage_controls,
            learns_steps=self.time_steps != "fixed",
            horizon=self.horizon,
            field=self.field,
            width=self.width or 0,
            degree=self.degree or 0,
            inputs=self.n_inputs,
            linear_inputs=self.n_inputs > 0 and self.input_hold == "linear",
            layer_sets=() if self.control_intervals is None else self.layer_sets,
        )
        parts = tuple(Part(name, role, tuple(axes), tuple(shape)) for name, role, axes, shape in core.parts)
        object.__setattr__(self, "_core_network", core)
        object.__setattr__(self, "_layout", ControlLayout(parts, self.dtype))

    def _check_field_options(self) -> None:
        field = FIELDS[self.field]
        for option, example in FIELD_OPTIONS.items():
            given = getattr(self, option)
            if option == field.option:
                if given is None and field.requires_option:
                    raise ValueError(f"field={self.field!r} needs {option}, as in {option}={example}")
            elif given is not None:
                owners = " or ".join(f"field={name!r}" for name, field in FIELDS.items() if field.option == option)
                raise ValueError(f"{option} needs {owners}, got {option}={given} and field={self.field!r}")

    def _check_inputs(self) -> None:
        if self.n_inputs == 0:
            if self.input_hold != INPUT_HOLDS[0]:
                raise ValueError(f"input_hold={self.input_hold!r} needs inputs, as in n_inputs=1, got n_inputs=0")
            return
        if not FIELDS[self.field].takes_inputs:
            takers = " or ".join(f"field={name!r}" for name, field in FIELDS.items() if field.takes_inputs)
            raise ValueError(f"n_inputs={self.n_inputs} needs {takers}, got field={self.field!r}")
        if np.abs(self.tableau.A.sum(axis=1) - self.tableau.c).max() > 1e-12:
            raise ValueError(
                f"n_inputs={self.n_inputs} needs a tableau whose c is the sums of the rows of A, when its stages take "
                f"their inputs; c of {self.tableau!r} is something else"
            )

    @classmethod
    def preset(cls, architecture: str, n_features: int, n_layers: int, **overrides: Any) -> Self:
        """Return one of the paper's four architectures.

        Parameters
        ----------
        architecture : {"net", "resnet", "odenet", "odenet+simplex"}
            Feed-forward; fixed steps; free steps; steps on the simplex. The paper's spelling, "ResNet", is accepted,
            too.
        n_features, n_layers : int
            As for `Network`.
        **overrides
            Any other argument of `Network`.

        Returns
        -------
        Network

        Raises
        ------
        TypeError, ValueError
            If there is no such architecture, or `Network` does not take an argument.

        Examples
        --------
        >>> import ocdl
        >>> ocdl.Network.preset("odenet+simplex", 2, 20).time_steps
        'simplex'
        """
        preset = PRESETS[validation.choice(architecture, "architecture", PRESETS, PRESET_ALIASES)]
        return cls(n_features, n_layers, **(preset | overrides))

    @property
    def dim(self) -> int:
        """The dimension of the state: features and augmented components.

        Examples
        --------
        >>> import ocdl
        >>> ocdl.Network(2, 10, augment=3).dim
        5
        """
        return self.n_features + self.augment

    @property
    def stages(self) -> int:
        """The stages of a layer; 1 for a feed-forward network.

        Examples
        --------
        >>> import ocdl
        >>> ocdl.Network(2, 10, tableau="kutta4").stages
        4
        """
        return self.tableau.stages if self.residual else 1

    @property
    def layer_sets(self) -> tuple[int, ...]:
        """The set of the field's controls that each layer uses: layer j has ``u.K[net.layer_sets[j]]``.

        Examples
        --------
        >>> import ocdl
        >>> ocdl.Network(2, 5, control_intervals=2).layer_sets
        (0, 0, 0, 1, 1)
        """
        return control_intervals.layer_sets(self.control_intervals, self.n_layers)

    @property
    def _input_shape(self) -> tuple[int, int]:
        """The shape of a sample's inputs: times and inputs."""
        return self.n_layers + (self.input_hold == "linear"), self.n_inputs

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts of the controls in their order: names, roles, axes and shapes.

        Examples
        --------
        >>> import ocdl
        >>> [(part.name, part.role, part.shape) for part in ocdl.Network(2, 10).parts][:2]
        [('K', 'field', (10, 2, 2)), ('b', 'field', (10, 2))]
        """
        return self._layout.parts

    @property
    def n_controls(self) -> int:
        """The length of the vector of controls.

        Examples
        --------
        >>> import ocdl
        >>> ocdl.Network(2, 10).n_controls
        73
        """
        return self._layout.size

    @known_keywords({"seed": "random_state"})
    def init(self, random_state: Any = None, scheme: str = "paper") -> Controls:
        """Return random controls to start a training from.

        Parameters
        ----------
        random_state : None, int, numpy Generator or RandomState
            The seed or the source of the random numbers.
        scheme : {"paper", "scaled"}
            "paper": K and W are standard normal. "scaled": they are divided by the square root of the dimension; the K
            of a feed-forward network are random rotations and reflections instead, so that many layers do not lose the
            data. In both, b and mu are 0 and the steps T/N.

            The field "mlp" starts with normal K and V of standard deviations 1 / sqrt(dim) and 0.1 / sqrt(width), b
            uniform in [-1, 1], A and c 0, the field "polynomial" with C = 0; the scheme concerns W alone.

            With ``nonexpansive=True`` the singular values of K are clipped at their bound.

        Returns
        -------
        Controls

        Raises
        ------
        TypeError, ValueError
            If there is no such scheme, or `random_state` is no source of random numbers.

        Examples
        --------
        >>> import ocdl
        >>> net = ocdl.Network(2, 10)
        >>> u = net.init(random_state=0)
        >>> u.K.shape, u.h.tolist() == [0.1] * 10
        ((10, 2, 2), True)
        >>> (net.init(random_state=0) - u).norm()
        0.0
        """
        scheme = validation.choice(scheme, "scheme", ("paper", "scaled"))
        self._require_memory_for_controls(3)  # with what is drawn and what is scaled
        rng = random_source(random_state)
        drawn = draw_field_parts(
            rng,
            {part.name: part.shape for part in self.parts},
            self._core_network.starts,
            scaled=scheme == "scaled",
            orthogonal=scheme == "scaled" and not self.residual,
        )
        if self.nonexpansive:
            steps = np.full(self.n_layers, self.horizon / self.n_layers)
            drawn["K"] = clip_singular_values(drawn["K"], self._singular_value_bounds(steps), self.dtype)
        scale = 1.0 if scheme == "paper" else 1.0 / math.sqrt(self.dim)
        return self.controls(**drawn, W=scale * rng.standard_normal((self.n_outputs, self.dim)))

    def _singular_value_bounds(self, h: FloatArray) -> FloatArray:
        """Return for each set of controls the largest singular value of K with which these steps expand no distance."""
        return singular_value_bounds(self.tableau, self.activation, self.layer_sets, h)

    def controls(self, **parts: ArrayLike | None) -> Controls:
        """Return controls with copies of these values; by default a part is 0, and the steps are T/N.

        Parameters
        ----------
        **parts : array_like, optional
            The parts of the field, ``K`` and ``b`` for most, ``W`` and ``mu``, of the shapes that `Network.parts`
            lists, and ``h`` of shape (layers,): any finite steps, on a network with ``time_steps="simplex"`` a point of
            the simplex.

        Returns
        -------
        Controls

        Raises
        ------
        TypeError
            If a part is not known, or is no array of real numbers.
        ValueError
            If a shape does not fit, a number is not finite, or steps are not on the simplex.

        Examples
        --------
        >>> import ocdl
        >>> net = ocdl.Network(2, 2, time_steps="free")
        >>> u = net.controls(h=[0.25, 0.75], W=[[1.0, -1.0]])
        >>> u.h.tolist(), bool(u.K.any())
        ([0.25, 0.75], False)
        """
        known = self._layout.slices
        for name in parts:
            if name not in known:
                raise TypeError(f"controls() takes {', '.join(known)}, got {name!r}")
        self._require_memory_for_controls(1)
        u = Controls(self._layout, np.zeros(self._layout.size, self.dtype))
        for part in self.parts:
            value, view = parts.get(part.name), getattr(u, part.name)
            if part.role == "steps":
                view[...] = self.horizon / self.n_layers
                if value is not None and not self.residual:
                    raise ValueError(f"{part.name}: a feed-forward network (residual=False) has no time steps")
            if value is not None:
                view[...] = validation.array_of_shape(value, part.name, part.shape, part.meaning, self.dtype)
        if self.time_steps == "simplex":
            u.h[...] = self._onto_simplex(u.h)
        return u

    def _require_memory_for_controls(self, copies: int) -> None:
        what = f"the controls of {pluralise(self.n_layers, 'layer')} of dimension {self.dim}"
        memory.require_memory(what, {"controls": float(copies) * self.n_controls * self.dtype.itemsize})

    def from_vector(self, v: ArrayLike) -> Controls:
        """Return the controls that a vector holds, ordered as `parts`; the inverse of `Controls.to_vector`.

        Parameters
        ----------
        v : array_like of shape (n_controls,)
            Copied.

        Returns
        -------
        Controls

        Raises
        ------
        TypeError, ValueError
            If `v` is no vector of this length with finite numbers.

        Examples
        --------
        >>> import numpy as np, ocdl
        >>> net = ocdl.Network(2, 10)
        >>> net.from_vector(np.zeros(net.n_controls)).norm()
        0.0
        """
        size = (self._layout.size,)
        return Controls(self._layout, validation.array_of_shape(v, "v", size, "(n_controls,)", self.dtype).copy())

    def _vector(self, u: Controls, name: str = "u") -> FloatArray:
        if not isinstance(u, Controls):
            raise TypeError(
                f"{name} must be Controls, as net.init() and net.controls() return them, got {type(u).__name__}"
            )
        if u._layout is not self._layout and u._layout != self._layout:
            expected = Controls(self._layout, u._vector)
            raise ValueError(f"{name} does not fit the network: it is {u!r}, the network takes {expected!r}")
        vector = validation.plain_array(u._vector, name, self.dtype)  # a pickle may come back as a memory map
        if _core.first_non_finite(vector) >= 0:
            for part, values in u.parts().items():
                validation.real_array(values, f"{name}.{part}", self.dtype)
        return vector

    def _swept_parts(self, u: Controls) -> dict[str, FloatArray]:
        """Return the parts in float64, mapped to those of the field that this one is swept as."""
        vector = self._core_network.field_controls(self._vector(u).astype(np.float64))
        return Controls(self._layout, vector).parts()

    def _sets_of(self, layers: slice) -> slice | list[int]:
        """Return what picks the field's controls of these layers from a part, one entry per layer."""
        return layers if self.control_intervals is None else list(self.layer_sets[layers])

    def __reduce__(self) -> tuple[partial[Self], tuple[()]]:
        return partial(type(self), **self._arguments()), ()

    def __repr__(self) -> str:
        shown = self._arguments() | {"tableau": self.tableau.name or self.tableau, "dtype": str(self.dtype)}
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in shown.items())})"

    def _repr_html_(self) -> str:
        method = self.tableau.name or repr(self.tableau).strip("<>")
        layers = f"{self.n_layers} layers" if self.n_layers > 1 else "1 layer"
        layers += f" of {method}" if self.residual else ", feed-forward"
        intervals = pluralise(self.parts[0].shape[0], "control interval")
        steps = f"{self.time_steps}, horizon {self.horizon:g}" if self.residual else "none"
        horizon = self.horizon if self.residual else None
        picture = layers_picture.draw_layers(self.n_features, self.n_outputs, layers, horizon, self.n_layers)
        rows = [
            ("layers", layers if self.control_intervals is None else f"{layers} in {intervals}"),
            ("state", f"{self.dim} components" + (f", {self.augment} of them extra" if self.augment else "")),
            ("field", self._field_in_words()),
            *([("inputs", f"{self.n_inputs}, {self.input_hold} hold")] if self.n_inputs else []),
            ("steps", steps),
            ("controls", f"{self.n_controls:,} numbers of {self.dtype}"),
        ]
        return picture + markup.definition_table(type(self).__name__, rows)

    def _field_in_words(self) -> str:
        if self.degree is not None:
            return f"{self.field} of degree {self.degree}"
        width = "" if self.width is None else f" of width {self.width}"
        return f"{self.field}{width}, {self.activation}"

    def _arguments(self) -> dict[str, Any]:
        return {argument.name: getattr(self, argument.name) for argument in dataclasses.fields(self) if argument.init}

    def _onto_simplex(self, h: FloatArray) -> FloatArray:
        tolerance = self.horizon * 1e3 * float(np.finfo(self.dtype).eps) * self.n_layers
        with np.errstate(over="ignore"):  # an infinite sum is not the horizon either
            lowest, total = int(np.argmin(h)), float(np.sum(h, dtype=np.float64))
        if h[lowest] < 0:
            raise ValueError(f"h[{lowest}] is {h[lowest]}; on the simplex no step is negative")
        if abs(total - self.horizon) > tolerance:
            raise ValueError(
                f"h sums to {total} but must sum to the horizon {self.horizon}; ocdl.project_simplex moves it there"
            )
        return project_simplex(h, self.horizon)


def float_dtype(dtype: DTypeLike) -> np.dtype[Any]:
    """Return float64 or float32, in the byte order of the machine."""
    try:
        known = np.dtype(dtype)
    except Exception as error:  # NumPy raises several kinds of errors
        raise TypeError(f"dtype must be 'float64' or 'float32', got {validation.format_value(dtype)}") from error
    if known not in (np.dtype(np.float64), np.dtype(np.float32)):
        raise ValueError(f"dtype must be 'float64' or 'float32', got {validation.format_value(dtype)}")
    return known.newbyteorder("=")
