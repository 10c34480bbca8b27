"""When units are ready: a stated time, or the longest path of steps, and what that does to the drain."""

import pytest

from models import files
from models.errors import BadInput
from models.instance import Instance
from models.load import build
from solver import startup
from solver.data import gather
from solver.solve import Options, solve
from solver.verify import verify

WEIGHTS = 16.38147072e9  # of Qwen3-8B in BF16
STEPS = (
    "{process: {takes: 1 s}, tokenizer: {takes: 3 s, after: process}, weights: {weights_at: 2 GB/s, after: process},"
    " first run: {takes: 4 s, after: [weights, tokenizer]}, compile: {takes: 3.5 s, within: first run}}"
)


def made(service: str, group: str = "") -> Instance:
    return build(
        files.parse(
            "schema: 1\nname: starting\n"
            f"hardware: {{groups: {{a: {{server: DGX-A100-80GB, servers: 1, price: 1/h{group}}}}}}}\n"
            "models: {m: {catalog: Qwen3-8B, tp: [1, 2]}}\n"
            "workloads: {w: {model: m, rate: 2/s, input: 2000, output: 300}}\n"
            f"service: {service}\nschemes: {{allow: [replicas]}}\n"
        )
    )


def test_the_longest_path_decides_and_what_is_within_is_not_counted_twice() -> None:
    """1 s of process, 8.19 s of weights, 4 s of a first run that has the compile in it: 13.19 s, so 14."""
    instance = made(f"{{steps: {STEPS}}}")
    assert startup.seconds(instance, "a", WEIGHTS) == 14.0
    assert startup.seconds(instance, "a", WEIGHTS / 8) == 8.0  # 1.02 s of weights: now the tokenizer is longer


def test_the_resolved_document_reads_back() -> None:
    instance = made(f"{{steps: {STEPS}}}")
    assert build(files.Document(instance.document(), {}, "")).sha256() == instance.sha256()


def test_a_sum_of_whole_seconds_stays_what_it_is() -> None:
    assert startup.seconds(made("{steps: {a: {takes: 0.1 s}, b: {takes: 9.9 s, after: a}}}"), "a", 0.0) == 10.0


def test_a_group_that_states_a_time_has_no_steps() -> None:
    assert startup.seconds(made(f"{{steps: {STEPS}}}", ", startup: 7 s"), "a", WEIGHTS) == 7.0
    assert startup.seconds(made("{startup: 5 s}"), "a", WEIGHTS) == 5.0


def test_units_of_more_gpus_are_ready_sooner() -> None:
    found = {c.tp: c.startup for c in gather(made(f"{{steps: {STEPS}}}")).candidates if c.stage == "both"}
    assert found == {1: 14.0, 2: 10.0}  # 1 + 4.1 + 4 = 9.1


def test_the_drain_has_a_phase_for_each_ready_time() -> None:
    """With units of one GPU alone the backlog of 14 s is there; units of two serve from second 10 on."""
    instance = made(f"{{steps: {STEPS}, drain: 16 s}}")
    plan = solve(instance, Options(plan_only=True))
    assert plan.status == "optimal"
    assert verify(plan, instance) == []
    assert plan.drain is not None
    assert plan.drain.drained_s is not None
    assert plan.drain.drained_s <= 16.0
    first = plan.drain.phases[0]
    ready = {14.0 if pool.parallelism.tp == 1 else 10.0 for pool in plan.pools}
    assert first.start_s >= min(ready)


def test_a_plan_that_serves_before_its_units_are_ready_is_refused() -> None:
    instance = made(f"{{steps: {STEPS}, drain: 30 s}}")
    plan = solve(instance, Options(plan_only=True))
    slower = made(f"{{steps: {STEPS.replace('2 GB/s', '1 GB/s')}, drain: 30 s}}")
    document = {"instance_document": slower.document(), "instance_sha256": slower.sha256()}
    assert any("before it is ready" in text for text in verify(plan.model_copy(update=document), slower))


@pytest.mark.parametrize(
    ("service", "said"),
    [
        ("{startup: 5 s, steps: {a: {takes: 1 s}}}", "stands beside service.steps"),
        ("{steps: {a: {}}}", "states no time"),
        ("{steps: {a: {takes: 1 s, weights_at: 1 GB/s}}}", "states two times"),
        ("{steps: {a: {takes: 1 s, after: b}}}", "no step of this name"),
        ("{steps: {a: {takes: 1 s, after: b}, b: {takes: 1 s, after: a}}}", "the steps wait for each other"),
        ("{steps: {a: {takes: 1 s, within: a}}}", "the steps wait for each other"),
        (
            "{steps: {a: {takes: 1 s}, b: {takes: 1 s, within: a}, c: {takes: 1 s, within: b}}}",
            "is itself within another step",
        ),
        ("{steps: {a: {takes: -1 s}}}", "service.steps.a.takes"),
        ("{steps: {a: {weights_at: 0 GB/s}}}", "service.steps.a.weights_at"),
        ("{steps: {a: {takes: 5}}}", "service.steps.a.takes"),
    ],
)
def test_steps_that_cannot_be_are_named(service: str, said: str) -> None:
    with pytest.raises(BadInput) as refused:
        made(service)
    assert any(said in str(problem) for problem in refused.value.problems), refused.value
