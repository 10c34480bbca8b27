import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solver.rounding import down, up


@pytest.mark.parametrize(
    ("value", "below", "above"),
    [
        (3.7951283, 3.795, 3.796),
        (0.46112, 0.4611, 0.4612),
        (43.2, 43.2, 43.2),
        (60.0, 60.0, 60.0),
        (99995.0, 99990, 100000),
    ],
)
def test_four_digits_on_the_safe_side(value: float, below: float, above: float) -> None:
    assert (down(value), up(value)) == (below, above)


@given(st.floats(1e-12, 1e12))
def test_never_on_the_wrong_side(value: float) -> None:
    assert down(value) <= value * (1 + 1e-9)
    assert up(value) >= value * (1 - 1e-9)
    assert math.isclose(down(value), value, rel_tol=1.1e-3)
    assert math.isclose(up(value), value, rel_tol=1.1e-3)
