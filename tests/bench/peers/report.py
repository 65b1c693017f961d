# SPDX-License-Identifier: MIT
"""Writes the report of a comparison as text: a table of speeds and ratios, then the figures that
have an aim (docs/performance.md). It gives no verdict.
"""
import math

from implementations import (BOTH, COMPARED, FLAT, GPUVM, INTERPRETED, OCLGRIND, POCL, RUSTICL,
                             SOFTGPU, SOFTGPU_ONE)

NONE = '-'
PEERS = (OCLGRIND, POCL, RUSTICL, INTERPRETED)


def short(rate):
    """1234567 -> '1.23 M'."""
    if rate is None:
        return NONE
    for prefix, factor in (('G', 1e9), ('M', 1e6), ('k', 1e3)):
        if rate >= factor:
            return f'{rate / factor:.3g} {prefix}'
    return f'{rate:.3g}'


def ratio(figures, name, other):
    """How many times faster `name` is than `other`; None if one of them has no figure."""
    rates = [figures[each].rate if each in figures else None for each in (name, other)]
    return None if None in rates else rates[0] / rates[1]


def times(value):
    return NONE if value is None else f'{value:.3g}x'


def geometric_mean(values):
    known = [value for value in values if value is not None]
    return math.exp(sum(map(math.log, known)) / len(known)) if known else None


def smallest(values):
    return min((value for value in values if value is not None), default=None)


def columns(rows):
    """Rows of cells, padded: the first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    return [('  ' + '  '.join([row[0].ljust(widths[0])] +
                              [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])])
             ).rstrip() for row in rows]


def speeds(results):
    """One line a workload: units of work per second, then softgpu's ratios."""
    names = [each.name for each in COMPARED]
    rows = [['workload', 'unit/s', *names, *(f'x {peer}' for peer in PEERS)]]
    for workload, figures in results:
        cells = []
        for name in names:
            figure = figures.get(name)
            mark = '' if figure is None or figure.rate is None or figure.is_steady else '~'
            cells.append(mark + short(figure.rate if figure else None))
        rows.append([workload['name'], workload['unit'], *cells,
                     *(times(ratio(figures, SOFTGPU, peer)) for peer in PEERS)])
    means = [times(geometric_mean(ratio(f, SOFTGPU, peer) for _, f in results)) for peer in PEERS]
    rows.append(['geometric mean', '', *([''] * len(names)), *means])
    return columns(rows)


def engine(results):
    """One line a workload: instructions, threads, what translation costs."""
    rows = [['workload', 'wave64 inst/s/thread', '2 threads / 1', '2 engines / 1', 'engine alone',
             'TLB share']]
    for workload, figures in results:
        one, alone = (figures.get(name) for name in (SOFTGPU_ONE, GPUVM))
        rows.append([workload['name'], short(one.instruction_rate if one else None),
                     times(ratio(figures, SOFTGPU, SOFTGPU_ONE)),
                     times(ratio(figures, BOTH, GPUVM)),
                     short(alone.instruction_rate if alone else None), percent(share(figures))])
    return columns(rows)


def share(figures):
    """The part of the engine's time that translation of addresses takes; None without both
    figures."""
    faster = ratio(figures, FLAT, GPUVM)
    return None if faster is None else 1 - 1 / faster


def percent(value):
    return NONE if value is None else f'{100 * value:.0f} %'


MEMORY_BOUND = ('saxpy', 'matmul', 'matmul-lds', 'reduce', 'stencil')


def aims(results):
    """The aims of docs/performance.md beside the measured figures."""
    by_name = dict((workload['name'], figures) for workload, figures in results)

    def each(name, other):
        return [ratio(figures, name, other) for figures in by_name.values()]

    def instructions(is_memory_bound):
        return smallest(figures[SOFTGPU_ONE].instruction_rate
                        for name, figures in by_name.items()
                        if (name in MEMORY_BOUND) == is_memory_bound and SOFTGPU_ONE in figures)

    threads = each(SOFTGPU, SOFTGPU_ONE)
    rows = [
        ['figure', 'measured', 'aim'],
        ['slowest kernel / oclgrind', times(smallest(each(SOFTGPU, OCLGRIND))), '>= 300x'],
        ['geometric mean / oclgrind', times(geometric_mean(each(SOFTGPU, OCLGRIND))), '>= 1300x'],
        ['slowest kernel / PoCL, 2 threads each', times(smallest(each(SOFTGPU, POCL))), '>= 0.4x'],
        ['geometric mean / PoCL, 2 threads each', times(geometric_mean(each(SOFTGPU, POCL))),
         '>= 1x (1.5x)'],
        ['geometric mean / rusticl, 2 threads each', times(geometric_mean(each(SOFTGPU, RUSTICL))),
         ''],
        ['slowest ALU kernel, wave64 inst/s/thread', short(instructions(False)), '>= 400 M'],
        ['slowest memory kernel, wave64 inst/s/thread', short(instructions(True)), ''],
        ['two threads / one, slowest kernel', times(smallest(threads)), '>= 1.8x'],
        ['two threads / one, geometric mean', times(geometric_mean(threads)), '>= 1.8x'],
        ['two engines at once / one, geometric mean', times(geometric_mean(each(BOTH, GPUVM))),
         'what this machine has'],
        ['TLB share of saxpy', percent(share(by_name.get('saxpy', {}))), '<= 15 %'],
    ]
    return columns(rows)


def remarks(results, skipped):
    lines = [f'  skipped: {name}: {reason}' for name, reason in skipped.items()]
    for workload, figures in results:
        lines += [f'  {workload["name"]}, {name}: {figure.failure}'
                  for name, figure in figures.items() if figure.failure]
    if any(figure.rate is not None and not figure.is_steady
           for _, figures in results for figure in figures.values()):
        lines.append('  ~: the rounds of this worker differ more than twofold: the machine is not quiet')
    return lines


def text(results, skipped, conditions):
    parts = [[conditions], speeds(results), engine(results), aims(results),
             remarks(results, skipped)]
    return '\n\n'.join('\n'.join(part) for part in parts if part) + '\n'
