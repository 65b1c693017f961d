# SPDX-License-Identifier: MIT
"""Guests: one process of the user-space VF driver (tests/support/vf_guest) for each VF.

A guest carries out orders one after the other while the schedule continues; its answers become
events of the history. Each VF's VRAM holds a canary: words from a seed that no other VF has.
"""
import os
import signal
import subprocess

TIME_SCALE = '4'
BLANK = 0  # the seed of VRAM that no guest has written


class Guest:
    """The guest of VF `index`. With a driver it computes until stop(); without one it only fills VRAM."""

    def __init__(self, stack, history, name, index, has_driver=True):
        self.stack, self.history, self.name, self.index, self.has_driver = stack, history, name, index, has_driver
        self.process = None
        self.orders, self.pending = [], b''
        self.is_computing = False
        self.seed = BLANK
        self.may_be_blank = False  # the device lost its memory, or may have
        self.is_canary_known = True
        self.next_seed = index
        self.resets = []  # World.resets() of the VF when the guest was started

    @property
    def region(self):
        return 'rest' if self.has_driver else 'all'

    def start(self, orders=None):
        """Starts the process with `orders`; default: check the canary, write a new one, compute."""
        self.kill()
        self.process = subprocess.Popen(
            [self.stack.program('vf-guest'), self.stack.socket_of(f'vf{self.index}')], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={**os.environ, 'VGPU_TEST_TIME_SCALE': TIME_SCALE})
        os.set_blocking(self.process.stdout.fileno(), False)
        self.pending = b''
        self.orders = [('', 'attached')] + (self.usual_orders() if orders is None else orders)

    def usual_orders(self):
        self.next_seed += 16
        orders = self.look_orders() + [(f'fill {self.next_seed} {self.region}', 'filled')]
        if self.has_driver:
            orders += [('boot', 'booted'), ('prepare 6', 'prepared'), ('compute', 'computed')]
        return orders

    def look_orders(self):
        if not self.is_canary_known:
            return []
        orders = [(f'blank {self.region}', 'blank')]
        if self.seed != BLANK:
            orders.insert(0, (f'check {self.seed} {self.region}', 'kept'))
        return orders

    def look(self):
        """Orders a check of the canary."""
        self.order(*self.look_orders())

    def order(self, *orders):
        is_idle = not self.orders
        self.orders += orders
        if is_idle:
            self.say(self.orders[0][0])

    def say(self, order):
        try:
            self.process.stdin.write(order.encode() + b'\n')
            self.process.stdin.flush()
        except OSError:
            self.fail('is gone')
        if order.startswith('fill'):
            self.is_canary_known = False
        self.is_computing = order == 'compute'

    def stop(self):
        """Ends the computation; poll() gets its result."""
        if self.is_computing:
            self.is_computing = False
            self.process.stdin.write(b'\n')
            self.process.stdin.flush()

    def kill(self):
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process.stdout.close()
            try:
                self.process.stdin.close()
            except OSError:
                pass
        self.process, self.orders, self.is_computing = None, [], False

    def freeze(self):
        """Stops the guest, as a VMM stops its vCPUs."""
        if self.process:
            self.process.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def thaw(self):
        if self.process:
            self.process.send_signal(signal.SIGCONT)

    def fail(self, reason):
        self.history.add('guest', vf=self.name, text=reason)
        self.kill()

    @property
    def is_idle(self):
        return self.process is not None and not self.orders

    def poll(self):
        """Reads all answers that have come."""
        while self.process:
            try:
                data = os.read(self.process.stdout.fileno(), 4096)
            except BlockingIOError:
                return
            if not data:
                self.fail('is gone')
                return
            self.pending += data
            while self.process and b'\n' in self.pending:
                line, self.pending = self.pending.split(b'\n', 1)
                self.answer(line.decode())

    def answer(self, line):
        order, expected = self.orders.pop(0)
        self.is_computing = False
        words = line.split()
        if words[:1] != [expected]:
            self.fail(f'{order or "attach"}: {line}')
            return
        if expected == 'computed':
            self.history.add('computed', vf=self.name, rounds=int(words[1]), wrong=int(words[3]))
        elif expected == 'stopped':
            self.history.add('attack', vf=self.name, order=order, stopped=int(words[1]))
        elif expected in ('kept', 'blank'):
            self.note_canary(expected, int(words[1]), int(words[3]))
        elif expected == 'filled':
            self.seed, self.is_canary_known, self.may_be_blank = int(order.split()[1]), True, False
        if self.orders:
            self.say(self.orders[0][0])

    kept = 0

    def note_canary(self, kind, pages, total):
        """Makes one event from the two answers to look()."""
        if kind == 'kept':
            self.kept = pages
            return
        self.history.add('canary', vf=self.name, seed=self.seed, pages=total, blank=pages,
                         kept=self.kept if self.seed != BLANK else 0, may_be_blank=self.may_be_blank)
        self.kept = 0

    def lose_vram(self):
        """The device may have lost its memory."""
        self.may_be_blank = True

    def get_new_vram(self):
        """From now on the VF belongs to a new tenant, who must find only zeroes."""
        self.seed, self.is_canary_known, self.may_be_blank = BLANK, True, False
