# SPDX-License-Identifier: MIT
"""Measures how long each worker needs for a workload, with sizes that fit its speed.

A worker's size is the first that takes more than a quarter of SECONDS (or SLOW_SECONDS), or else
the largest. A run has as many dispatches of this size, one after the other, as fill the time. All
workers run once a round, so that a stall of the machine affects all. A worker's speed is that of
its best round, because a stall only adds time.
"""
from dataclasses import dataclass, field

from implementations import BOTH, GPUVM, SECOND
from worker import Failed

ROUNDS = 5
SECONDS, SLOW_SECONDS = 0.3, 1.0
MAX_RUNS = 200
STEADY = 2.0  # best and worst round of a quiet machine differ by less


@dataclass
class Figure:
    """What one worker did with one workload."""
    size: int = 0
    runs: int = 0
    rounds: list = field(default_factory=list)  # the worker's answers
    failure: str = ''

    @property
    def best(self):
        return min(self.rounds, key=lambda answer: answer['seconds'])

    @property
    def rate(self):
        """Units of work per second; None if there is no figure."""
        return None if self.failure or not self.rounds else self.best['work'] / self.best['seconds']

    @property
    def instruction_rate(self):
        if self.rate is None or 'wave_instructions' not in self.best:
            return None
        return self.best['wave_instructions'] / self.best['seconds']

    @property
    def is_steady(self):
        seconds = [answer['seconds'] for answer in self.rounds]
        return max(seconds) <= STEADY * min(seconds)


def fit(worker, workload):
    """Returns (size, number of runs) that together take about SECONDS, or SLOW_SECONDS for a slow
    worker."""
    sizes, may = workload['sizes'], SLOW_SECONDS if worker.is_slow else SECONDS

    def seconds(size):
        return worker.measure(workload['name'], size, 1)['seconds']

    at = 0
    while True:
        spent = seconds(sizes[at])
        if spent > may / 4 and not worker.is_slow:
            spent = min(spent, seconds(sizes[at]))  # it may have been a stall
        if spent > may / 4 or at + 1 == len(sizes):
            break
        # each size is less than four times the work of the one before
        at = min(at + (3 if spent < may / 100 else 1), len(sizes) - 1)
    return sizes[at], max(1, min(MAX_RUNS, round(may / spent)))


def run_both(workers, workload, figures):
    """Runs two engines that share nothing at once; no program gains more from a second CPU."""
    pair = [worker for worker in workers if worker.name in (GPUVM, SECOND)]
    model = figures.get(GPUVM)
    if len(pair) < 2 or any(figures[worker.name].failure for worker in pair):
        return
    try:
        for worker in pair:
            worker.ask(workload['name'], model.size, model.runs)
        answers = [worker.answer() for worker in pair]
    except Failed as failed:
        figures[BOTH].failure = str(failed)
        return
    figures[BOTH].rounds.append({'work': sum(answer['work'] for answer in answers),
                                 'seconds': max(answer['seconds'] for answer in answers)})


def compare(workers, workload, rounds=ROUNDS):
    """{worker's name: Figure}. A worker that fails is left out of the rounds that follow."""
    figures = {name: Figure() for name in [*(worker.name for worker in workers), BOTH]}

    def attempt(worker, act):
        figure = figures[worker.name]
        if figure.failure:
            return
        try:
            if not worker.is_alive:
                raise Failed('the worker has ended: ' + worker.last_words())
            act(worker, figure)
        except Failed as failed:
            figure.failure = str(failed)

    def choose(worker, figure):
        model = figures.get(worker.like, figure)
        figure.size, figure.runs = ((model.size, model.runs) if model.size
                                    else fit(worker, workload))

    def run(worker, figure):
        figure.rounds.append(worker.measure(workload['name'], figure.size, figure.runs))

    for worker in workers:
        attempt(worker, choose)
    for _ in range(rounds):
        for worker in workers:
            attempt(worker, run)
        run_both(workers, workload, figures)
    return figures
