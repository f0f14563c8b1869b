"""
Is the gradient right?
======================

Two tests need no reference solution: Taylor's theorem, and a product that
must be the same after every layer. First do them by hand, then with
``net.certify``.
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import ocdl

X, y = ocdl.datasets.make_spiral(300, random_state=0)
net = ocdl.Network(
    n_features=2, n_layers=15, tableau="kutta4", time_steps="free"
)
u = net.init(random_state=0)

# %%
# **Taylor's theorem.** With the right gradient g, the remainder
# J(u + e w) - J(u) - e <g, w> is O(e^2) for every direction w: a tenth of
# the step gives a hundredth of the remainder. With a wrong gradient it is
# only O(e).
J, g = net.value_and_grad(u, X, y)
rng = np.random.default_rng(0)
w = net.from_vector(rng.standard_normal(net.n_controls))
for e in (1e-1, 1e-2, 1e-3, 1e-4):
    remainder = net.value(u + e * w, X, y) - J - e * g.dot(w)
    print(f"e = {e:.0e}: remainder {abs(remainder):.2e}")

# %%
# **A product that must not change.** The variation v of the states solves
# the linearised equation, and the costate p solves its adjoint. So
# <p[j], v[j]> is the same after every layer: if the method of p is the
# symplectic partner of the method of v, up to roundoff.
p = net.adjoint(u, X, y)
v = net.tangent(u, X, dX=rng.standard_normal(X.shape))
products = np.sum(p * v, axis=(1, 2))
print(f"<p, v> = {products[0]:.6f} at the start")
print(f"its change over the layers: {np.ptp(products):.1e}")

# %%
# One call does all of this, and more.
report = net.certify(u, X, y)
print(report)
assert report.passed

# %%
figure = plt.figure(figsize=(10, 6.6), layout="constrained")
ocdl.plot.certificate(report, fig=figure)
if len(sys.argv) > 1:  # a folder for the picture
    figure.savefig(
        Path(sys.argv[1]) / "gradient_certificate.png", dpi=110
    )
else:
    plt.show()
