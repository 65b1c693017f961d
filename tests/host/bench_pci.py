# SPDX-License-Identifier: MIT
"""Measures what vgpud costs with a vendor's PF driver, next to floors in the same run; nothing is asserted.

    VGPU_BIN=... python3 bench_pci.py

    claim       a claim of a VF of igb through vgpud, alone (the VF of a profile with assignment mode
                vfio-pci is bound when it is created) and with the binding of vfio-pci, next to the
                writes to sysfs by a compiled program (figures/claim.cpp)
    idle        CPU time of vgpud with 4 VFs that nobody uses: those of igb, next to those of softgpu
"""
import statistics

from bench import show
from pci_machine import GENERIC, PciMachine
from pci_test import PciTest
from vgpud_in_vm import BUS

ROUNDS = 40
IDLE_SECONDS = 20
VFS = 4
CLAIM_RATIO, IDLE_RATIO = 1.2, 1.0
SOFT = {'id': 'soft', 'softgpu': {'vfs': VFS, 'vram_mb': 512, 'aperture_mb': 64}}


class Figures(PciTest):
    gpus = [{'id': 'net', 'pci': {'address': GENERIC, 'manage': 'full', 'vfs': VFS}}]

    def __init__(self):
        super().__init__('measure')

    def measure(self):
        self.claims()
        igb = self.idle()
        self.vm.check('kill $(pidof vgpud)')
        self.wait_for_end()
        self.start_vgpud([SOFT])
        for _ in range(VFS):
            self.ctl('create --gpu soft --vram 64M')
        softgpu = self.idle()
        show('idle: CPU of vgpud with igb', igb / softgpu, IDLE_RATIO, 'x')
        print(f'  with igb {igb:.2f} ms/s, with softgpu {softgpu:.2f} ms/s')

    def wait_for_end(self):
        self.vm.check('while pidof vgpud; do sleep 0.1; done')

    def claims(self):
        self.start_vgpud()
        for n in range(1, VFS + 1):
            self.ctl(f'create --gpu net --name net-{n} --assignment-mode {"none" if n == 1 else "default"}')
        addresses = dict(self.vfs('name', 'address'))
        text = self.vm.check(f'in_root vgpu-claim-figures {BUS} /org/vgpu1/gpu/net/vf/1 '
                             f'{addresses["net-1"]} {addresses["net-2"]} {ROUNDS}', 240)
        rounds = [line.split() for line in text.split('\n')]
        claim, bind, ping, writes = (statistics.median(int(words[at]) for words in rounds) / 1e6
                                     for at in (1, 3, 5, 7))
        show('claim of a bound VF', claim / writes, CLAIM_RATIO, 'x')
        show('claim of a VF, then its binding', (claim + bind) / writes, CLAIM_RATIO, 'x')
        print(f'  claim {claim:.2f} ms, binding {bind:.2f} ms; a D-Bus call {ping:.2f} ms, the writes {writes:.2f} ms')

    def cpu_ms(self):
        """CPU time of all threads of vgpud so far."""
        return int(self.vm.check("cat /proc/$(pidof vgpud)/task/*/schedstat | "
                                 "awk '{ns += $1} END {printf \"%d\\n\", ns / 1000}'")) / 1000

    def idle(self):
        """ms of CPU time in a second."""
        self.vm.check('sleep 5')
        before = self.cpu_ms()
        self.vm.check(f'sleep {IDLE_SECONDS}', IDLE_SECONDS + 60)
        return (self.cpu_ms() - before) / IDLE_SECONDS


def main():
    # an emulated CPU that sleeps wakes slowly, which the D-Bus calls pay for and the writes do not
    PciMachine.command_line += ' idle=poll'
    Figures.setUpClass()
    try:
        figures = Figures()
        figures.setUp()
        figures.measure()
    finally:
        Figures.doClassCleanups()


if __name__ == '__main__':
    main()
