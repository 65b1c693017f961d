# SPDX-License-Identifier: MIT
"""One worker process; worker.h describes requests and answers."""
import json
import os
import select
import signal
import subprocess
import time

START_SECONDS = 60
RUN_SECONDS = 180
NICE = -10  # as softgpu's own if the host allows it, so that no worker has priority over another


class Failed(Exception):
    """The worker failed; the text is for the report."""


def raise_priority():
    try:
        os.setpriority(os.PRIO_PROCESS, 0, NICE)
    except PermissionError:
        pass  # softgpu cannot raise its own either


class Worker:
    def __init__(self, implementation, binaries, logs):
        self.name = implementation.name
        self.is_slow, self.like = implementation.is_slow, implementation.like
        self.log = os.path.join(logs, f'{self.name.replace("/", "-").replace(", ", "-")}.log')
        self.pending = b''
        with open(self.log, 'wb') as log:
            self.process = subprocess.Popen(
                implementation.argv(binaries), env=implementation.variables(logs),
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
                start_new_session=True, preexec_fn=raise_priority)
        greeting = self.read(START_SECONDS)
        self.description, self.workloads = greeting['ready'], greeting['workloads']

    def read(self, seconds):
        """The worker's next JSON object; other lines are messages of the implementation."""
        end = time.monotonic() + seconds
        while True:
            line, found, rest = self.pending.partition(b'\n')
            if found:
                self.pending = rest
                if line.startswith(b'{'):
                    return json.loads(line)
                continue
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                self.stop()
                raise Failed(f'no answer within {seconds} s')
            part = os.read(self.process.stdout.fileno(), 65536)
            if not part:
                raise Failed(self.last_words())
            self.pending += part

    def last_words(self):
        status = self.process.wait(10)
        with open(self.log, encoding='utf-8', errors='replace') as log:
            lines = [line.strip() for line in log if line.strip()]
        return lines[-1] if lines else f'ended with status {status}'

    def measure(self, workload, size, runs):
        """Seconds, units of work, and wave instructions if they are counted. Failed if words are
        wrong."""
        self.ask(workload, size, runs)
        return self.answer()

    def ask(self, workload, size, runs):
        request = {'workload': workload, 'size': size, 'runs': runs}
        try:
            self.process.stdin.write(json.dumps(request).encode() + b'\n')
            self.process.stdin.flush()
        except BrokenPipeError:
            raise Failed(self.last_words()) from None

    def answer(self):
        answer = self.read(RUN_SECONDS)
        if 'error' in answer:
            raise Failed(answer['error'].strip().splitlines()[0])
        if answer['wrong_words']:
            raise Failed(f'wrong result: {answer["wrong_words"]} words')
        return answer

    @property
    def is_alive(self):
        return self.process.poll() is None

    def stop(self):
        """Closes the worker's input; kills the worker and its programs if that does not end it."""
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
