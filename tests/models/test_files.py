import contextlib
import math
import os
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from models import files
from models.errors import BadInput, Problem
from models.files import Document, dump, line_of, parse, read, resolve


def problems(text: str | bytes) -> tuple[Problem, ...]:
    with pytest.raises(BadInput) as caught:
        parse(text)
    return caught.value.problems


@pytest.fixture(params=["C", "Python"], autouse=True)
def _loader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test runs with both of PyYAML's parsers; a build without libyaml has only the slow one."""
    if request.param == "Python" and hasattr(yaml, "CSafeLoader"):
        monkeypatch.delattr(yaml, "CSafeLoader")


def test_document_with_lines() -> None:
    text = "name: chat\npools:\n  - gpu: A100\n    count: 4\n  - {gpu: H100,\n     count: 8}\nrate: 3.5/s\n"
    document = parse(text, "plan.yaml")
    assert document == Document(
        data={
            "name": "chat",
            "pools": [{"gpu": "A100", "count": 4}, {"gpu": "H100", "count": 8}],
            "rate": "3.5/s",
        },
        lines={
            (): 1,
            ("name",): 1,
            ("pools",): 2,
            ("pools", 0): 3,
            ("pools", 0, "gpu"): 3,
            ("pools", 0, "count"): 4,
            ("pools", 1): 5,
            ("pools", 1, "gpu"): 5,
            ("pools", 1, "count"): 6,
            ("rate",): 7,
        },
        source="plan.yaml",
    )
    assert line_of(document, ("pools", 1, "count")) == 6
    assert line_of(document, ["pools", 1, "count", "deeper"]) == 6
    assert line_of(document, ("pools", 7)) == 2
    assert line_of(document, ("nothing",)) == 1
    assert line_of(document, ()) == 1


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *((text, None) for text in ("", "~", "null", "Null", "NULL")),
        *((text, True) for text in ("true", "True", "TRUE")),
        *((text, False) for text in ("false", "False", "FALSE")),
        *((text, text) for text in ("on", "yes", "no", "off", "y", "1:30", "012", "00", "0x10", "0o17")),
        *((text, text) for text in ("1_000", "1,000", "2024-01-01", "tRUE", "+", ".", "1e", "e1", "-012")),
        ("0", 0),
        ("+8", 8),
        ("-12", -12),
        ("9" * 30, int("9" * 30)),
        ("9" * 31, 1e31),
        ("9" * 5000, math.inf),
        ("1e9", 1e9),
        (".5", 0.5),
        ("1.", 1.0),
        ("-1.5E-3", -0.0015),
        ("01.5", 1.5),
        (".inf", math.inf),
        ("-.INF", -math.inf),
        ("1e400", math.inf),
    ],
)
def test_plain_scalars(text: str, value: object) -> None:
    assert resolve(text) == value
    read_back = parse(f"key: {text}").data["key"]
    assert read_back == value
    assert type(read_back) is type(value)


def test_nan_stays_a_float() -> None:
    assert math.isnan(parse("key: .nan").data["key"])


def test_quoted_scalars_are_text() -> None:
    assert parse("a: '1'\nb: \"true\"\nc: |\n  2\nd: 'null'").data == {
        "a": "1",
        "b": "true",
        "c": "2\n",
        "d": "null",
    }


def test_keys_are_text() -> None:
    text = "on: 1\nyes: 2\n8: 3\n1e3: 4\n'null': 5\n012: 6\n'': 7\n? long\n: 8\n'<<': 9"
    assert parse(text).data == {
        "on": 1,
        "yes": 2,
        "8": 3,
        "1e3": 4,
        "null": 5,
        "012": 6,
        "": 7,
        "long": 8,
        "<<": 9,
    }


@pytest.mark.parametrize("text", ["a: 1\r\nb: [x]\r\n", "\ufeffa: 1\nb: [x]", "%YAML 1.2\n---\na: 1\nb: [x]\n..."])
def test_line_endings_mark_and_header(text: str) -> None:
    for form in (text, text.encode()):
        document = parse(form)
        assert document.data == {"a": 1, "b": ["x"]}
        assert document.lines["b",] - document.lines["a",] == 1


def test_core_tags() -> None:
    text = "a: !!str 5\nb: !!int 5\nc: !!float 5\nd: !!bool true\ne: !!null ''\nf: !!seq []\ng: !!map {}"
    data = parse(text).data
    assert data == {"a": "5", "b": 5, "c": 5.0, "d": True, "e": None, "f": [], "g": {}}
    assert type(data["c"]) is float


def test_aliases_repeat_independent_copies() -> None:
    document = parse("a: &x\n  b: [1]\n  c: &y 2\nd: *x\ne: *y\nf: [*x, *x]")
    assert document.data == {
        "a": {"b": [1], "c": 2},
        "d": {"b": [1], "c": 2},
        "e": 2,
        "f": [{"b": [1], "c": 2}, {"b": [1], "c": 2}],
    }
    document.data["a"]["b"].append(3)
    assert document.data["d"] == {"b": [1], "c": 2}
    assert line_of(document, ("d", "b", 0)) == 4


