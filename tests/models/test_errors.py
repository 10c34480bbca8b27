import pickle

import pytest

from models.errors import BadInput, InferplanError, Problem, nearest, path_text, shown


def test_report_has_one_line_per_problem() -> None:
    error = BadInput(
        [
            Problem("workloads.chat.rate", "no unit", "3.5", "a request rate, e.g. 3.5/s", 12),
            Problem("pools[0]", "missing", line=3),
            Problem("", "the file is empty"),
            Problem("", "no such file", "plan.yaml"),
        ]
    )
    assert str(error).splitlines() == [
        'line 12  workloads.chat.rate = "3.5": no unit; accepted: a request rate, e.g. 3.5/s',
        "line 3  pools[0]: missing",
        "the file is empty",
        '"plan.yaml": no such file',
    ]


def test_bad_input_keeps_its_problems_and_survives_pickling() -> None:
    error = BadInput(iter([Problem("a", "b")]))
    assert error.problems == (Problem("a", "b"),)
    assert isinstance(error, InferplanError)
    assert pickle.loads(pickle.dumps(error)).problems == error.problems


def test_bad_input_without_problems_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one problem"):
        BadInput([])


def test_problem_as_json() -> None:
    assert Problem("a.b", "wrong", "x", "y", 7).as_json() == {
        "path": "a.b",
        "line": 7,
        "value": "x",
        "message": "wrong",
        "accepted": "y",
    }
    assert list(Problem("", "wrong").as_json()) == ["path", "line", "value", "message", "accepted"]


def test_value_of_a_problem_is_cut() -> None:
    assert Problem("a", "b", "x" * 81).value == "x" * 79 + "…"
    assert Problem("a", "b", "x" * 80).value == "x" * 80


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", "plain"),
        (3.5, "3.5"),
        (None, "null"),
        (True, "true"),
        (False, "false"),
        (1, "1"),
        ([1, 2], "[2 items]"),
        ({"a": 1}, "{1 keys}"),
        ("a\nb\x1b[31m\u202e\ud800", "a\\nb\\x1b[31m\\u202e\\ud800"),
        ("x" * 10**6, "x" * 79 + "…"),
        ("\x00" * 80, ("\\x00" * 20)[:79] + "…"),
        (10**79, "1" + "0" * 79),
    ],
)
def test_shown(value: object, text: str) -> None:
    assert shown(value) == text


def test_shown_takes_integers_that_python_refuses_to_print() -> None:
    assert shown(10**5000).startswith("0x")
    assert len(shown(10**5000)) == 80


def test_path_text() -> None:
    assert path_text(("pools", 0, "gpu")) == "pools[0].gpu"
    assert path_text(()) == ""
    assert path_text((1, "a")) == "[1].a"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("A100-SXM-80G", 'did you mean "A100-SXM-80GB"?'),
        ("a100-sxm-80gb", 'did you mean "A100-SXM-80GB"?'),
        ("H100", 'did you mean "H100-SXM"?'),
        ("teapot", ""),
        ("", ""),
        ("x" * 10**6, ""),
    ],
)
def test_nearest(name: str, text: str) -> None:
    assert nearest(name, ["A100-SXM-80GB", "H100-SXM"]) == text


def test_nearest_cuts_what_it_shows() -> None:
    assert nearest("x" * 100, ["x" * 100]) == f'did you mean "{"x" * 79}…"?'


def test_the_beginning_of_a_name_counts_more_than_likeness() -> None:
    known = ["B200", "H200-SXM-141GB", "H20-SXM5-96GB"]
    assert nearest("H200", known) == 'did you mean "H200-SXM-141GB"?'
    assert nearest("h20-", known) == 'did you mean "H20-SXM5-96GB"?'
    assert nearest("gb", ["GBP", "GB"]) == 'did you mean "GB"?'
