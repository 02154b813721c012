# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How often is a verdict wrong, and how often is there none? Simulated runs whose true change is known.

    python benchmarks/verdict.py [--trials 10000] [--runs 3 5 7]

Each trial draws warm runs before and after, scattered by the noise (standard deviation of one run), and asks for a
verdict. It is wrong when it says worse though less than the threshold was lost, or better though nothing was won, or
the same though more than the threshold was lost. A second table shows what no number of runs in one start can see: a
shift of the whole start.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY / "plugins" / "module_utils"))

from _verdict.compare import (  # type: ignore[import-not-found, unused-ignore]  # noqa: E402
    BETTER,
    NO_VERDICT,
    SAME,
    WORSE,
    Measurement,
    Policy,
    compare,
)

BEFORE = 3740.0
NOISES = (0.02, 0.05, 0.07)
CHANGES = (0.0, -0.04, -0.10, -0.30, -0.94)
RESULTS = (BETTER, SAME, WORSE, NO_VERDICT)


def drawn(dice: random.Random, middle: float, noise: float, runs: int, shift: float) -> Measurement:
    """The warm runs of one start, which as a whole lies off by `shift` (standard deviation)."""
    start = middle * max(0.0, dice.gauss(1, shift))
    return Measurement([start * max(0.0, dice.gauss(1, noise)) for _run in range(runs)], cold=0)


def simulate(trials: int, runs: int, noise: float, change: float, shift: float = 0.0) -> Counter[str]:
    """The verdicts by result, over so many trials; the same for the same arguments."""
    dice = random.Random(f"{runs} {noise} {change} {shift}")
    results: Counter[str] = Counter()
    for _trial in range(trials):
        before = drawn(dice, BEFORE, noise, runs, shift)
        after = drawn(dice, BEFORE * (1 + change), noise, runs, shift)
        results[compare(after, before).result] += 1
    return results


def wrong(results: Counter[str], change: float, threshold: float) -> int:
    """How many verdicts are wrong. At the threshold itself neither worse nor the same is."""
    if abs(change) < threshold:
        return results[BETTER] + results[WORSE]
    return results[BETTER] + (results[SAME] if abs(change) > threshold else 0)


def row(results: Counter[str], change: float, trials: int) -> str:
    """One line of a table, in percent."""
    shares = [results[result] / trials for result in RESULTS]
    bad = wrong(results, change, Policy().threshold) / trials
    return " | ".join([f"{change:+.0%}", *(f"{share:.2%}" for share in (*shares, bad))])


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=10_000)
    parser.add_argument("--runs", type=int, nargs="+", default=[3, 5, 7])
    options = parser.parse_args()
    policy = Policy()
    print(f"{options.trials} trials each; threshold {policy.threshold:.0%}, at least {policy.spreads:g} x the spread\n")
    head = " | ".join(["warm runs", "noise", "true change", *RESULTS, "wrong"])
    print(f"{head}\n{'---|' * head.count('|')}---")
    for runs in options.runs:
        for noise in NOISES:
            for change in CHANGES:
                results = simulate(options.trials, runs, noise, change)
                print(f"{runs} | {noise:.0%} | {row(results, change, options.trials)}", flush=True)
    print("\nA whole start that lies off (5 warm runs, noise 2 %, no true change):\n")
    print(f"shift of a start | true change | {' | '.join(RESULTS)} | wrong\n{'---|' * 6}---")
    for shift in (0.01, 0.03, 0.05, 0.07):
        results = simulate(options.trials, 5, 0.02, 0.0, shift)
        print(f"{shift:.0%} | {row(results, 0.0, options.trials)}", flush=True)


if __name__ == "__main__":
    main()
