# SPDX-License-Identifier: MIT
"""Base of most suites of the host level: a card, a machine with the project's modules, and a check
of the kernel's log at the end."""
import os
import shutil
import unittest

import kernel_log
from machine import DOMAINS, HOST, Card, Machine

class CardTest(unittest.TestCase):
    """A card and a VM for all tests of the class; logs in build/host/logs/CLASS."""
    kernel = '6.12'
    vfs = 16
    card_options = {'vram_mb': 512, 'aperture_mb': 64}
    expected_warnings = ()  # (pattern, reason) of warnings that the tests provoke
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.directory = os.path.join(HOST, 'logs', cls.__name__)
        shutil.rmtree(cls.directory, ignore_errors=True)
        os.makedirs(cls.directory)
        cls.card, cls.vm = cls.start(cls.directory)
        cls.load()

    @classmethod
    def start(cls, directory):
        """Starts a card and its VM with the bridge, which end with the class; logs in
        `directory`."""
        card = Card(directory, vfs=cls.vfs, **cls.card_options)
        card.__enter__()
        cls.addClassCleanup(card.stop)
        vm = Machine(card.path('host.sock'), directory, kernel=cls.kernel)
        vm.__enter__()
        cls.addClassCleanup(vm.kill)
        vm.check('insmod /built/vgpu_test_bridge.ko')
        return card, vm

    @classmethod
    def load(cls):
        cls.vm.check('insmod /built/vgpu_pf.ko time_scale=20', timeout=120)

    @classmethod
    def tearDownClass(cls):
        kernel_log.look(cls.vm, cls.expected_warnings)

    @staticmethod
    def path(name=''):
        """Path of a file of the PF in sysfs."""
        return f'/sys/bus/pci/devices/{DOMAINS["bridge"]}:01:00.0/{name}'
