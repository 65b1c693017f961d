# SPDX-License-Identifier: MIT
"""A guest of a VF outside the machine: the process vf-guest (tests/support/vf_guest) on the VF's socket.

    with VfGuest(card.path('vf1.sock')) as guest:
        guest.boot()
        guest.order('compute')
        ...
        rounds, wrong = guest.end_compute()
"""
import os
import select
import subprocess
import time

from machine import BIN

# factor for the limits of the user-space driver, which are those of the stock driver
TIME_SCALE = 20
ORDER_SECONDS = 240


class VfGuest:
    def __init__(self, socket_path):
        self.process = subprocess.Popen(
            [os.path.join(BIN, 'vf-guest'), socket_path], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, env={**os.environ, 'VGPU_TEST_TIME_SCALE': str(TIME_SCALE)})
        self.pending = b''
        self.expect(self.answer(), 'attached')

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(timeout=30)
        self.process.stdin.close()
        self.process.stdout.close()

    @staticmethod
    def expect(answer, start):
        if not answer.startswith(start):
            raise AssertionError(f'the guest said {answer!r}, not {start}')

    def order(self, order):
        """Sends an order; answer() reads the answer."""
        self.process.stdin.write(order.encode() + b'\n')
        self.process.stdin.flush()

    def answer(self, seconds=ORDER_SECONDS):
        deadline = time.monotonic() + seconds
        while b'\n' not in self.pending:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                raise AssertionError(f'the guest did not answer in {seconds} s')
            data = os.read(self.process.stdout.fileno(), 4096)
            if not data:
                raise AssertionError('the guest is gone')
            self.pending += data
        line, self.pending = self.pending.split(b'\n', 1)
        return line.decode()

    def ask(self, order):
        self.order(order)
        return self.answer()

    def boot(self):
        self.expect(self.ask('boot'), 'booted')

    def endless(self):
        self.expect(self.ask('endless'), 'endless')

    def progress(self):
        return int(self.ask('progress').split()[1])

    def end_compute(self):
        """Ends `compute`; returns the numbers of right and of wrong rounds."""
        self.order('')
        words = self.answer().split()
        if words[0] != 'computed':
            raise AssertionError(f'the guest said {" ".join(words)!r}')
        return int(words[1]), int(words[3])
