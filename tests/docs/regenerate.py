"""Writes the real outputs into the documentation: ``python -m tests.docs.regenerate``.

Lines that differ only in the time of the solve are left as they are. Read the diff before you keep it.
"""

import tempfile
from pathlib import Path

from tests.docs.examples import ROOT, Shell, blocks, commands, matches, pages, renewed


def regenerated(text: str, shell: Shell) -> str:
    """A page with the output of its commands as they are now."""
    parts, at = [], 0
    for block in blocks(text):
        if block.language != "console":
            shell.write(block)
            continue
        lines = []
        for command in commands(block.text):
            real = shell.run(command.words)
            same = matches(command.output, real)
            lines.extend([command.shown, *(command.output if same else renewed(command.output, real))])
        parts.extend([text[at : block.start], "".join(f"{line.rstrip()}\n" for line in lines)])
        at = block.end
    return "".join([*parts, text[at:]])


def main() -> None:
    """Regenerate every page and name those that changed."""
    for page in pages():
        with tempfile.TemporaryDirectory() as directory:
            before = page.read_text()
            after = regenerated(before, Shell(Path(directory)))
        if after != before:
            page.write_text(after)
            print(page.relative_to(ROOT))


if __name__ == "__main__":
    main()
