# SPDX-License-Identifier: MIT
"""Runs a test package of Debian's ROCm in a guest, program by program, each with a time limit.

    python3 tests/guest/rocm_suite.py PACKAGE [NAME[:FILTER] …]      all programs without names

PACKAGE is, for example, librocrand1-tests or librocprim-tests. It is fetched (once) into
build/guest/suites. FILTER is a filter of GoogleTest, for some tests of a program.

VGPU_SUITE_S: seconds for a program (default 600); one that takes longer is ended, and the results
until then count. Prints a line per program; the outputs stay in build/guest/logs/PACKAGE.
"""
import os
import re
import shutil
import subprocess
import sys

from host import ROOT, Host
from suite import GUEST_ERRORS, LOAD, LOAD_SECONDS, LOGS
from vm import GUEST, Vm

FETCH_SECONDS = 3600
SECONDS = int(os.environ.get('VGPU_SUITE_S', '600'))
TIMED_OUT = (15, 124, 143)  # of timeout(1), and of busybox


def verdict(status, text):
    """(a line about the output of a GoogleTest program, True if nothing failed)"""
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


def fetch(package):
    """Unpacks the package with its dependencies; returns the package's /usr."""
    directory = os.path.join(GUEST, 'suites', package)
    script = '. tests/support/foreign_suite.sh; foreign_suite_fetch "$@"'
    subprocess.run(['bash', '-c', script, 'fetch', directory, 'trixie', package],
                   cwd=ROOT, check=True, timeout=FETCH_SECONDS)
    return os.path.join(directory, 'root', 'usr')


def run_all(tree, programs, names, directory):
    """Runs the programs `names` in the folder `programs` of `tree`, the package's /usr. True if
    nothing failed."""
    good = True
    with Host(directory, vram_mb=2048, aperture_mb=1024) as host:
        socket = host.create_vf('a', vram='1G')
        with Vm([socket], directory, name='a', memory='4G', share=tree) as vm:
            loaded = vm.run(LOAD, LOAD_SECONDS)
            if loaded.status:
                raise SystemExit(f'{LOAD}: {loaded.text}')
            for wanted in names:
                name, _, chosen = wanted.partition(':')
                program = (f'env LD_LIBRARY_PATH=/tests/lib/x86_64-linux-gnu /tests/{programs}/{name} '
                           f"--gtest_color=no '--gtest_filter={chosen or '*'}'")
                answer = vm.run(f'time timeout {SECONDS} in_root {program} 2>&1', SECONDS + 120)
                with open(os.path.join(directory, name + '.txt'), 'w') as log:
                    log.write(answer.text)
                words, is_good = verdict(answer.status, answer.text)
                good = good and is_good
                took = re.search(r'^real\s+(.*)$', answer.text, re.M)
                print(f'{name}: {words} ({took.group(1) if took else "?"})', flush=True)
        errors = {name: sum(vf[name] for vf in host.gpu_stats()['vfs']) for name in GUEST_ERRORS}
        print(', '.join(f'{count} {name.replace("_", " ")}' for name, count in errors.items()))
    return good and not any(errors.values())


def main():
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    package = sys.argv[1]
    tree = fetch(package)
    programs = os.path.join('libexec', 'rocm', package)
    if not os.path.isdir(os.path.join(tree, programs)):
        raise SystemExit(f'{package}: no programs in /usr/{programs}')
    names = sys.argv[2:] or sorted(os.listdir(os.path.join(tree, programs)))
    directory = os.path.join(LOGS, package)
    shutil.rmtree(directory, ignore_errors=True)
    os.makedirs(directory)
    return 0 if run_all(tree, programs, names, directory) else 1


if __name__ == '__main__':
    sys.exit(main())
