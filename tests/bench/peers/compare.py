# SPDX-License-Identifier: MIT
"""Compares softgpu with other implementations of OpenCL on this machine, in one run.

usage: compare.py BINARIES OUTPUT [WORKLOAD...]

BINARIES is the bin/ of a release build. compare.py writes peers.txt, peers.json, peers.svg and the
workers' logs into OUTPUT. Without names, it runs all workloads. The exit status is 1 if softgpu was
not measured.
"""
import datetime
import json
import os
import platform
import sys

import picture
import report
from implementations import COMPARED, ENGINES, SOFTGPU
from measurement import compare
from worker import Failed, Worker


def start_all(binaries, output):
    """Starts the workers; returns them, and {name: reason} of those that are missing."""
    workers, skipped = [], {}
    for each in COMPARED + ENGINES:
        reason = each.why_not(binaries)
        try:
            if not reason:
                workers.append(Worker(each, binaries, output))
        except Failed as failed:
            reason = str(failed)
        if reason:
            skipped[each.name] = reason
            print(f'  skipped: {each.name}: {reason}', flush=True)
    return workers, skipped


def conditions():
    """Date, CPU and load of the machine, for the reader of the figures."""
    model = platform.machine()
    with open('/proc/cpuinfo', encoding='utf-8') as info:
        for line in info:
            if line.startswith('model name'):
                model = line.split(':', 1)[1].strip()
                break
    return (f'{datetime.date.today()}, {model}, {os.cpu_count()} CPUs, '
            f'load before {os.getloadavg()[0]:.1f}')


def as_json(results, skipped, where):
    return {'conditions': where, 'skipped': skipped,
            'workloads': [{'name': workload['name'], 'unit': workload['unit'],
                           'figures': {name: {**vars(figure), 'rate': figure.rate}
                                       for name, figure in figures.items()}}
                          for workload, figures in results]}


def write(output, name, content):
    with open(os.path.join(output, name), 'w', encoding='utf-8') as file:
        file.write(content)


def wanted_workloads(workers, names):
    known = {workload['name']: workload for workload in workers[0].workloads}
    for name in names:
        if name not in known:
            sys.exit(f'compare.py: no workload {name}; there are: {" ".join(known)}')
    return [known[name] for name in names or known]


def main(binaries, output, *names):
    os.makedirs(output, exist_ok=True)
    where = conditions()
    workers, skipped = start_all(binaries, output)
    try:
        if not workers or workers[0].name != SOFTGPU:
            sys.exit('compare.py: nothing to compare without softgpu')
        results = []
        for workload in wanted_workloads(workers, names):
            print(f'  {workload["name"]} …', flush=True)
            results.append((workload, compare(workers, workload)))
            # keep the results so far, in case a later workload fails
            write(output, 'peers.txt', report.text(results, skipped, where))
            write(output, 'peers.json', json.dumps(as_json(results, skipped, where), indent=1))
            write(output, 'peers.svg', picture.svg(results, f'OpenCL kernels, {where}'))
    finally:
        for worker in workers:
            worker.stop()
    print(report.text(results, skipped, where), end='')
    return 0 if all(figures[SOFTGPU].rate for _, figures in results) else 1


if __name__ == '__main__':
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
