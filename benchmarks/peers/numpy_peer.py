"""NumPy: the adjoint written by hand, feature-major arrays, every buffer allocated once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from contender import Contender
from jobs import Gradient, Job, Problem

from peers.backtracking import backtracking

# Points per pass of a prediction: the block and its products stay in the cache.
PREDICTION_BLOCK = 16384


def gradient(job: Job, problem: Problem, threads: int) -> Callable[[], Gradient]:
    """Forward keeps every stage's argument and slope; backward walks them in reverse."""
    A, weights = job.method
    stages = range(job.method.stages)
    K, b, h, W, mu, X, y = problem
    first = np.ascontiguousarray(X.T)
    columns = b[:, :, None]
    arguments = np.empty((job.N, len(stages), job.d, job.m), job.dtype)
    slopes = np.empty_like(arguments)
    state, scratch, cotangent, costate = (np.empty_like(first) for _ in range(4))
    pulled = np.empty((len(stages), job.d, job.m), job.dtype)
    probability, residual, dz = (np.empty((1, job.m), job.dtype) for _ in range(3))
    dK, db, dh, dW, dmu = (np.empty_like(control) for control in (K, b, h, W, mu))
    dK_stage, db_stage = np.empty_like(K[0]), np.empty_like(b[0])

    def add_combination(target, coefficients, terms):
        for coefficient, term in zip(coefficients, terms, strict=True):
            if coefficient:
                np.multiply(term, coefficient, out=scratch)
                np.add(target, scratch, out=target)

    def forward():
        np.copyto(state, first)
        for j in range(job.N):
            for i in stages:
                argument, slope = arguments[j, i], slopes[j, i]
                np.copyto(argument, state)
                add_combination(argument, [h[j] * a for a in A[i]], slopes[j])
                np.matmul(K[j], argument, out=slope)
                np.add(slope, columns[j], out=slope)
                np.tanh(slope, out=slope)
            add_combination(state, [h[j] * weight for weight in weights], slopes[j])

    def backward():
        for j in reversed(range(job.N)):
            dh[j] = 0
            for i in reversed(stages):
                slope = slopes[j, i]
                np.multiply(costate, weights[i], out=cotangent)
                add_combination(cotangent, [A[later][i] for later in stages[i + 1 :]], pulled[i + 1 :])
                if job.learned_steps:
                    dh[j] += np.vdot(cotangent, slope)
                np.multiply(slope, slope, out=slope)
                np.subtract(h[j], np.multiply(slope, h[j], out=slope), out=slope)
                np.multiply(cotangent, slope, out=cotangent)
                if i == stages[-1]:
                    np.matmul(cotangent, arguments[j, i].T, out=dK[j])
                    np.sum(cotangent, axis=1, out=db[j])
                else:
                    dK[j] += np.matmul(cotangent, arguments[j, i].T, out=dK_stage)
                    db[j] += np.sum(cotangent, axis=1, out=db_stage)
                np.matmul(K[j].T, cotangent, out=pulled[i])
            for i in stages:
                np.add(costate, pulled[i], out=costate)

    def loss_and_costate():
        """Loss |residual|^2 / (2 m) with residual = sigmoid(z) - y; its derivative dz goes to W, mu and the costate."""
        np.matmul(W, state, out=probability)
        np.add(probability, mu[:, None], out=probability)
        np.exp(np.negative(probability, out=probability), out=probability)
        np.reciprocal(np.add(probability, 1, out=probability), out=probability)
        np.subtract(probability, y, out=residual)
        np.subtract(1, probability, out=dz)
        np.multiply(dz, probability, out=dz)
        np.multiply(dz, residual, out=dz)
        np.divide(dz, job.m, out=dz)
        np.matmul(dz, state.T, out=dW)
        np.sum(dz, axis=1, out=dmu)
        np.matmul(W.T, dz, out=costate)
        return 0.5 * np.vdot(residual, residual) / job.m

    def evaluate() -> Gradient:
        forward()
        loss = loss_and_costate()
        backward()
        return Gradient(loss, dK, db, dh if job.learned_steps else None, dW, dmu)

    return evaluate


def prediction(job: Job, problem: Problem, threads: int) -> Callable[[], np.ndarray]:
    K, b, h, W, mu, X, _ = problem
    outputs = np.empty((1, job.m), job.dtype)
    full_state, full_slope = (np.empty((job.d, min(job.m, PREDICTION_BLOCK)), job.dtype) for _ in range(2))

    def evaluate() -> np.ndarray:
        for start in range(0, job.m, PREDICTION_BLOCK):
            block = slice(start, min(job.m, start + PREDICTION_BLOCK))
            width = block.stop - block.start
            state, slope = full_state[:, :width], full_slope[:, :width]
            np.copyto(state, X[block].T)
            for j in range(job.N):
                np.matmul(K[j], state, out=slope)
                slope += b[j][:, None]
                np.tanh(slope, out=slope)
                slope *= h[j]
                state += slope
            np.matmul(W, state, out=outputs[:, block])
        np.add(outputs, mu[:, None], out=outputs)
        return outputs.T

    return evaluate


training = backtracking(gradient)

CONTENDERS = {"numpy": Contender(gradient, prediction, training)}
