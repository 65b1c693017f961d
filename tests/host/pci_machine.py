# SPDX-License-Identifier: MIT
"""A VM with real SR-IOV PFs behind an IOMMU: QEMU's igb, a network card with 7 VFs, in two slots, and
an NVMe controller with 4 VFs in a third.

`GENERIC` gets the kernel's own driver, igb, and `XE` gets vgpu_test_xe.ko, which has the files of
Linux' xe. `DISK` gets the kernel's nvme. Each function has resets and an IOMMU group of its own.
"""
from machine import Machine

GENERIC, XE, DISK = '0000:01:00.0', '0000:02:00.0', '0000:03:00.0'
PFS = (GENERIC, XE, DISK)
TOTAL_VFS = 7


class PciMachine(Machine):
    # without no_timer_check, the kernel of a busy machine may find no timer behind remapped
    # interrupts
    command_line = f'{Machine.command_line} intel_iommu=on no_timer_check'

    def __init__(self, log_dir, name='host', kernel='6.12', memory='1G', cpus=2):
        super().__init__(None, log_dir, name=name, kernel=kernel, memory=memory, cpus=cpus)

    def devices(self):
        devices = [{'driver': 'intel-iommu', 'intremap': 'on'}]
        for slot in (1, 2, 3):
            devices += [{'driver': 'pcie-root-port', 'id': f'port{slot}', 'chassis': slot, 'slot': slot,
                         'addr': f'{slot + 15:#x}'}]
        devices += [{'driver': 'igb', 'id': f'igb{slot}', 'bus': f'port{slot}'} for slot in (1, 2)]
        # a VF needs two queues and one interrupt of those that it may get (flexible)
        return devices + [{'driver': 'nvme-subsys', 'id': 'disks'},
                          {'driver': 'nvme', 'id': 'disk', 'bus': 'port3', 'subsys': 'disks', 'serial': 'disk',
                           'sriov_max_vfs': 4, 'sriov_vq_flexible': 8, 'sriov_vi_flexible': 4,
                           'max_ioqpairs': 10, 'msix_qsize': 12}]