def test_an_anchor_can_be_set_again() -> None:
    assert parse("a: &x 1\nb: *x\nc: &x 2\nd: *x").data == {"a": 1, "b": 1, "c": 2, "d": 2}


# --- what is refused --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "report"),
    [
        (b"a: \xff", "line 1  the file is not UTF-8 text: invalid start byte"),
        (b"a: 1\nb: \xc3", "line 2  the file is not UTF-8 text: unexpected end of data"),
        ("", "the file is empty"),
        ("# only a remark\n", "the file is empty"),
        ("---\n", "the file is empty"),
        ("null", "the file is empty"),
        ("[1, 2]", "line 1  the top level is a list; accepted: a mapping, e.g. name: chat"),
        ("text", "line 1  the top level is a single value; accepted: a mapping, e.g. name: chat"),
        ("a: 1\n---\nb: 2", "line 2  a second document starts here; accepted: one document a file"),
        (
            "a: !!python/object:os.system x",
            'line 1  a = "tag:yaml.org,2002:python/object:os.system": tags are not supported; '
            "accepted: the value without a tag",
        ),
        ("a: !mine [1]", 'line 1  a = "!mine": tags are not supported; accepted: the value without a tag'),
        ("a: ! x", 'line 1  a = "!": tags are not supported; accepted: the value without a tag'),
        ("!x {a: 1}", 'line 1  "!x": tags are not supported; accepted: the value without a tag'),
        ("a: !!int x", 'line 1  a = "x": the value does not fit its tag !!int'),
        ("a: !!int true", 'line 1  a = "true": the value does not fit its tag !!int'),
        ("a: &x [*x]", 'line 1  a[0] = "*x": the alias is inside its own anchor'),
        ("&x {a: 1, b: *x}", 'line 1  b = "*x": the alias is inside its own anchor'),
        ("a: *x", 'line 1  a = "*x": the alias has no anchor before it'),
        (
            "a: &x {b: 1}\nc:\n  <<: *x",
            'line 3  c = "<<": merge keys are not supported; write it out',
        ),
        ("null: 1", 'line 1  "null": a key must be text; quote it'),
        ("a:\n  ~: 1", 'line 2  a = "~": a key must be text; quote it'),
        ("true: 1", 'line 1  "true": a key must be text; quote it'),
        ("? [a, {b: c}]\n: 1", 'line 1  "?": a key must be text, not an alias, a list or a mapping'),
        ("a: &x b\n*x : 1", 'line 2  "?": a key must be text, not an alias, a list or a mapping'),
        (
            "a: 1\nb: \x00",
            'line 2  "\\x00": a control character is in the text; accepted: printable text',
        ),
        ("a: \ud800", 'line 1  "\\ud800": a control character is in the text; accepted: printable text'),
        ('a: "x\\0"', 'line 1  a = "x\\x00": a control character is in the text'),
    ],
)
def test_refused(text: str | bytes, report: str) -> None:
    assert "\n".join(str(problem) for problem in problems(text)) == report


@pytest.mark.parametrize(
    ("text", "line"),
    [("a: 1\nb: [1", 2), ("a: 1\nb: 'x", 2), ("a: b: c", 1), ("a: 1\n\tb: 2", 2), ("a: @x", 1), ("a: %x", 1)],
)
def test_syntax_error_has_its_line(text: str, line: int) -> None:
    (problem,) = problems(text)
    assert problem.message.startswith("not valid YAML: ")
    # A missing end is noticed at the end of the text, in one parser on the line after it.
    assert problem.line in (line, line + 1)


def test_escape_beyond_unicode_is_a_problem() -> None:
    assert problems('a: "\\UFFFFFFFF"')[0].message.startswith("not valid YAML: ")


def test_every_duplicate_key_is_reported() -> None:
    found = problems("a: 1\nb:\n  c: 1\n  c: 2\na: 2\n'a': {c: 1, c: 2}\n8: x\n'8': y")
    assert [(problem.path, problem.line, problem.message) for problem in found] == [
        ("b.c", 4, "the key is there twice, first on line 3"),
        ("a", 5, "the key is there twice, first on line 1"),
        ("a", 6, "the key is there twice, first on line 1"),
        ("a.c", 6, "the key is there twice, first on line 6"),
        ("8", 8, "the key is there twice, first on line 7"),
    ]


def test_problems_of_all_kinds_come_together() -> None:
    found = problems("a: !x 1\nnull: {b: 1}\n<<: {a: 1}\n? [k]\n: v\na: 2\nb: *q\nc: [")
    assert [problem.line for problem in found] == [1, 2, 3, 4, 6, 7, found[-1].line]
    assert "not valid YAML" in found[-1].message


def test_number_of_problems_is_limited() -> None:
    found = problems("a: 1\n" * 10_000)
    assert len(found) == files.MAX_PROBLEMS + 1
    assert found[-1].message == "too many problems; the rest of the file was not read"
    assert len(problems("\x01" * 10_000)) == files.MAX_PROBLEMS


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ("{k: ", "}")])
def test_depth_is_limited(opening: str, closing: str) -> None:
    inner = files.MAX_DEPTH - 1
    assert parse("a: " + opening * inner + closing * inner).data
    for depth in (inner + 1, 50_000):
        found = problems("a: " + opening * depth + closing * depth)
        assert [problem.message for problem in found] == ["nested deeper than 64 levels"]


