"""Files in ONNX: onnxruntime computes what ocdl does, of networks, estimators, pipelines and models for tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx_files import TOLERANCE, checked, error, onnx, run
from problems import (
    ACTIVATIONS,
    EXPLICIT,
    FIELDS,
    IMPLICIT,
    Problem,
    explicit_tableaux,
    field_options,
    problems,
    random_problem,
)

import ocdl
from ocdl import Network
from ocdl.model.losses import LOSSES

pytestmark = pytest.mark.extras

OUTPUTS = ("logits", "probabilities", "states")


# ---- networks ----


@pytest.mark.parametrize("share", range(4))
def test_random_networks(share: int, tmp_path: Path) -> None:
    """Two hundred: random tableaux, feed-forward or not, stage controls, augmentation, all sigma and f."""
    path = tmp_path / "net.onnx"
    seen = []

    @settings(max_examples=50, database=None, suppress_health_check=list(HealthCheck), deadline=None)
    @given(problems(tableau=explicit_tableaux(), max_layers=8), st.sampled_from(list(TOLERANCE)))
    def compare(p: Problem, dtype: str) -> None:
        net = type(p.net)(**(p.net._arguments() | {"dtype": dtype}))
        u, X = net.from_vector(p.u.to_vector()), p.X.astype(dtype)
        ocdl.export_onnx(path, net, u)
        checked(path)
        (z,) = run(path, X)
        expected = net.predict(u, X)
        assert np.abs(z - expected).max() <= TOLERANCE[dtype] * max(1.0, float(np.abs(expected).max()))
        seen.append(net)

    compare()
    assert len(seen) >= 50


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("tableau", EXPLICIT)
def test_every_tableau_field_and_activation(tableau: str, dtype: str, tmp_path: Path) -> None:
    for number, (field, activation) in enumerate((f, a) for f in FIELDS for a in ACTIVATIONS):
        options: dict[str, Any] = {"n_outputs": 1 + number % 3, "augment": 2 * (number % 2), "time_steps": "free"}
        net = Network(4, 3, tableau=tableau, **field_options(field), activation=activation, dtype=dtype, **options)
        p = random_problem(net, 7, seed=number)
        trajectory = net.forward(p.u, p.X)
        for outputs, expected in (("logits", trajectory.outputs), ("states", trajectory.states)):
            ocdl.export_onnx(tmp_path / "net.onnx", net, p.u, outputs=outputs)
            checked(tmp_path / "net.onnx")
            assert error(run(tmp_path / "net.onnx", p.X)[0], expected) <= TOLERANCE[dtype]


def test_all_registered_components_can_be_exported() -> None:
    from ocdl.interop import onnx_network
    from ocdl.model import activations, fields

    assert onnx_network.ACTIVATION_NODES.keys() == activations.ACTIVATIONS.keys()
    assert onnx_network.FIELD_NODES.keys() == {field.swept_as for field in fields.FIELDS.values()}
    assert onnx_network.MEAN_NODES.keys() == LOSSES.keys()


@pytest.mark.parametrize("n_outputs", [1, 2, 5])
def test_probabilities(n_outputs: int, tmp_path: Path) -> None:
    p = random_problem(Network(2, 4, n_outputs=n_outputs), samples=50)
    u = 20.0 * p.u  # of which some are tiny
    ocdl.export_onnx(tmp_path / "net.onnx", p.net, u, outputs="probabilities")
    checked(tmp_path / "net.onnx")
    (actual,) = run(tmp_path / "net.onnx", p.X)
    z = p.net.predict(u, p.X)
    logits = np.column_stack([np.zeros_like(z), z]) if n_outputs == 1 else z
    expected = np.exp(logits - np.logaddexp.reduce(logits, axis=1, keepdims=True))
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-13)
    assert actual.shape == (50, max(2, n_outputs))


def test_the_number_of_samples_is_free(tmp_path: Path) -> None:
    p = random_problem(Network(3, 5, tableau="kutta4", n_outputs=2), samples=100)
    for outputs in OUTPUTS:
        ocdl.export_onnx(tmp_path / "net.onnx", p.net, p.u, outputs=outputs)
        model = checked(tmp_path / "net.onnx")
        (given_input,), (output,) = model.graph.input, model.graph.output
        assert (given_input.name, output.name) == ("X", outputs)
        assert given_input.type.tensor_type.shape.dim[0].dim_param == "samples"
        (whole,) = run(tmp_path / "net.onnx", p.X)
        for rows in (1, 2, 37):
            (part,) = run(tmp_path / "net.onnx", p.X[:rows])
            np.testing.assert_allclose(part, whole[..., :rows, :], rtol=0, atol=1e-14)


def test_layers_without_a_step_are_left_out(tmp_path: Path) -> None:
    net = Network.preset("odenet+simplex", 2, 20, tableau="kutta4")
    u = net.init(random_state=0)
    u.h[...] = ocdl.project_simplex(np.arange(20.0) % 7 == 0)
    small, v = net.prune(u)
    assert small.n_layers == 3
    counts = {}
    for name, which, controls in (("whole", net, u), ("small", small, v)):
        ocdl.export_onnx(tmp_path / name, which, controls)
        counts[name] = len(checked(tmp_path / name).graph.node)
        X = np.random.default_rng(0).normal(size=(9, 2))
        assert error(run(tmp_path / name, X)[0], net.predict(u, X)) <= 1e-13
    assert counts["whole"] == counts["small"] < 100
    ocdl.export_onnx(tmp_path / "states", net, u, outputs="states")
    assert error(run(tmp_path / "states", X)[0], net.forward(u, X).states) <= 1e-13


@pytest.mark.parametrize("opset", [13, 14, 15, 17, 18, 20, 21])
def test_every_supported_opset(opset: int, tmp_path: Path) -> None:
    p = random_problem(Network(2, 3, n_outputs=3, augment=2, field="hamiltonian", activation="softplus"), samples=5)
    for outputs in OUTPUTS:
        ocdl.export_onnx(tmp_path / "net.onnx", p.net, p.u, outputs=outputs, opset=opset)
        model = checked(tmp_path / "net.onnx")
        assert model.opset_import[0].version == opset
        run(tmp_path / "net.onnx", p.X)


def test_a_deep_network(tmp_path: Path) -> None:
    p = random_problem(Network(2, 500, tableau="kutta4"), samples=5)
    ocdl.export_onnx(tmp_path / "net.onnx", p.net, p.u)
    assert error(run(tmp_path / "net.onnx", p.X)[0], p.net.predict(p.u, p.X)) <= 1e-13


@pytest.mark.parametrize("tableau", IMPLICIT)
def test_implicit_methods_are_refused(tableau: str, tmp_path: Path) -> None:
    net = Network(2, 3, tableau=tableau)
    with pytest.raises(
        ValueError, match=f"ONNX takes networks with an explicit tableau.*tableau='{tableau}', whose st"
    ):
        ocdl.export_onnx(tmp_path / "net.onnx", net, net.init())
    assert not (tmp_path / "net.onnx").exists()


def test_errors_name_wrong_arguments(tmp_path: Path) -> None:
    net, path = Network(2, 3), tmp_path / "net.onnx"
    u = net.init()
    with pytest.raises(TypeError, match="net must be a Network, got str"):
        ocdl.export_onnx(path, "net", u)
    with pytest.raises(ValueError, match="u does not fit the network"):
        ocdl.export_onnx(path, net, Network(3, 3).init())
    with pytest.raises(ValueError, match="outputs must be one of 'logits', 'probabilities', 'states', got 'labels'"):
        ocdl.export_onnx(path, net, u, outputs="labels")
    with pytest.raises(ValueError, match="opset must be at least 13, got 9"):
        ocdl.export_onnx(path, net, u, opset=9)
    with pytest.raises(ValueError, match=r"opset must be at most \d+, the newest of the installed onnx, got 999"):
        ocdl.export_onnx(path, net, u, opset=999)
    with pytest.raises(FileNotFoundError):
        ocdl.export_onnx(tmp_path / "absent" / "net.onnx", net, u)


def test_a_network_that_is_too_large_for_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ocdl.interop.onnx_graph.MAX_FILE_SIZE", 100)
    net = Network(2, 3)
    with pytest.raises(ValueError, match="a file in ONNX holds at most 100 bytes, and this network needs more"):
        ocdl.export_onnx(tmp_path / "net.onnx", net, net.init())


def test_too_large_networks_are_refused_before_copying(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copied, copy = [], onnx.numpy_helper.from_array

    def counted(array: np.ndarray, name: str) -> Any:
        copied.append(array.nbytes)
        return copy(array, name)

    monkeypatch.setattr("ocdl.interop.onnx_graph.MAX_FILE_SIZE", 100_000)
    monkeypatch.setattr(onnx.numpy_helper, "from_array", counted)
    net = Network(40, 400)
    with pytest.raises(ValueError, match="holds at most 100000 bytes"):
        ocdl.export_onnx(tmp_path / "net.onnx", net, net.init(0))
    assert 0 < sum(copied) <= 100_000
    assert not (tmp_path / "net.onnx").exists()


def test_shared_constants_are_counted_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ocdl.interop.onnx_graph.MAX_FILE_SIZE", 100_000)
    net = Network(40, 60)
    ocdl.export_onnx(tmp_path / "net.onnx", net, net.controls(K=np.full((60, 40, 40), 0.01)))
    assert (tmp_path / "net.onnx").stat().st_size < 100_000


@pytest.mark.slow
def test_twenty_thousand_layers(tmp_path: Path) -> None:
    net = Network(2, 20_000)
    ocdl.export_onnx(tmp_path / "net.onnx", net, net.init(0))
    graph = onnx.load(tmp_path / "net.onnx").graph
    assert sum(node.op_type == "Tanh" for node in graph.node) == 20_000
    assert len({node.name for node in graph.node}) == len(graph.node)
