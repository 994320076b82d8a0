#!/usr/bin/env python3
"""Seconds that a build took, by room and kind of step, as a Markdown table, from Ninja's log.

    CCACHE_DISABLE=1 cmake --build build --target mulciber && tools/build_times.py build

Ninja notes when a step began and ended. On a quiet machine, with no more steps at a time than cores, that is the
step's time on the processor; otherwise it is more. A step that ran several times counts once, with its last time.
"""

import argparse
import collections
from pathlib import Path

KINDS = {".gch": "precompiled header", ".pch": "precompiled header", ".o": "C and C++", ".spv": "shader"}


def steps(log: Path) -> dict[tuple[str, str], float]:
    """Seconds of each step, by its first output: outputs of one step share begin, end and command."""
    first = {}
    for line in log.read_text().splitlines():
        if line.startswith("#"):
            continue
        begin, end, _, output, command = line.split("\t")
        first[output] = (int(begin), int(end), command)
    seen, seconds = set(), {}
    for output, step in first.items():
        if step not in seen:
            seen.add(step)
            seconds[output] = (step[1] - step[0]) / 1000
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="build folder")
    parser.add_argument("--files", type=int, default=0, metavar="N", help="also the N longest steps")
    options = parser.parse_args()
    here = str(options.folder.resolve()) + "/"  # some outputs are noted with their whole path
    seconds = {output.removeprefix(here): time for output, time in steps(options.folder / ".ninja_log").items()}

    rooms = collections.defaultdict(lambda: [0.0, 0])
    for output, time in seconds.items():
        room = Path(output).parts[0] if len(Path(output).parts) > 1 else "."
        kind = KINDS.get(Path(output).suffix, "link and the rest")
        if room == "CMakeFiles":
            room = "all"
        rooms[room if kind != "link and the rest" else "all", kind][0] += time
        rooms[room if kind != "link and the rest" else "all", kind][1] += 1
    print("| room | step | seconds | files |\n| --- | --- | ---: | ---: |")
    for (room, kind), (time, count) in sorted(rooms.items(), key=lambda item: -item[1][0]):
        print(f"| {room} | {kind} | {time:.0f} | {count} |")
    print(f"| together | | {sum(seconds.values()):.0f} | {len(seconds)} |")
    for output, time in sorted(seconds.items(), key=lambda item: -item[1])[: options.files]:
        print(f"{time:7.1f}  {output}")


if __name__ == "__main__":
    main()
