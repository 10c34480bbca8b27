"""One number of an instance by its path, with its unit, its bounds, and how to write another value there."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, get_args

from annotated_types import Ge, Gt, Le
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from models.errors import BadInput, Problem, nearest, shown
from models.instance import Instance
from models.load import build
from models.quantities import Quantity, Whole
from models.reading import Document
from models.units import MONEY_RATE, QuantityError
from models.workload import READ_AS, Workload

TINY = 1e-9
"""The least of plain numbers that have to be above zero."""


@dataclass(frozen=True)
class Number:
    """A number as it is now, in SI units."""

    path: str
    now: float
    whole: bool
    unit: str
    """`s`, `B/s`, `tokens`; empty for plain numbers."""
    least: float
    most: float
    """The largest value that may stand there, as the least."""
    quantity: Quantity | None

    def text(self, value: float) -> str:
        """``value`` as it stands in a file."""
        if self.whole:
            return str(int(value))
        return str(self.quantity.write(value)) if self.quantity else repr(value)

    def read(self, text: str) -> float:
        """A value as it is written in a file. Raises BadInput."""
        text = text.strip()
        try:
            value = self.quantity.read(text) if self.quantity else float(int(text) if self.whole else text)
        except QuantityError as error:
            raise BadInput([Problem(self.path, error.reason, text, error.accepted)]) from None
        except ValueError:
            kind = "a whole number" if self.whole else "a number"
            raise BadInput([Problem(self.path, f"is not {kind}", text, kind)]) from None
        if not self.least <= value <= self.most:
            accepted = f"{self.text(self.least)} to {self.text(self.most)}"
            raise BadInput([Problem(self.path, "is out of bounds", text, accepted)])
        return value


def find(instance: Instance, path: str) -> Number:
    """The number at ``path``, as `--set` writes paths. Raises BadInput where there is none."""
    at: Any = instance
    marks: list[Any] = []
    parts = path.split(".")
    while parts:
        if isinstance(at, BaseModel):
            at, marks, parts = _field(at, parts, path)
        else:
            at, parts = _item(at, parts, path)
    if at is None:
        raise BadInput([Problem(path, "is not stated", None, "a number of the instance")])
    quantity = next((mark for mark in marks if isinstance(mark, Quantity)), None)
    whole = next((mark for mark in marks if isinstance(mark, Whole)), None)
    low, high = _bounds(marks)
    if isinstance(at, bool) or not isinstance(at, int | float) or not (quantity or whole or None not in (low, high)):
        raise BadInput([Problem(path, "is not a number that can move", shown(at), "a number of the instance")])
    if quantity is not None:
        least = quantity.ge if quantity.gt is None else max(quantity.ge, quantity.smallest)
        return Number(path, float(at), False, _unit(quantity, instance), least, quantity.le, quantity)
    if whole is not None:
        return Number(path, float(at), True, f"{whole.unit}s" if whole.unit else "", 1.0, float(whole.le), None)
    return Number(path, float(at), isinstance(at, int), "", low or 0.0, high or 0.0, None)


def moved(instance: Instance, number: Number, value: float) -> Instance:
    """The instance with another value there. Raises BadInput where the rest of the instance does not allow it."""
    document = instance.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_unset=True)  # as stated
    return build(Document(document, {}, ""), [f"{number.path}={number.text(value)}"])


def _bounds(marks: list[Any]) -> tuple[float | None, float | None]:
    low: float | None = None
    high: float | None = None
    for mark in marks:
        if isinstance(mark, Ge):
            low = float(str(mark.ge))
        elif isinstance(mark, Gt):
            low = float(str(mark.gt)) + TINY
        elif isinstance(mark, Le):
            high = float(str(mark.le))
    return low, high


def _unit(quantity: Quantity, instance: Instance) -> str:
    if quantity.dimension is MONEY_RATE:
        return f"{instance.billing.currency}/s"
    return quantity.dimension.base


def _field(at: BaseModel, parts: list[str], path: str) -> tuple[Any, list[Any], list[str]]:
    fields = type(at).model_fields
    names = {field.alias or name: name for name, field in fields.items()}
    if parts[0] not in names:
        if isinstance(at, Workload) and parts[0] in READ_AS:
            raise BadInput([Problem(path, f"is read as others: {READ_AS[parts[0]]}", None, ", ".join(names))])
        guess = nearest(parts[0], names)
        raise BadInput([Problem(path, "not in the instance" + (f"; {guess}" if guess else ""), None, ", ".join(names))])
    field = fields[names[parts[0]]]
    marks = [*chain.from_iterable(_of_mark(mark) for mark in field.metadata), *_marks(field.annotation)]
    return getattr(at, names[parts[0]]), marks, parts[1:]


def _item(at: Any, parts: list[str], path: str) -> tuple[Any, list[str]]:
    if isinstance(at, dict):
        for length in range(len(parts), 0, -1):  # names may hold dots: the longest key wins, as for --set
            if (key := ".".join(parts[:length])) in at:
                return at[key], parts[length:]
        guess = nearest(parts[0], at)
        message = "not in the instance" + (f"; {guess}" if guess else "")
        raise BadInput([Problem(path, message, None, ", ".join(at) or None)])
    if isinstance(at, list) and parts[0].isascii() and parts[0].isdigit() and int(parts[0]) < len(at):
        return at[int(parts[0])], parts[1:]
    raise BadInput([Problem(path, "not in the instance", None, "a path as for --set, e.g. workloads.chat.rate")])


def _marks(annotation: Any) -> Iterator[Any]:
    """What annotations say of a value, those inside `X | None` and mappings included."""
    for mark in getattr(annotation, "__metadata__", ()):
        yield from _of_mark(mark)
    for inner in get_args(annotation):
        yield from _marks(inner)


def _of_mark(mark: Any) -> Iterator[Any]:
    yield from mark.metadata if isinstance(mark, FieldInfo) else (mark,)
