"""Runs the campaign and prints a table of the trials.

    PYTHONPATH=tests python -m survival --trials 3 --seed 1 --only disk summary

Each trial sweeps 256 inputs through the sample of digits, in 32 tasks, with statistics and a
dump, interrupts that at a random moment, goes on with ``--resume`` where the sweep has ended,
and compares all results with those of an undisturbed sweep, bit for bit. The columns: tasks
that were done before the interruption, those of them that were computed again, and tasks that
were computed afterwards. Exit status 1 if a trial lost anything.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
import traceback
import zlib
from pathlib import Path

import numpy as np

from survival.runs import Sweep, make_inputs
from survival.trials import TRIALS, SkippedError, Trial, TrialError

_ROW = "{:10} {:>4}  {:52} {:>6} {:>6} {:>6}  {:5} {:>6}"


def run_trial(name: str, seed: int, inputs: Path, expected: dict[str, object]) -> bool:
    """Run one trial and print its row; return whether nothing was lost."""
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    with tempfile.TemporaryDirectory(prefix="survival-") as folder:
        trial = Trial(inputs, Path(folder), expected, rng)
        began, found = time.monotonic(), "yes"
        try:
            TRIALS[name](trial)
        except SkippedError as exc:
            found, trial.where = "-", str(exc)
        except TrialError as exc:
            found = f"NO: {exc}"
        except Exception:
            found = f"NO: {traceback.format_exc()}"
        finally:
            trial.close()
        if trial.again and found == "yes":
            found = "NO: finished tasks were computed again"
        seconds = f"{time.monotonic() - began:.0f} s"
        numbers = trial.before, trial.again, trial.after
        print(_ROW.format(name, seed, trial.where, *numbers, found, seconds), flush=True)
    return not found.startswith("NO")


def main() -> int:
    """Run what the command line asks for; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=3, help="of each kind")
    parser.add_argument("--seed", type=int, default=1, help="of the first trial of each kind")
    parser.add_argument("--inputs", type=int, default=256)
    parser.add_argument("--only", nargs="+", choices=TRIALS, default=[*TRIALS])
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="survival-") as name:
        folder = Path(name)
        os.environ["KUIPER_STUDIO_CACHE"] = str(folder / "cache")  # leave the user's alone
        make_inputs(folder / "inputs", arguments.inputs, np.random.default_rng(0))
        undisturbed = Sweep(folder / "inputs", folder / "undisturbed", ("--workers", "0"))
        undisturbed.start()
        ended = undisturbed.finish()
        if ended.status:
            print(ended.said)
            return ended.status
        expected = undisturbed.results()
        print(_ROW.format("trial", "seed", "", "before", "again", "after", "equal", ""))
        outcomes = [
            run_trial(name, arguments.seed + number, folder / "inputs", expected)
            for name in arguments.only
            for number in range(arguments.trials)
        ]
    print(f"{outcomes.count(True)} of {len(outcomes)} trials lost nothing")
    return int(not all(outcomes))


if __name__ == "__main__":
    sys.exit(main())
