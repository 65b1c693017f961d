#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs fuzzers for a long time and counts executions: count.py SECONDS SEED [TARGET[=SECONDS] ...].

The programs are those of the preset `fuzz`, which must be built (ninja -C build/fuzz fuzz_targets).
Without targets all run, one after the other. Inputs are kept in build/corpus, findings next to them.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def run(target, seconds, seed):
    """Runs one fuzzer until its time is over or it finds something: (executions, is clean)"""
    corpus = ROOT / 'build' / 'corpus' / f'fuzz_{target}'
    corpus.mkdir(parents=True, exist_ok=True)
    ran = subprocess.run([ROOT / 'build' / 'fuzz' / 'bin' / f'fuzz_{target}', f'-max_total_time={seconds}',
                          f'-seed={seed}', '-timeout=20', '-rss_limit_mb=2048', '-print_final_stats=1', '-verbosity=0',
                          '-print_funcs=0', '-close_fd_mask=1', f'-artifact_prefix={corpus}-', corpus],
                         stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False, text=True, errors='replace')
    found = re.search(r'stat::number_of_executed_units: (\d+)', ran.stderr)
    executions = int(found[1]) if found else 0
    print(f'{target}: {executions} executions in {seconds} s', end='', flush=True)
    print('' if ran.returncode == 0 else f', FOUND something:\n{ran.stderr[-3000:]}', flush=True)
    return executions, ran.returncode == 0


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    every, seed = int(sys.argv[1]), int(sys.argv[2])
    names = sorted(path.name.removeprefix('fuzz_') for path in (ROOT / 'build' / 'fuzz' / 'bin').glob('fuzz_*'))
    wanted = [word.partition('=') for word in sys.argv[3:] or names]
    ran = [run(target, int(own or every), seed) for target, _, own in wanted]
    print(f'{sum(executions for executions, _ in ran)} executions')
    sys.exit(0 if all(is_clean for _, is_clean in ran) else 1)


main()
