# SPDX-License-Identifier: MIT
"""A peer's tests in a guest: Debian's rocRAND suite, program by program, each with a limit.

    python3 tests/guest/rocrand.py [NAME[:FILTER] …]      all programs without names

FILTER is GoogleTest's, for some tests of a program.

VGPU_ROCRAND_S: seconds for a program (default 600); one that takes longer is ended, and what its tests
said until then counts. Prints a line per program; the outputs stay in build/guest/logs/rocrand.
"""
import os
import re
import shutil
import sys

from host import Host
from suite import LOAD, LOAD_SECONDS, LOGS
from vm import GUEST, Vm

PROGRAMS = '/usr/libexec/rocm/librocrand1-tests'
SECONDS = int(os.environ.get('VGPU_ROCRAND_S', '600'))
TIMED_OUT = (15, 124, 143)  # of timeout(1), and of busybox


def verdict(status, text):
    """One line for what a program of GoogleTest said; True if nothing failed."""
    passed = len(re.findall(r'^\[ +OK \]', text, re.M))
    skipped = len(set(re.findall(r'^\[  SKIPPED \] (\S+)', text, re.M)))
    failed = sorted(set(re.findall(r'^\[  FAILED  \] (\S+?),? ', text + ' ', re.M)) - {'1', '2'})
    planned = re.search(r'Running (\d+) tests?', text)
    words = f'{passed} of {planned.group(1) if planned else "?"} passed'
    if skipped:
        words += f', {skipped} skipped'
    if failed:
        words += f', failed: {" ".join(failed)}'
    if status in TIMED_OUT:
        words += f', ended after {SECONDS} s'
    elif status:
        words += f', status {status}'
    return words, not failed and status in (0, *TIMED_OUT)


def run_all(names, directory):
    """True if nothing failed."""
    good = True
    with Host(directory, vram_mb=2048, aperture_mb=1024) as host:
        with Vm([host.create_vf('a', vram='1G')], directory, name='a', memory='4G') as vm:
            loaded = vm.run(LOAD, LOAD_SECONDS)
            if loaded.status:
                raise SystemExit(f'{LOAD}: {loaded.text}')
            for wanted in names:
                name, _, chosen = wanted.partition(':')
                program = f"{PROGRAMS}/{name} --gtest_color=no '--gtest_filter={chosen or '*'}'"
                answer = vm.run(f'time timeout {SECONDS} in_root {program} 2>&1', SECONDS + 120)
                with open(os.path.join(directory, name + '.txt'), 'w') as log:
                    log.write(answer.text)
                words, is_good = verdict(answer.status, answer.text)
                good = good and is_good
                took = re.search(r'^real\s+(.*)$', answer.text, re.M)
                print(f'{name}: {words} ({took.group(1) if took else "?"})', flush=True)
        unknown = sum(vf['illegal_instructions'] for vf in host.gpu_stats()['vfs'])
        print(f'{unknown} illegal instructions')
    return good and not unknown


def main():
    names = sys.argv[1:] or sorted(os.listdir(os.path.join(GUEST, 'system', 'root' + PROGRAMS)))
    directory = os.path.join(LOGS, 'rocrand')
    shutil.rmtree(directory, ignore_errors=True)
    os.makedirs(directory)
    return 0 if run_all(names, directory) else 1


if __name__ == '__main__':
    sys.exit(main())
