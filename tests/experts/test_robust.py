"""One placement for several scenarios."""

import numpy as np
import pytest

from models.errors import BadInput
from models.experts.layout import TOKENS, Layout
from models.experts.loads import loads
from solver.experts.place import place
from solver.experts.result import scenario
from solver.experts.robust import relative_times, scales
from solver.experts.solve import Options, solve
from tests.experts.synthetic import drifted, skewed

FIRST = skewed(6, 64)
ALL = loads({"a": FIRST, "b": drifted(FIRST, 1), "c": drifted(FIRST, 2) * 30.0})
LAYOUT = Layout((10,) * 8)


def test_good_for_all_where_one_placement_is_good_for_one() -> None:
    result = solve(ALL, LAYOUT)
    alone, _ = place(FIRST, LAYOUT)
    drift = scenario("b", alone, ALL.tokens[1], TOKENS)
    assert drift.balancedness < 0.93
    assert min(one.balancedness for one in result.scenarios) > 0.97
    assert result.gap < 0.03


def test_the_bound_is_below_the_value_and_above_nothing_known() -> None:
    result = solve(ALL, LAYOUT)
    scale = scales(ALL, LAYOUT, TOKENS)
    for k in range(3):  # the best placement of each scenario alone is a placement for all
        other, _ = place(ALL.tokens[k], LAYOUT)
        value = float(ALL.weights @ relative_times(other.slots, ALL, TOKENS, scale))
        assert result.bound <= result.value <= value


def test_weights_and_the_worst() -> None:
    heavy = solve(loads({"a": FIRST, "b": drifted(FIRST, 1, 1.5)}, [20.0, 1.0]), Layout((8,) * 8))
    light = solve(loads({"a": FIRST, "b": drifted(FIRST, 1, 1.5)}, [1.0, 20.0]), Layout((8,) * 8))
    assert heavy.scenarios[0].balancedness > light.scenarios[0].balancedness
    pair = loads({"a": FIRST, "b": drifted(FIRST, 1, 1.5)})
    plain, worst = (solve(pair, Layout((8,) * 8), Options(worst=flag)) for flag in (False, True))
    relative = [max(1.0 / one.balancedness for one in result.scenarios) for result in (plain, worst)]
    assert relative[1] <= relative[0] * 1.01
    assert worst.bound <= worst.value


def test_refused() -> None:
    with pytest.raises(BadInput, match="different shapes"):
        loads({"a": FIRST, "b": FIRST[:3]})
    with pytest.raises(BadInput, match="2 weights for 3 scenarios"):
        loads({"a": FIRST, "b": FIRST, "c": FIRST}, [1.0, 2.0])
    for wrong in (0.0, -1.0, np.nan, np.inf):
        bad = FIRST.copy()
        bad[2, 3] = wrong
        with pytest.raises(BadInput, match=r"LOADS\[2,3\]"):
            loads({"a": bad})
