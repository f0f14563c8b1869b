"""What a network is before it computes: its sizes, its method, its field, and the controls that fit them."""

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
from ocdl.base.names import counted
from ocdl.base.randomness import random_source
from ocdl.base.validation import FloatArray
from ocdl.model import layers_picture
from ocdl.model.controls import ControlLayout, Controls, Part
from ocdl.model.fields import FIELDS
from ocdl.model.projection import project_simplex
from ocdl.model.tableau import Tableau

DEFAULT_TABLEAU = "euler"
TIME_STEPS = ("fixed", "free", "simplex")
PRESETS: dict[str, dict[str, Any]] = {
    "net": {"residual": False},
    "resnet": {"time_steps": "fixed"},
    "odenet": {"time_steps": "free"},
    "odenet+simplex": {"time_steps": "simplex"},
}
PRESET_ALIASES = {"ResNet/Euler": "resnet", "odenet_simplex": "odenet+simplex", "feed_forward": "net"}


@dataclasses.dataclass(frozen=True)
class Architecture:
    """The arguments of `Network`, checked and converted, and what follows from them.

    A value: immutable, compared and hashed by its arguments, written and pickled as the call that makes it.
    """

    n_features: int
    n_layers: int
    n_outputs: int
    tableau: Tableau
    residual: bool
    field: str
    activation: str
    time_steps: str
    horizon: float
    augment: int
    stage_controls: bool
    dtype: np.dtype[Any]
    _core_network: _core.Network = dataclasses.field(init=False, repr=False, compare=False)
    _layout: ControlLayout = dataclasses.field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.residual and self.field != "dense":
            raise ValueError(f"field={self.field!r} needs residual=True: a feed-forward network has no flow")
        if not self.residual and self.tableau != Tableau.named(DEFAULT_TABLEAU):
            raise ValueError(
                f"tableau={self.tableau.name or self.tableau!r} needs residual=True: a feed-forward network has no "
                "Runge-Kutta steps; leave it out"
            )
        if FIELDS[self.field].needs_even_dim and self.dim % 2:
            raise ValueError(
                f"field={self.field!r} needs a state of even dimension, positions and momenta, got n_features + "
                f"augment = {self.dim}; one more augmented component makes it even"
            )
        if not self.residual and self.time_steps != "fixed":
            raise ValueError(
                f"time_steps={self.time_steps!r} needs residual=True: a feed-forward network has no steps to learn"
            )
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
        )
        parts = tuple(Part(name, role, tuple(axes), tuple(shape)) for name, role, axes, shape in core.parts)
        object.__setattr__(self, "_core_network", core)
        object.__setattr__(self, "_layout", ControlLayout(parts, self.dtype))

    @classmethod
    def preset(cls, architecture: str, n_features: int, n_layers: int, **overrides: Any) -> Self:
        """Return one of the paper's four architectures.

        Parameters
        ----------
        architecture : {"net", "resnet", "odenet", "odenet+simplex"}
            Feed-forward; fixed steps; free steps; steps on the simplex. The paper's spelling, "ResNet", is taken too.
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
        scale = 1.0 if scheme == "paper" else 1.0 / math.sqrt(self.dim)
        shapes = {part.name: part.shape for part in self.parts}
        K = scale * rng.standard_normal(shapes["K"])
        if scheme == "scaled" and not self.residual:
            K, triangular = np.linalg.qr(K)
            K *= np.sign(np.diagonal(triangular, axis1=-2, axis2=-1))[..., None, :]
        return self.controls(K=K, W=scale * rng.standard_normal(shapes["W"]))

    def controls(self, **parts: ArrayLike | None) -> Controls:
        """Return controls with these values, copied; what is missing is 0, and the steps are T/N.

        Parameters
        ----------
        **parts : array_like, optional
            ``K``, ``b``, ``W`` and ``mu``, of the shapes that `Controls` lists, and ``h`` of shape (layers,): any
            finite steps, on a network with ``time_steps="simplex"`` a point of the simplex.

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
        known = self._layout.places
        for name in parts:
            if name not in known:
                raise TypeError(f"controls() takes {', '.join(known)}, got {name!r}")
        self._require_memory_for_controls(1)
        u = Controls(self._layout, np.zeros(self._layout.size, self.dtype))
        for part in self.parts:
            value, own = parts.get(part.name), getattr(u, part.name)
            if part.role == "steps":
                own[...] = self.horizon / self.n_layers
                if value is not None and not self.residual:
                    raise ValueError(f"{part.name}: a feed-forward network (residual=False) has no time steps")
            if value is not None:
                own[...] = validation.shaped(value, part.name, part.shape, part.meaning, self.dtype)
        if self.time_steps == "simplex":
            u.h[...] = self._onto_simplex(u.h)
        return u

    def _require_memory_for_controls(self, copies: int) -> None:
        what = f"the controls of {counted(self.n_layers, 'layer')} of dimension {self.dim}"
        memory.require(what, {"controls": float(copies) * self.n_controls * self.dtype.itemsize})

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
        return Controls(self._layout, validation.shaped(v, "v", size, "(n_controls,)", self.dtype).copy())

    def _vector(self, u: Controls, name: str = "u") -> FloatArray:
        if not isinstance(u, Controls):
            raise TypeError(
                f"{name} must be Controls, as net.init() and net.controls() make them, got {type(u).__name__}"
            )
        if u._layout is not self._layout and u._layout != self._layout:
            own = Controls(self._layout, u._vector)
            raise ValueError(f"{name} does not fit the network: it is {u!r}, the network takes {own!r}")
        vector = validation.plain_array(u._vector, name, self.dtype)  # a pickle may come back as a memory map
        if _core.first_non_finite(vector) >= 0:
            for part, values in u.parts().items():
                validation.real_array(values, f"{name}.{part}", self.dtype)
        return vector

    def _swept_parts(self, u: Controls) -> dict[str, FloatArray]:
        """Return the parts in float64, mapped to those of the field that this one is swept as."""
        vector = self._core_network.field_controls(self._vector(u).astype(np.float64))
        return Controls(self._layout, vector).parts()

    def __reduce__(self) -> tuple[partial[Self], tuple[()]]:
        return partial(type(self), **self._arguments()), ()

    def __repr__(self) -> str:
        shown = self._arguments() | {"tableau": self.tableau.name or self.tableau, "dtype": str(self.dtype)}
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in shown.items())})"

    def _repr_html_(self) -> str:
        method = self.tableau.name or repr(self.tableau).strip("<>")
        layers = f"{self.n_layers} layers" if self.n_layers > 1 else "1 layer"
        layers += f" of {method}" if self.residual else ", feed-forward"
        steps = f"{self.time_steps}, horizon {self.horizon:g}" if self.residual else "none"
        horizon = self.horizon if self.residual else None
        picture = layers_picture.drawn(self.n_features, self.n_outputs, layers, horizon, self.n_layers)
        rows = [
            ("layers", layers),
            ("state", f"{self.dim} components" + (f", {self.augment} of them extra" if self.augment else "")),
            ("field", f"{self.field}, {self.activation}"),
            ("steps", steps),
            ("controls", f"{self.n_controls:,} numbers of {self.dtype}"),
        ]
        return picture + markup.facts(type(self).__name__, rows)

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


def method_of(tableau: str | Tableau) -> Tableau:
    """Return the method of this name, or the method itself."""
    if isinstance(tableau, str):
        tableau = Tableau.named(tableau)
    if not isinstance(tableau, Tableau):
        raise TypeError(f"tableau must be a name or a Tableau, got {type(tableau).__name__}")
    return tableau


def float_dtype(dtype: DTypeLike) -> np.dtype[Any]:
    """Return float64 or float32, in the byte order of the machine."""
    try:
        known = np.dtype(dtype)
    except Exception as error:  # NumPy has many ways to say that it is none
        raise TypeError(f"dtype must be 'float64' or 'float32', got {validation.written(dtype)}") from error
    if known not in (np.dtype(np.float64), np.dtype(np.float32)):
        raise ValueError(f"dtype must be 'float64' or 'float32', got {validation.written(dtype)}")
    return known.newbyteorder("=")
