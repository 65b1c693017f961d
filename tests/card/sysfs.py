# SPDX-License-Identifier: MIT
"""Files of a PF and its VFs. sriov_numvfs is never read: a read waits for a write that is under way."""
import os
import re
import stat
import subprocess
import time

PF_FILES = ('vendor', 'device', 'subsystem_vendor', 'subsystem_device', 'revision', 'class', 'resource',
            'sriov_totalvfs', 'sriov_drivers_autoprobe', 'sriov_offset', 'sriov_stride', 'sriov_vf_device',
            'sriov_vf_total_msix', 'reset_method', 'enable', 'power/runtime_status', 'numa_node')
VF_FILES = ('vendor', 'device', 'class', 'resource', 'enable', 'driver_override', 'reset_method',
            'power/runtime_status', 'nvidia/current_vgpu_type', 'nvidia/creatable_vgpu_types')
# display controllers and processing accelerators
GPU_CLASSES = (0x03, 0x12)
MODULES = ('xe', 'i915', 'amdgpu', 'gim', 'nvidia', 'vfio_pci', 'xe_vfio_pci', 'vgpu_pf')


class Sysfs:
    def __init__(self, root=''):
        self.root = root
        self.devices = f'{root}/sys/bus/pci/devices'

    def read(self, path):
        """Returns the text, or the system's message in angle brackets."""
        try:
            with open(path, encoding='utf-8', errors='replace') as file:
                return file.read().rstrip('\n')
        except OSError as error:
            return f'<{error.strerror}>'

    def link(self, path):
        try:
            return os.path.basename(os.readlink(path))
        except OSError:
            return ''

    def find(self, address=None):
        """Returns addresses of PFs: GPUs whose driver is not vgpu_pf, or only `address`."""
        found = []
        for name in sorted(os.listdir(self.devices)) if os.path.isdir(self.devices) else []:
            pf = f'{self.devices}/{name}'
            if not os.path.exists(f'{pf}/sriov_totalvfs') or (address and name != address):
                continue
            is_gpu = int(self.read(f'{pf}/class'), 16) >> 16 in GPU_CLASSES
            if address or (is_gpu and self.link(f'{pf}/driver') != 'vgpu_pf'):
                found.append(name)
        return found

    def vfs(self, pf):
        """Returns {VF number: address}."""
        names = [name for name in os.listdir(f'{self.devices}/{pf}') if re.fullmatch(r'virtfn\d+', name)]
        return {int(name[6:]) + 1: self.link(f'{self.devices}/{pf}/{name}') for name in names}

    def values(self, pf):
        """Returns {path below the devices: mode and text, or target} of all files and links that this report reads."""
        files = {f'{pf}/{name}': None for name in PF_FILES}
        for vf in self.vfs(pf).values():
            files.update({f'{vf}/{name}': None for name in VF_FILES})
        for folder, _, names in os.walk(f'{self.devices}/{pf}/sriov_admin'):
            files.update({os.path.relpath(f'{folder}/{name}', self.devices): None for name in names})
        values = {name: self.value(f'{self.devices}/{name}') for name in files}
        for function in [pf, *self.vfs(pf).values()]:
            for name in ('driver', 'iommu_group'):
                values[f'{function}/{name}'] = self.link(f'{self.devices}/{function}/{name}')
        values[f'{pf}/virtfn'] = str(sorted(self.vfs(pf).items()))
        return {name: value for name, value in values.items() if value is not None}

    def value(self, path):
        """Returns mode and text; None if there is no such file, and only the mode if its bits forbid reading."""
        try:
            mode = stat.S_IMODE(os.stat(path).st_mode)
        except OSError:
            return None
        return f'{mode:04o} {self.read(path)}' if mode & 0o444 else f'{mode:04o}'

    def text(self, pf):
        return ''.join(f'{name}: {value}\n' for name, value in sorted(self.values(pf).items()))

    def kernel(self):
        lines = [f'release: {self.read(self.root + "/proc/sys/kernel/osrelease")}',
                 f'command line: {self.read(self.root + "/proc/cmdline")}']
        for module in MODULES:
            path = f'{self.root}/sys/module/{module}'
            if os.path.isdir(path):
                lines.append(f'module {module}: {self.read(path + "/version")}')
        groups = f'{self.root}/sys/kernel/iommu_groups'
        lines.append(f'IOMMU groups: {len(os.listdir(groups)) if os.path.isdir(groups) else 0}')
        return '\n'.join(lines) + '\n'

    def log(self, pfs):
        """Lines of the kernel's log about these PFs and their VFs."""
        slots = [pf.rsplit('.', 1)[0] for pf in pfs]
        try:
            lines = subprocess.run(['dmesg'], capture_output=True, text=True, timeout=20, check=False).stdout
        except OSError as error:
            return f'{error}\n'
        return '\n'.join(line for line in lines.splitlines() if any(slot in line for slot in slots)) + '\n'

    def write(self, path, text):
        with open(path, 'w', encoding='utf-8') as file:
            file.write(text)

    def restore(self, pf, before):
        """Ends a change: disables all VFs if none is in use, and sets autoprobe as it was before."""
        path = f'{self.devices}/{pf}'
        used = [vf for vf in self.vfs(pf).values() if self.read(f'{self.devices}/{vf}/enable') != '0']
        if used:
            print(f'{pf}: VFs stay enabled, because these are in use: {", ".join(used)}')
            return
        if self.vfs(pf):
            self.write(f'{path}/sriov_drivers_autoprobe', '0')
            for vf in self.vfs(pf).values():
                driver = self.link(f'{self.devices}/{vf}/driver')
                if driver:
                    self.write(f'{self.root}/sys/bus/pci/drivers/{driver}/unbind', vf)
            self.write(f'{path}/sriov_numvfs', '0')
            time.sleep(1)
        self.write(f'{path}/sriov_drivers_autoprobe', before[f'{pf}/sriov_drivers_autoprobe'].split()[-1])
