"""The methods of the estimators for ONNX."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from sklearn.utils.validation import check_is_fitted


class OnnxMethods:
    """Write a fitted estimator in ONNX, alone or in a pipeline."""

    def to_onnx(self, path: str | os.PathLike[str], *, opset: int | None = None) -> None:
        """Write the fitted estimator as a file in ONNX, which programs without Python can run.

        The input is "X", (samples, features) in float64. A classifier has the outputs "label", (samples,), and
        "probabilities", (samples, classes); a regressor has "variable", (samples, targets). A pipeline that ends with
        an estimator is converted by ``skl2onnx.to_onnx``. Both need ``pip install 'ocdl[onnx]'``.

        Parameters
        ----------
        path : str or path-like
        opset : int, optional
            As for `ocdl.export_onnx`.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If `fit` has not been called.
        ImportError
            If onnx is not installed.
        ValueError
            If the tableau is implicit, or `opset` too old.

        Examples
        --------
        >>> import ocdl
        >>> X, y = ocdl.datasets.make_donut1d(100, random_state=0)
        >>> model = ocdl.ODEClassifier(random_state=0).fit(X, y)
        >>> model.to_onnx("model.onnx")  # doctest: +SKIP
        """
        check_is_fitted(self)
        from ocdl.interop.onnx_estimator import write_estimator

        write_estimator(path, self, opset)

    def onnx_shape_calculator(self) -> Callable[[Any], None]:
        """Return the shape calculator for skl2onnx, which calls this method.

        Returns
        -------
        callable

        Examples
        --------
        >>> import ocdl
        >>> callable(ocdl.ODEClassifier().onnx_shape_calculator())  # doctest: +SKIP
        True
        """
        from ocdl.interop.skl2onnx_converter import describe_outputs

        return describe_outputs

    def onnx_converter(self) -> Callable[[Any, Any, Any], None]:
        """Return the converter for skl2onnx, which calls this method.

        Returns
        -------
        callable

        Examples
        --------
        >>> import ocdl
        >>> callable(ocdl.ODEClassifier().onnx_converter())  # doctest: +SKIP
        True
        """
        from ocdl.interop.skl2onnx_converter import add_nodes

        return add_nodes
