"""numba: compiled loops over blocks of samples, forward and backward per block, one share of the blocks per thread."""

from __future__ import annotations

from collections.abc import Callable

import numba
import numpy as np
from contender import Contender
from jobs import Gradient, Job, Problem

from peers.backtracking import backtracking

# A block's trajectory (arguments and slopes) is kept within this many bytes, so that it stays in the cache of a core.
BLOCK_BYTES = 400_000
LARGEST_WIDTH = 64


@numba.njit(fastmath=True, inline="always")
def add_product(target, matrix, columns, width):
    """target += matrix @ columns, the inner loop over samples."""
    d = matrix.shape[0]
    for row in range(d):
        for column in range(d):
            factor = matrix[row, column]
            for sample in range(width):
                target[row, sample] += factor * columns[column, sample]


@numba.njit(fastmath=True, inline="always")
def slope_of(argument, K, b, slope, width):
    d = b.shape[0]
    for row in range(d):
        for sample in range(width):
            slope[row, sample] = b[row]
    add_product(slope, K, argument, width)
    for row in range(d):
        for sample in range(width):
            slope[row, sample] = np.tanh(slope[row, sample])


@numba.njit(fastmath=True, inline="always")
def add_scaled(target, factor, term, width):
    for row in range(target.shape[0]):
        for sample in range(width):
            target[row, sample] += factor * term[row, sample]


@numba.njit(fastmath=True, inline="always")
def forward(state, arguments, slopes, K, b, h, A, weights, width):
    stages = len(weights)
    for j in range(len(h)):
        for i in range(stages):
            arguments[j, i, :, :width] = state[:, :width]
            for earlier in range(i):
                if A[i, earlier] != 0:
                    add_scaled(arguments[j, i], h[j] * A[i, earlier], slopes[j, earlier], width)
            slope_of(arguments[j, i], K[j], b[j], slopes[j, i], width)
        for i in range(stages):
            add_scaled(state, h[j] * weights[i], slopes[j, i], width)


@numba.njit(fastmath=True, inline="always")
def backward(
    costate, arguments, slopes, pulled, cotangent, transposed, h, A, weights, dK, db, dh, learned_steps, width
):
    stages, d = len(weights), costate.shape[0]
    for j in range(len(h) - 1, -1, -1):
        for i in range(stages - 1, -1, -1):
            cotangent[:, :width] = weights[i] * costate[:, :width]
            for later in range(i + 1, stages):
                if A[later, i] != 0:
                    add_scaled(cotangent, A[later, i], pulled[later], width)
            for row in range(d):
                if learned_steps:
                    along_slope = dh[j]
                    for sample in range(width):
                        along_slope += cotangent[row, sample] * slopes[j, i, row, sample]
                    dh[j] = along_slope
                bias = db[j, row]
                for sample in range(width):
                    slope = slopes[j, i, row, sample]
                    cotangent[row, sample] *= h[j] * (1 - slope * slope)
                    bias += cotangent[row, sample]
                db[j, row] = bias
                for column in range(d):
                    total = dK[j, row, column]
                    for sample in range(width):
                        total += cotangent[row, sample] * arguments[j, i, column, sample]
                    dK[j, row, column] = total
            pulled[i, :, :width] = 0
            add_product(pulled[i], transposed[j], cotangent, width)
        for i in range(stages):
            add_scaled(costate, 1.0, pulled[i], width)


@numba.njit(fastmath=True, inline="always")
def loss_of(state, W, mu, labels, costate, dW, dmu, m):
    """Loss of a block; its derivative goes to the costate and the classifier."""
    d, width = state.shape[0], len(labels)
    loss = 0.0
    for sample in range(width):
        z = mu[0]
        for row in range(d):
            z += W[0, row] * state[row, sample]
        probability = 1 / (1 + np.exp(-z))
        residual = probability - labels[sample]
        loss += 0.5 * residual * residual / m
        dz = residual * probability * (1 - probability) / m
        dmu[0] += dz
        for row in range(d):
            dW[row] += dz * state[row, sample]
            costate[row, sample] = dz * W[0, row]
    return loss


@numba.njit(fastmath=True, parallel=True, cache=True)
def sweep(first, labels, K, transposed, b, h, W, mu, A, weights, learned_steps, block, shares):
    """Partial loss and gradients, one row for each share of the blocks."""
    N, d, stages, m = len(h), b.shape[1], len(weights), first.shape[1]
    losses = np.zeros(shares, K.dtype)
    dK, db = np.zeros((shares, N, d, d), K.dtype), np.zeros((shares, N, d), K.dtype)
    dh, dW, dmu = np.zeros((shares, N), K.dtype), np.zeros((shares, d), K.dtype), np.zeros((shares, 1), K.dtype)
    blocks = (m + block - 1) // block
    for share in numba.prange(shares):
        arguments, slopes = np.empty((N, stages, d, block), K.dtype), np.empty((N, stages, d, block), K.dtype)
        state, costate, cotangent = (
            np.empty((d, block), K.dtype),
            np.empty((d, block), K.dtype),
            np.empty((d, block), K.dtype),
        )
        pulled = np.empty((stages, d, block), K.dtype)
        for index in range(share * blocks // shares, (share + 1) * blocks // shares):
            start, end = index * block, min(m, (index + 1) * block)
            width = end - start
            state[:, :width] = first[:, start:end]
            forward(state, arguments, slopes, K, b, h, A, weights, width)
            losses[share] += loss_of(state, W, mu, labels[start:end], costate, dW[share], dmu[share], m)
            backward(
                costate,
                arguments,
                slopes,
                pulled,
                cotangent,
                transposed,
                h,
                A,
                weights,
                dK[share],
                db[share],
                dh[share],
                learned_steps,
                width,
            )
    return losses, dK, db, dh, dW, dmu


def gradient(job: Job, problem: Problem, threads: int) -> Callable[[], Gradient]:
    numba.set_num_threads(threads)
    K, b, h, W, mu, X, y = problem
    first, transposed = np.ascontiguousarray(X.T), np.empty_like(K)
    A, weights = (np.array(part, job.dtype) for part in job.method)
    bytes_per_sample = 2 * job.N * len(weights) * job.d * X.itemsize
    block = max(16, BLOCK_BYTES // bytes_per_sample // 16 * 16)

    def evaluate() -> Gradient:
        np.copyto(transposed, K.transpose(0, 2, 1))
        parts = sweep(first, y, K, transposed, b, h, W, mu, A, weights, job.learned_steps, block, threads)
        loss, dK, db, dh, dW, dmu = (part.sum(axis=0) for part in parts)
        return Gradient(loss, dK, db, dh if job.learned_steps else None, dW[None], dmu)

    return evaluate


def unsupported(job: Job) -> str:
    return "" if job.d <= LARGEST_WIDTH else "hand-written products are no match for a BLAS at this width"


CONTENDERS = {"numba": Contender(gradient, training=backtracking(gradient), unsupported=unsupported)}
