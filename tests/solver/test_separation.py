"""Handoffs in each layer against one a request: by hand for other models, links and lengths."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models import catalog
from models.llm import Llm
from solver.attention import Layers, State
from solver.formulas import separation as formulas
from solver.separation import Handoffs, handoffs

some = settings(max_examples=80, deadline=None, derandomize=True, database=None)


def model(name: str) -> Llm:
    return Llm.model_validate({**(catalog.entry("models", name) or {}), "weights": "bf16", "kv": "bf16"})


QWEN_32B = handoffs(model("Qwen3-32B"), 50e9, 5e-6)  # 64 layers of width 5120, 8 KV heads of 128


def test_a_step_of_a_larger_model() -> None:
    # 128 transfers, 128 x 5120 x 2 = 1 310 720 B: 26.2144 us + 640 us
    assert QWEN_32B.messages == 128
    assert QWEN_32B.step_bytes() == 1_310_720
    assert QWEN_32B.step_seconds() == pytest.approx(666.2144e-6)


def test_a_request_of_4096_tokens() -> None:
    # state 2 x 64 x 8 x 128 x 2 B x 4096 = 1 GiB: 21.475 ms + 5 us under PD, dearer after 32.2 steps
    assert QWEN_32B.pd_seconds(4096, 200) == pytest.approx(21.479836e-3, rel=1e-6)
    assert QWEN_32B.dearer_after(4096) == 33
    # prefill 4096 x 1 310 720 B / 50e9 + 640 us = 108.014 ms, 199 further steps of 0.6662 ms
    assert QWEN_32B.af_seconds(4096, 200) == pytest.approx(108.014182e-3 + 199 * 0.6662144e-3, rel=1e-6)
    # (1 GiB - 1 310 720) / (127 x 50e9)
    assert QWEN_32B.critical_startup(4096) == pytest.approx(168.88679e-6, rel=1e-6)


def test_one_output_token_hands_nothing_over_under_pd() -> None:
    assert QWEN_32B.pd_seconds(4096, 1) == 0.0
    assert QWEN_32B.af_seconds(4096, 1) == QWEN_32B.step_seconds(4096)


def test_the_form_of_the_state_matters_to_pd_only() -> None:
    own = handoffs(model("Qwen3-8B"), 25e9, 5e-6)
    compact = handoffs(model("Qwen3-8B"), 25e9, 5e-6, model("DeepSeek-V3"))
    assert compact.step_seconds() == own.step_seconds()
    assert compact.pd_seconds(8192, 2) < own.pd_seconds(8192, 2) / 2
    assert compact.critical_startup(8192) < own.critical_startup(8192)
    # 48.323 ms / 0.3836 ms = 125.98, 23.032 / 0.3836 = 60.04
    assert (own.dearer_after(8192), compact.dearer_after(8192)) == (126, 61)


def test_the_same_bytes_in_more_transfers_cost_their_startups() -> None:
    one, many = (formulas.messages_seconds(2**30, parts, 25e9, 20e-6) for parts in (1, 128))
    assert many - one == pytest.approx(127 * 20e-6)


@given(st.integers(2, 100), st.integers(1, 20_000), st.floats(1e9, 1e12))
@some
def test_at_the_critical_startup_a_step_and_a_handoff_take_equally_long(layers: int, tokens: int, link: float) -> None:
    kept = State(Layers(), 4096.0 * layers, 1)  # never less than a step hands over from some tokens on
    start = Handoffs(layers, 1024, 2.0, kept, link, 0.0).critical_startup(tokens)
    there = Handoffs(layers, 1024, 2.0, kept, link, start)
    assert there.step_seconds() == pytest.approx(there.pd_seconds(tokens, 2), rel=1e-6)
