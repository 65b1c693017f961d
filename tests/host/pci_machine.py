# SPDX-License-Identifier: MIT
"""A VM with real SR-IOV PFs behind an IOMMU: QEMU's igb, a network card with 7 VFs, in two slots.

`GENERIC` gets the kernel's own driver, igb, and `XE` gets vgpu_test_xe.ko, which has the files of
Linux' xe. Both cards are alike, so each function has resets and an IOMMU group of its own.
"""
from machine import Machine

GENERIC, XE = '0000:01:00.0', '0000:02:00.0'
TOTAL_VFS = 7


class PciMachine(Machine):
    # without no_timer_check, the kernel of a busy machine may find no timer behind remapped
    # interrupts
    command_line = f'{Machine.command_line} intel_iommu=on no_timer_check'

    def __init__(self, log_dir, name='host', kernel='6.12', memory='1G', cpus=2):
        super().__init__(None, log_dir, name=name, kernel=kernel, memory=memory, cpus=cpus)

    def devices(self):
        devices = [{'driver': 'intel-iommu', 'intremap': 'on'}]
        for slot in (1, 2):
            devices += [{'driver': 'pcie-root-port', 'id': f'port{slot}', 'chassis': slot, 'slot': slot,
                         'addr': f'{slot + 15:#x}'},
                        {'driver': 'igb', 'id': f'igb{slot}', 'bus': f'port{slot}'}]
        return devices
