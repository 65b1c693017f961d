# SPDX-License-Identifier: MIT
"""Base of the suites with work on the engine, which the module in the machine schedules.

The guests are processes outside the machine (vf_guest.py), each with a VF's socket. Requests to the
PF go through sysfs and the uapi.
"""
import base64
import json
import socket
import time

import uapi
from card_test import CardTest
from vf_guest import VfGuest

MIB = 1 << 20
WINDOW_SECONDS = 15
RESET_SECONDS = 120  # the PF first waits for a guest that does not answer
COUNTERS = ('service_ns', 'state', 'flrs', 'guest_flrs', 'hangs', 'faults', 'switches', 'attached', 'has_work',
            'doorbells_latched', 'vram_bytes', 'doorbell_pages', 'guard_level')


class Work:
    """For test cases with `vm`, `card` and `vfs`, after start_shell()."""
    expected_warnings = (
        (r'world switch \d+ -> \d+ failed, command [45], status 0x2',
         'a guest that ends or is reset by its VMM takes its state with it, also out of a switch'),
        (r"guard limit '(flr|exclusive)' exceeded, level \d", 'VFs are reset, and their drivers loaded, more often than a guest may'))

    @classmethod
    def start_shell(cls):
        """Starts a Python in the machine, with the uapi open."""
        cls.vm.check('mkfifo /r/tmp/ask /r/tmp/reply; in_root env PYTHONPATH=/tests python3 -B '
                     '/tests/uapi_shell.py /tmp/ask /tmp/reply > /dev/null 2>&1 &')

    # ---- the PF ----

    def python(self, script, timeout=300):
        """Runs statements in the machine; `pf` is the uapi."""
        packed = base64.b64encode(script.encode()).decode()
        answer = self.vm.check(f'echo {packed} > /r/tmp/ask; cat /r/tmp/reply', timeout)
        self.assertFalse(answer.startswith('failed:'), answer)
        return answer

    def counters(self):
        """COUNTERS of GET_VF, by VF."""
        script = (f'all = [pf.vf(n) for n in range(1, {self.vfs + 1})]\n'
                  f'print(json.dumps([{{k: getattr(vf, k) for k in {COUNTERS}}} for vf in all]))')
        return dict(enumerate(json.loads(self.python(script)), start=1))

    def service(self, seconds=WINDOW_SECONDS):
        """Engine time of each VF during a window, ns."""
        script = (f'read = lambda: [pf.vf(n).service_ns for n in range(1, {self.vfs + 1})]\n'
                  f'before = read(); time.sleep({seconds}); after = read()\n'
                  'print(json.dumps([b - a for a, b in zip(before, after)]))')
        return dict(enumerate(json.loads(self.python(script)), start=1))

    def reset(self, *vfs):
        """Requests the FLR of VFs at the same time; returns when all are done."""
        before = self.counters()
        self.python('with futures.ThreadPoolExecutor() as pool:\n'
                    f'    list(pool.map(lambda n: uapi.Pf().control(n, uapi.RESET), {vfs!r}))')
        self.await_reset(before, *vfs)

    def await_reset(self, before, *vfs):
        """Waits until VFs have been reset since the counters `before`."""
        deadline = time.monotonic() + RESET_SECONDS
        while True:
            after = self.counters()
            if all(after[vf]['state'] == uapi.PROVISIONED and after[vf]['flrs'] > before[vf]['flrs'] for vf in vfs):
                return
            self.assertLess(time.monotonic(), deadline, f'not reset: {after}')

    def watch_runs(self):
        """Begins the observation of runs, for runs()."""
        self.python('uapi.ring = uapi.Ring(pf)')

    def runs(self):
        """Runs that have ended since watch_runs() or the last call: [(first ns, last ns, VF)]"""
        return json.loads(self.python(
            'events = uapi.ring.take()\n'
            'assert [event.seq for event in events] == list(range(events[0].seq, events[0].seq + len(events)))\n'
            'print(json.dumps([(event.time_ns - event.duration_ns, event.time_ns, event.vf) for event in events '
            'if event.type == uapi.EVENT_RUN]))'))

    def control(self, order):
        """Sends one order to softgpu's control socket; returns the answer."""
        with socket.socket(socket.AF_UNIX) as control:
            control.settimeout(60)
            control.connect(self.card.path('control.sock'))
            control.sendall(json.dumps(order).encode() + b'\n')
            with control.makefile() as answers:
                return json.loads(answers.readline())

    def inject(self, order):
        self.assertEqual(self.control(order), {'ok': True})

    # ---- guests ----

    def attach(self, vf):
        """Attaches a guest to the VF; its driver is not booted yet."""
        guest = VfGuest(self.card.path(f'vf{vf}.sock'))
        self.addCleanup(guest.kill)
        return guest

    def guest(self, vf, work=None):
        guest = self.attach(vf)
        guest.boot()
        if work == 'endless':
            guest.endless()
        elif work:
            guest.order(work)
        return guest

    def statistics(self):
        """softgpu's counters, by VF."""
        return {vf['vf']: vf for vf in self.control({'stats': {}})['vfs']}

    def assert_right(self, guest):
        """Ends `compute` of a guest; checks that something was computed, and that all of it is
        right."""
        rounds, wrong = guest.end_compute()
        self.assertGreater(rounds, 0)
        self.assertEqual(wrong, 0)

    def assert_runs(self, guest, seconds=30):
        before, deadline = guest.progress(), time.monotonic() + seconds
        while guest.progress() == before:
            self.assertLess(time.monotonic(), deadline, 'no progress')
            time.sleep(0.1)

    def assert_works_again(self, guest):
        """Boots a guest again after a reset of its VF, and checks that it computes."""
        guest.ask('forget')
        guest.boot()
        guest.order('compute')
        time.sleep(1)
        self.assert_right(guest)


class WorkTest(Work, CardTest):
    """Every VF has VRAM."""
    vfs = 4
    QUOTA_MIB = 32  # less than the aperture, so that there is something beyond it

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for vf in range(1, cls.vfs + 1):
            cls.write(f'vf{vf}/profile/vram_quota', cls.QUOTA_MIB * MIB)
        cls.start_shell()

    @classmethod
    def write(cls, name, value):
        """Writes to a file of sriov_admin."""
        cls.vm.check(f'echo {value} > {cls.path("sriov_admin/" + name)}', 240)
