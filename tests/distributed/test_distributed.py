"""A training over several ranks has the bits of one process, and whatever ends on one rank ends on all."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import pytest
from checkpoints import resume_copy
from rank_programs import (
    CUSTOM_LOSS_OPTIMISERS,
    DISTRIBUTIONS,
    ITERATIONS,
    OPTIMISERS,
    digest_of,
    from_a_source,
    problem,
    train,
    trained,
    with_custom_loss,
    with_inputs,
    with_observations,
)
from ranks import launch, needs_mpi

from ocdl import GradientDescent

pytestmark = [pytest.mark.extras, needs_mpi]


@functools.cache
def alone(optimiser: str, max_iter: int = ITERATIONS, **given: Any) -> dict[str, str]:
    """The digests of a training in one process, without MPI."""
    actual: dict[str, str] = trained(problem(**given), OPTIMISERS[optimiser], validated=True, max_iter=max_iter)
    return actual


# ---- bits ----


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, pytest.param(8, marks=pytest.mark.slow)])
def test_the_number_of_ranks_changes_no_bit(ranks: int) -> None:
    """Loss, gradient, controls and scores after 50 iterations, for all distributions of the shards and 1, 2 threads."""
    message = launch(
        ranks, "bits", optimisers=list(OPTIMISERS), distributions=list(DISTRIBUTIONS), threads=[1, 2]
    ).message
    assert len(message) == len(OPTIMISERS) * len(DISTRIBUTIONS) * 2
    for name, actual in message.items():
        assert actual == alone(name.split(",")[0]), name


@pytest.mark.parametrize("optimiser", ["lbfgs", "adam on batches"])
def test_single_precision_and_long_vectors_have_their_bits_too(optimiser: str) -> None:
    """With 40 features the sum is exchanged by segments."""
    given: dict[str, Any] = {"dtype": "float32", "d": 40, "max_iter": 5}
    message = launch(3, "bits", optimisers=[optimiser], distributions=["equal", "uneven"], threads=[1], **given).message
    assert len(message) == 2
    for actual in message.values():
        assert actual == alone(optimiser, **given)


def test_long_vectors_in_double_precision() -> None:
    given: dict[str, Any] = {"d": 30, "max_iter": 3}
    message = launch(2, "bits", optimisers=["newton"], distributions=["uneven"], threads=[1], **given).message
    assert [*message.values()] == [alone("newton", **given)]


@pytest.mark.parametrize("optimiser", CUSTOM_LOSS_OPTIMISERS)
def test_a_custom_loss_adds_up(optimiser: str) -> None:
    for distribution in ("equal", "uneven"):
        message = launch(3, "with_custom_loss", optimiser=optimiser, distribution=distribution).message
        assert message == with_custom_loss(None, optimiser, distribution)


@pytest.mark.parametrize("optimiser", OPTIMISERS)
def test_each_rank_reads_its_shards_of_a_source(optimiser: str) -> None:
    assert launch(3, "from_a_source", optimiser=optimiser).message == from_a_source(None, optimiser)


def test_a_source_with_a_custom_loss() -> None:
    message = launch(2, "from_a_source", optimiser="lbfgs", custom_loss=True).message
    assert message == from_a_source(None, "lbfgs", custom_loss=True)


@pytest.mark.parametrize(
    ("optimiser", "loss", "own"),
    [
        ("backtracking", "huber", True),
        ("adam on batches", "squared_error", True),
        ("adam on batches", "custom", True),
        ("lbfgs", "custom", False),
        ("newton", "squared_error", False),
    ],
)
def test_observations_have_the_bits_of_one_process(optimiser: str, loss: str, own: bool) -> None:
    settings: dict[str, Any] = {"optimiser": optimiser, "loss": loss, "own": own}
    expected = with_observations(None, distribution="equal", **settings)
    for distribution in DISTRIBUTIONS:
        message = launch(3, "with_observations", distribution=distribution, **settings).message
        assert message["state"] == expected["state"]
        assert loss == "custom" or message == expected  # over ranks a custom loss has no score


@pytest.mark.parametrize("optimiser", ["lbfgs", "adam on batches"])
def test_inputs_have_the_bits_of_one_process(optimiser: str) -> None:
    expected = with_inputs(None, optimiser, "equal")
    for distribution in DISTRIBUTIONS:
        assert launch(3, "with_inputs", optimiser=optimiser, distribution=distribution).message == expected
    assert launch(2, "with_inputs", optimiser=optimiser, distribution="source").message == expected


def test_shared_times_are_the_same_on_all_ranks() -> None:
    settings = {"optimiser": "lbfgs", "loss": "huber", "own": False, "distribution": "equal"}
    done = launch(2, "with_observations", scaled=1, **settings)
    assert done.code != 0
    assert "the ranks have different arguments: the observations of y is" in done.err


# ---- faults ----


FAULTS = {
    "bad row": "rank 1 has failed: ValueError: X[5, 1] is nan",
    "version": "rank 1 runs ocdl 0.0.9 and rank 0 ocdl",
    "core": "rank 1 computes with the core 'sse' and rank 0 with",
    "optimiser": "the ranks have different arguments: optimiser is",
    "controls": "the ranks have different arguments: net is",
    "validation": 'the ranks have different arguments: validation is "given" on rank 1 and "None" on rank 0',
    "iterations": "the ranks have different arguments: max_iter is 5 on rank 1 and 1000000 on rank 0",
}


@pytest.mark.parametrize("how", FAULTS)
def test_an_error_on_one_rank_ends_all_ranks_and_is_named(how: str) -> None:
    done = launch(3, "failing", how=how, rank=1, most_seconds=60)
    assert done.code != 0
    lines = [line for line in done.err.splitlines() if line.startswith("rank ")]
    assert len(lines) == 3, done.err
    assert FAULTS[how] in lines[0] + lines[1] + lines[2]
    assert [sum(line.startswith(f"rank {rank}:") for line in lines) for rank in range(3)] == [1, 1, 1]


@pytest.mark.parametrize("rank", [0, 1])
def test_an_error_in_the_callback_of_any_rank_ends_all(rank: int) -> None:
    done = launch(2, "failing", how="callback", rank=rank, most_seconds=60)
    assert f"rank {rank}: KeyError: 'not today'" in done.err
    assert f"rank {1 - rank}: RankError: rank {rank} has failed: KeyError: 'not today'" in done.err


@pytest.mark.parametrize("rank", [0, 1])
def test_an_interrupt_on_one_rank_is_one_on_all(rank: int, tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    done = launch(2, "failing", how="interrupted", rank=rank, checkpoint=str(path), most_seconds=60)
    assert f"rank {1 - rank}: KeyboardInterrupt: rank {rank} was interrupted" in done.err
    assert f"rank {rank}: KeyboardInterrupt" in done.err
    assert launch(1, "resumed", checkpoint=str(path), max_iter=0).message["iterations"] > 0


@pytest.mark.parametrize("rank", [0, 1])
def test_a_callback_that_returns_true_on_any_rank_ends_all(rank: int) -> None:
    message = launch(2, "failing", how="ended", rank=rank, most_seconds=60).message
    assert message["status"] == "INTERRUPTED"


@pytest.mark.parametrize("how", ["absent", "hangs"])
def test_a_missing_rank_is_named(how: str) -> None:
    done = launch(3, "failing", how=how, rank=1, timeout=8.0, most_seconds=60)
    assert done.code != 0
    assert "TimeoutError: rank 1 did not join within 8 s" in done.err
    assert done.seconds < 30


def test_a_full_disk_ends_all_ranks_and_keeps_the_last_checkpoint(tmp_path: Path) -> None:
    """The first rank writes; the others do not wait for it, and learn why."""
    path = tmp_path / "checkpoint"
    path.write_text("the old one")
    done = launch(3, "failing", how="full disk", rank=0, checkpoint=str(path), most_seconds=60)
    assert done.code != 0
    reason = f"OSError: [Errno 27] File too large: {str(path)!r}"
    assert f"rank 0: {reason}" in done.err
    assert [f"rank {rank}: RankError: rank 0 has failed: {reason}" in done.err for rank in (1, 2)] == [True, True]
    assert path.read_text() == "the old one"
    assert list(tmp_path.iterdir()) == [path]


def test_a_killed_rank_ends_the_job_and_the_last_checkpoint_resumes(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    done = launch(3, "failing", how="killed", rank=1, checkpoint=str(path), most_seconds=60)
    assert done.code != 0
    assert done.seconds < 1.5 + 10
    reached = launch(1, "resumed", checkpoint=str(path), max_iter=0).message["iterations"]
    assert reached > 0
    p, iterations = problem(weighted=False), reached + 5
    expected = train(p, GradientDescent(1e-3), max_iter=iterations)
    digest = digest_of(expected.controls.to_vector(), expected.history.loss)
    for ranks in (1, 2, 4):
        message = launch(ranks, "resumed", checkpoint=str(path), max_iter=iterations).message
        assert message == {"digest": digest, "iterations": iterations}
    plain = train(p, GradientDescent(1e-3), max_iter=iterations, checkpoint=resume_copy(path))
    assert digest_of(plain.controls.to_vector(), plain.history.loss) == digest
