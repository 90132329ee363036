"""The command line: one file per command, each with ``prepare_parser`` and ``run``."""
from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    from traindx.cli import run as run_command
    parser = argparse.ArgumentParser(prog="traindx")
    commands = parser.add_subparsers(dest="command", required=True)
    sub = commands.add_parser("run")
    run_command.prepare_parser(sub)
    options = parser.parse_args(argv)
    return run_command.run(options)


if __name__ == "__main__":
    sys.exit(main())
