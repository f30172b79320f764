"""What rows will yield, from what is known of them: least squares that go on and forget."""

from __future__ import annotations

from operator import mul
from typing import Any

import numpy as np

from sparkshed.engine.arrays import AnyArray, Floats

#: How much of what was known counts after the next look.
_KEPT = 0.99
#: The weight of what is believed at first, as a share of the evidence.
_BELIEF = 0.005
_SWEEPS = 2


class Foretelling:
    """Weights, none of them negative, with which features foretell what a row yields.

    Attributes:
        weights: One for each feature.
    """

    def __init__(self, believed: Floats) -> None:
        """Start with what is believed without evidence."""
        self._believed = believed
        self.weights: Floats = believed.copy()
        self._products: Floats = np.zeros((len(believed), len(believed)))
        self._yields: Floats = np.zeros(len(believed))

    def learn(self, features: AnyArray, lengths: Floats, yields: Floats) -> None:
        """Rows with such features, one in each column, lived so long and yielded so much."""
        exact = features.astype(np.float64, copy=False)
        self._products = _KEPT * self._products + (exact * lengths) @ exact.T
        self._yields = _KEPT * self._yields + exact @ yields
        self._solve()

    def _solve(self) -> None:
        """Coordinate by coordinate, from the weights as they were."""
        belief = _BELIEF * self._products.diagonal() + 1e-9
        products = (self._products + np.diag(belief)).tolist()
        yields = (self._yields + belief * self._believed).tolist()
        # So few numbers are quicker as they are than as arrays.
        weights = self.weights.tolist()
        for _ in range(_SWEEPS):
            for own, row in enumerate(products):
                gap = yields[own] - sum(map(mul, row, weights))
                weights[own] = max(0.0, weights[own] + gap / row[own])
        self.weights = np.array(weights)

    def notes(self) -> dict[str, Any]:
        """What must be written down."""
        return {"weights": self.weights, "products": self._products, "yields": self._yields}

    def recall(self, notes: dict[str, Any]) -> None:
        """Go on from there."""
        self.weights = notes["weights"].copy()
        self._products, self._yields = notes["products"], notes["yields"]
