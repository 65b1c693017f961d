# SPDX-License-Identifier: MIT
"""Draws the comparison as SVG: one bar for each workload and implementation, with the logarithm of
the speed."""
import math
from xml.sax.saxutils import escape

from implementations import COMPARED

LEFT, WIDTH, RIGHT, TOP, BAR, GAP = 110, 720, 90, 58, 12, 14
COLOURS = ('#1f77b4', '#9ecae1', '#c6dbef', '#7f7f7f', '#ff7f0e', '#2ca02c')


def label(x, y, words, more=''):
    return f'<text x="{x:.0f}" y="{y:.0f}" {more}>{escape(words)}</text>'


def relative_rates(figures):
    """[(index of the implementation, speed as a multiple of the slowest)]."""
    rates = [(i, figures[each.name].rate) for i, each in enumerate(COMPARED)
             if each.name in figures and figures[each.name].rate is not None]
    slowest = min((rate for _, rate in rates), default=1)
    return [(i, rate / slowest) for i, rate in rates]


def legend():
    parts, x = [], LEFT
    for each, colour in zip(COMPARED, COLOURS):
        parts.append(f'<rect x="{x}" y="30" width="12" height="12" fill="{colour}"/>')
        parts.append(label(x + 16, 40, each.name))
        x += 40 + 8 * len(each.name)
    return parts


def bars(results, decades):
    parts, y = [], TOP
    for workload, figures in results:
        rates = relative_rates(figures)
        parts.append(label(8, y + BAR * len(rates) / 2 + 4, workload['name']))
        for i, times in rates:
            length = max(1.0, WIDTH * math.log10(times) / decades)
            parts.append(f'<rect x="{LEFT}" y="{y}" width="{length:.1f}" height="{BAR - 2}" '
                         f'fill="{COLOURS[i]}"/>')
            parts.append(label(LEFT + length + 4, y + BAR - 3, f'{times:.3g}x', 'font-size="9"'))
            y += BAR
        y += GAP
    return parts, y


def axis(decades, bottom):
    parts = []
    for decade in range(decades + 1):
        x = LEFT + WIDTH * decade / decades
        parts.append(f'<line x1="{x:.0f}" y1="{TOP - 6}" x2="{x:.0f}" y2="{bottom}" stroke="#ddd"/>')
        parts.append(label(x, bottom + 14, f'{10 ** decade}x', 'text-anchor="middle" fill="#666"'))
    return parts


def svg(results, title):
    fastest = max((times for _, figures in results for _, times in relative_rates(figures)),
                  default=10)
    decades = max(1, math.ceil(math.log10(fastest)))
    drawn, bottom = bars(results, decades)
    head = (f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + RIGHT}" '
            f'height="{bottom + 24}" font-family="sans-serif" font-size="12">')
    return '\n'.join([head, '<rect width="100%" height="100%" fill="#fff"/>',
                      label(8, 18, title, 'font-size="14"'), *legend(), *axis(decades, bottom),
                      *drawn, '</svg>', ''])
