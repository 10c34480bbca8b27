"""Lines of a file that may be packed: plain, gzip, xz or bzip2, told by its first bytes; `-` is standard input."""

import bz2
import gzip
import io
import lzma
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

from models.errors import BadInput, Problem

LONGEST = 64 * 2**20
"""Bytes of a line at most: two million blocks."""
BUFFER = 2**20
_MAGIC: dict[bytes, Callable[[IO[bytes]], IO[bytes]]] = {
    b"\x1f\x8b": lambda plain: cast(IO[bytes], gzip.GzipFile(fileobj=plain)),
    b"\xfd7zXZ\x00": lambda plain: cast(IO[bytes], lzma.LZMAFile(plain)),  # noqa: SIM115 - ends with the plain file
    b"BZh": lambda plain: cast(IO[bytes], bz2.BZ2File(plain)),
}


@contextmanager
def lines(path: Path) -> Iterator[Iterator[tuple[int, bytes]]]:
    """Numbered lines of a file, from 1, unpacked as they are asked for. Raises BadInput where it cannot be read."""
    try:
        with _opened(path) as file:
            yield _numbered(file)
    except OSError as error:
        raise _unreadable(path, (error.strerror or str(error)).lower()) from None
    except ValueError as error:  # a NUL in the path
        if "null" not in str(error):
            raise
        raise _unreadable(path, str(error)) from None


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    if str(path) == "-":
        yield _unpacked(io.BufferedReader(cast(io.RawIOBase, sys.stdin.buffer), BUFFER))
        return
    with io.BufferedReader(io.FileIO(path), BUFFER) as plain:
        yield _unpacked(plain)


def _unpacked(plain: "io.BufferedReader[Any]") -> IO[bytes]:
    begin = plain.peek(8)[:8]
    for magic, opened in _MAGIC.items():
        if begin.startswith(magic):
            return io.BufferedReader(cast(io.RawIOBase, opened(plain)), BUFFER)
    return plain


def _numbered(file: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    number = 0
    while True:
        try:
            line = file.readline(LONGEST)
        except EOFError:
            raise _broken(number, "the packed file is cut off") from None
        except (lzma.LZMAError, zlib.error, gzip.BadGzipFile) as error:
            raise _broken(number, f"the packed file is damaged: {error}") from None
        except OSError as error:  # bzip2 says so of damaged data
            if error.errno is not None:
                raise
            raise _broken(number, f"the packed file is damaged: {error}") from None
        if not line:
            return
        number += 1
        if len(line) >= LONGEST:
            raise BadInput([Problem("FILE", f"a line of more than {LONGEST:,} bytes", None, None, number)])
        yield number, line


def _broken(number: int, message: str) -> BadInput:
    return BadInput([Problem("FILE", message, f"after {number:,} lines", "the whole file", number + 1)])


def _unreadable(path: Path, reason: str) -> BadInput:
    return BadInput([Problem("FILE", f"cannot be read: {reason}", str(path))])