def test_depth_counts_what_an_alias_repeats() -> None:
    nested = "a: &x " + "[" * 40 + "]" * 40 + "\nb: "
    assert parse(nested + "[" * 23 + "*x" + "]" * 23).data
    assert problems(nested + "[" * 24 + "*x" + "]" * 24)[0].message == "nested deeper than 64 levels"


def test_alias_bomb_is_refused_at_once() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 30)]
    start = time.perf_counter()
    (problem,) = problems("\n".join(lines))
    assert time.perf_counter() - start < 1
    assert (problem.message, problem.line) == (
        "more than 100,000 values, counting repeats by aliases",
        5,
    )


def test_number_of_values_is_limited_without_aliases() -> None:
    assert len(parse("a: [" + "1, " * 99_998 + "]").data["a"]) == 99_998
    assert problems("a: [" + "1, " * 99_999 + "]")[0].message.startswith("more than 100,000 values")


# --- reading files ----------------------------------------------------------------------------------


def refused(path: Path) -> str:
    with pytest.raises(BadInput) as caught:
        read(path)
    return str(caught.value)


def test_read(tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    path.write_bytes("name: größe\n".encode())
    assert read(path) == Document({"name": "größe"}, {(): 1, ("name",): 1}, str(path))


def test_read_refuses_what_is_no_file(tmp_path: Path) -> None:
    assert refused(Path("no.yaml")) == '"no.yaml": no such file'
    assert "is a directory, not a file" in refused(tmp_path)
    assert "the file cannot be read" in refused(Path("a\0b"))
    (tmp_path / "empty.yaml").touch()
    assert refused(tmp_path / "empty.yaml") == "the file is empty"


def test_read_without_permission(monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr("builtins.open", denied)  # a mode of 000 does not stop root
    assert refused(Path("plan.yaml")) == '"plan.yaml": the file may not be read: permission denied'


def test_large_file_is_refused_before_parsing(tmp_path: Path) -> None:
    path = tmp_path / "large.yaml"
    path.touch()
    os.truncate(path, 5 * 2**20)  # NUL bytes, which parsing would report
    assert refused(path) == "the file holds 5,242,880 bytes; the limit is 4,194,304 bytes (4 MiB)"
    assert problems("ü" * (2**21 + 1))[0].message.startswith("the file holds 4,194,306 bytes")
    limit = "a: " + "x" * (files.MAX_BYTES - 3)
    assert parse(limit).data["a"] == limit[3:]


# --- writing ----------------------------------------------------------------------------------------

TEXT = st.text(st.characters(exclude_categories=("Cs", "Cc"), exclude_characters="\ufeff\ufffe\uffff"))
LOOKALIKES = st.sampled_from(
    [
        *("on", "yes", "1e9", ".5", "1.", "3.5/s", "null", "~", "", "012", "1:30", "true", "<<", "=", "0x1"),
        *("- a", "a: b", "# x", "a #b", "*x", "&x", "!x", "%x", "@x", "`x", "? x", "|", ">", "'", '"', " a "),
        *(
            "[",
            "{",
            "a\nb",
            "a\n  b\n",
            "\n",
            "\ta",
            "---",
            "...",
            "2024-01-01",
            ".inf",
            "é",
            "\u2028",
            "\x85",
        ),
    ]
)
SCALARS = st.none() | st.booleans() | st.integers(-(10**29), 10**29) | st.floats(allow_nan=False) | TEXT | LOOKALIKES
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(TEXT | LOOKALIKES, inner), max_leaves=20)


@given(st.dictionaries(TEXT | LOOKALIKES, VALUES, min_size=0, max_size=6))
def test_dumped_data_reads_back(data: dict[str, Any]) -> None:
    text = dump(data)
    for form in (text, text.encode()):
        read_back = parse(form).data
        assert read_back == data
        assert repr(read_back) == repr(data)  # also the order of keys, and 1 apart from True and 1.0


@given(st.text() | st.text("[]{}:-,&*!|>'\"%@ \n#?a1<"))
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(BadInput):
        assert () in parse(text).lines


@given(st.binary())
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    with contextlib.suppress(BadInput):
        assert () in parse(data).lines


def test_dump_is_readable() -> None:
    shared = {"gpu": "A100"}
    data = {
        "name": "größe",
        "pools": [shared, shared],
        "rate": "3.5/s",
        "note": "on",
        "share": 0.5,
        "sci": "1e9",
    }
    assert dump(data) == (
        "name: größe\npools:\n- gpu: A100\n- gpu: A100\nrate: 3.5/s\nnote: 'on'\nshare: 0.5\nsci: \"1e9\"\n"
    )


def test_dump_keeps_long_text_on_one_line() -> None:
    assert dump({"a": "word " * 100 + "end"}).count("\n") == 1


def test_dump_refuses_what_is_not_plain_data() -> None:
    with pytest.raises(TypeError, match="not plain data"):
        dump({"a": object()})
