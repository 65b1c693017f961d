# SPDX-License-Identifier: MIT
"""The implementations that are compared, and how a worker of each is started.

An implementation that this machine lacks is not an error: why_not() says what is missing.
"""
import os
import shutil
from dataclasses import dataclass, field

THREADS = 2
SOFTGPU, SOFTGPU_ONE = 'softgpu', 'softgpu, 1 thread'
INTERPRETED = 'softgpu, interpreted'
OCLGRIND, POCL, RUSTICL = 'oclgrind', 'PoCL', 'rusticl/llvmpipe'
GPUVM, FLAT = 'engine, GPUVM', 'engine, flat memory'
SECOND, BOTH = 'engine, a second one', 'two engines at once'
VENDORS = '/etc/OpenCL/vendors'


@dataclass(frozen=True)
class Implementation:
    name: str
    command: list  # the worker, relative to the build's bin/, and its arguments
    wrapper: list = field(default_factory=list)  # a program that starts it
    environment: dict = field(default_factory=dict)
    vendor: str = ''  # its file in VENDORS
    package: str = ''  # Debian package it comes from
    is_slow: bool = False  # one run of the smallest size takes long
    like: str = ''  # name of the implementation whose sizes it uses

    def why_not(self, binaries):
        """Names what this machine lacks for it; '' if nothing."""
        program = self.command[0]
        if not os.access(os.path.join(binaries, program), os.X_OK):
            return f'{program} is not built' + (
                '; install ocl-icd-opencl-dev' if self.package else '')
        missing = [tool for tool in self.wrapper[:1] if shutil.which(tool) is None]
        if self.vendor and not os.path.exists(os.path.join(VENDORS, self.vendor)):
            missing.append(os.path.join(VENDORS, self.vendor))
        return f'no {missing[0]}; install {self.package}' if missing else ''

    def argv(self, binaries):
        return [*self.wrapper, os.path.join(binaries, self.command[0]), *self.command[1:]]

    def variables(self, cache):
        """Environment of the worker, which keeps compiled kernels below `cache`."""
        own = {'POCL_CACHE_DIR': os.path.join(cache, 'pocl'),
               'MESA_SHADER_CACHE_DIR': os.path.join(cache, 'mesa'), **self.environment}
        if self.vendor:
            own['OCL_ICD_VENDORS'] = os.path.join(VENDORS, self.vendor)
        return {**os.environ, **own}


def opencl(name, platform, package, **more):
    return Implementation(name, ['vgpu-peer-opencl', platform], package=package, **more)


# softgpu first: the others are its peers. Without a name for the tier, softgpu runs translated code.
TRANSLATOR = {'VGPU_ISA_TIER': 'translator'}
COMPARED = [
    Implementation(SOFTGPU, ['vgpu-peer-softgpu', str(THREADS)], environment=TRANSLATOR),
    Implementation(SOFTGPU_ONE, ['vgpu-peer-softgpu', '1'], environment=TRANSLATOR, like=SOFTGPU),
    Implementation(INTERPRETED, ['vgpu-peer-softgpu', str(THREADS)], environment={'VGPU_ISA_TIER': 'interpreter'}),
    opencl(OCLGRIND, 'Oclgrind', 'oclgrind', wrapper=['oclgrind', '--num-threads', str(THREADS)],
           is_slow=True),
    opencl(POCL, 'Portable Computing Language', 'pocl-opencl-icd', vendor='pocl.icd',
           environment={'POCL_MAX_PTHREAD_COUNT': str(THREADS)}),
    opencl(RUSTICL, 'rusticl', 'mesa-opencl-icd', vendor='rusticl.icd',
           environment={'RUSTICL_ENABLE': 'llvmpipe', 'LP_NUM_THREADS': str(THREADS)}),
]
# the execution engine alone, on one thread, with and without translation of addresses
ENGINES = [
    Implementation(GPUVM, ['vgpu-peer-engine']),
    Implementation(FLAT, ['vgpu-peer-engine-flat'], like=GPUVM),
    Implementation(SECOND, ['vgpu-peer-engine'], like=GPUVM),
]
