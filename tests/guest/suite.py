# SPDX-License-Identifier: MIT
"""Base of the guest tests: a host and guests for a class of tests, and the checks that all tests
make."""
import os
import shutil
import threading
import unittest

from host import Host, wait_for
from vm import GUEST, Vm

LOGS = os.path.join(GUEST, 'logs')
# Linux 6.12 has a bug that hits every Vega10 VF (docs/guests.md): without this mask amdgpu crashes
LOAD = 'load_amdgpu ip_block_mask=0xdf'
LOAD_SECONDS = 240
PROGRAM_SECONDS = 240
# counters of a VF that grow only by errors of a guest, or by what softgpu does not implement
GUEST_ERRORS = ('illegal_instructions', 'bad_packets', 'faults')


def provokes(*counters):
    """Marks a test that makes these of GUEST_ERRORS grow on purpose; any other growth is a
    failure."""
    def mark(test):
        test.provoked = counters
        return test
    return mark


def run_at_once(*calls):
    """Runs functions at the same time; returns their results, or raises the first exception."""
    results, errors = [None] * len(calls), []

    def run(index, call):
        try:
            results[index] = call()
        except BaseException as error:  # pylint: disable=broad-except
            errors.append(error)

    threads = [threading.Thread(target=run, args=pair) for pair in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return results


class Background:
    """Runs a program in a guest while the test continues."""

    def __init__(self, test, name, *arguments, vm):
        self.error = None
        self.thread = threading.Thread(target=self.run, args=(test, name, arguments, vm))
        self.thread.start()

    def run(self, test, name, arguments, vm):
        try:
            test.program(name, *arguments, vm=vm, timeout=400)
        except BaseException as error:  # pylint: disable=broad-except
            self.error = error

    def is_running(self):
        return self.thread.is_alive()

    def finish(self):
        self.thread.join()
        if self.error:
            raise self.error


class GuestTest(unittest.TestCase):
    """A host for all tests of the class; logs in build/guest/logs/CLASS."""
    host_options = {}
    kernel = '6.12'
    load_command = LOAD
    # VF name: weight; each gets a guest of the same name with the driver loaded
    guests = {'a': 100}
    vram = '512M'
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.directory = os.path.join(LOGS, cls.__name__)
        shutil.rmtree(cls.directory, ignore_errors=True)
        os.makedirs(cls.directory)
        cls.host = Host(cls.directory, **cls.host_options)
        cls.host.__enter__()
        cls.addClassCleanup(cls.host.stop)
        cls.errors_seen = {}  # so the first test also reports errors of the loading of the driver
        cls.vms = {}
        for name, weight in cls.guests.items():
            socket = cls.host.create_vf(name, vram=cls.vram, weight=weight)
            cls.vms[name] = Vm([socket], cls.directory, name=name, kernel=cls.kernel)
        run_at_once(*(lambda name=name: cls.boot(name) for name in cls.guests))

    @classmethod
    def boot(cls, name):
        vm = cls.vms[name]
        vm.__enter__()
        cls.addClassCleanup(vm.kill)
        cls.load(vm)

    @classmethod
    def load(cls, vm):
        answer = vm.run(cls.load_command, timeout=LOAD_SECONDS)
        if answer.status != 0:
            raise AssertionError(f'{cls.load_command}: {answer.text}\n{vm.dmesg()[-3000:]}')
        # the driver still initialises after insmod has returned
        wait_for('the render node', 60,
                 lambda: vm.run('test -e /dev/dri/renderD128').status == 0, 0.2)

    def program(self, name, *arguments, vm=None, timeout=PROGRAM_SECONDS):
        """Runs one of the programs and returns its output; fails unless it reports right
        results."""
        vm = vm or self.vms['a']
        answer = vm.run(' '.join(['in_root', '/tests/' + name, *map(str, arguments)]), timeout)
        self.assertEqual((answer.status, answer.text.strip().splitlines()[-1:]),
                         (0, ['ok ' + name]), f'{answer.text}\n{vm.dmesg()[-2000:]}')
        return answer.text

    def stats(self, name='a'):
        """softgpu's counters of a VF."""
        index = self.host.vf(name)['index']
        return next(vf for vf in self.host.gpu_stats()['vfs'] if vf['vf'] == index)

    def setUp(self):
        self.addCleanup(self.assert_only_provoked_errors)

    def assert_only_provoked_errors(self):
        """Fails if error counters grew: a program may pass although the device refused
        something."""
        before = type(self).errors_seen
        now = {(vf['vf'], name): vf[name] for vf in self.host.gpu_stats()['vfs'] for name in GUEST_ERRORS}
        type(self).errors_seen = now
        # a softgpu that was restarted counts from 0
        grown = {f'VF{vf} {name}': (before.get((vf, name), 0), count)
                 for (vf, name), count in now.items() if count not in (0, before.get((vf, name), 0))}
        provoked = getattr(getattr(self, self._testMethodName), 'provoked', ())
        unexpected = {what: count for what, count in grown.items() if what.split()[1] not in provoked}
        self.assertEqual(unexpected, {}, 'grown, from and to: see softgpu.log')
