#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Counts the lines of each parser that its fuzzer's inputs reach: coverage.py CORPUS [TARGET ...].

CORPUS has a folder of inputs for each target (TARGET or fuzz_TARGET). The programs are those of the
preset `coverage`, which is configured and built as needed. `--missing` also prints the lines that
no input reaches.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / 'build' / 'coverage'
# the files that parse the target's input, as beginnings of paths in the tree
PARSERS = {
    'agent': ['daemon/service/agents/session.cpp', 'daemon/service/agents/message.cpp'],
    'aql': ['pf-driver/softgpu/cp/aql.cpp', 'pf-driver/softgpu/cp/dispatch.cpp'],
    'configuration': ['daemon/service/config/configuration.cpp', 'daemon/service/config/change_plan.cpp',
                      'daemon/service/config/change_plan_json.cpp'],
    'domain': ['cli/domain_xml.cpp', 'cli/domain_edit.cpp', 'cli/xml_document.cpp'],
    'gpuvm': ['pf-driver/softgpu/mem/gpuvm.cpp'],
    'host_view': ['pf-driver/softgpu/host_view/'],
    'isa': ['pf-driver/softgpu/isa/decode.cpp', 'pf-driver/softgpu/isa/execute.cpp', 'pf-driver/softgpu/isa/unit_',
            'pf-driver/softgpu/isa/ops/'],
    'kubernetes': ['daemon/engines/kubernetes/claim.cpp', 'daemon/engines/kubernetes/cdi.cpp',
                   'daemon/engines/kubernetes/slices.cpp'],
    'libvirt': ['daemon/service/owners/domains.cpp'],
    'mailbox': ['pf-driver/softgpu/iov/mailbox.cpp'],
    'pm4': ['pf-driver/softgpu/cp/pm4'],
    'recording': ['daemon/simulator/recording'],
    'scenario': ['daemon/simulator/scenario'],
    'sdma': ['pf-driver/softgpu/sdma/'],
    'slurm': ['daemon/engines/slurm/gres.cpp', 'daemon/engines/slurm/texts.cpp'],
    'state': ['daemon/service/state/record_json.cpp', 'daemon/service/state/store.cpp'],
    'stream': ['pf-driver/core/vf/restore.c'],
    'uapi': ['pf-driver/user/uapi_server.c', 'pf-driver/core/top/request.c'],
    'vf_state': ['pf-driver/softgpu/cp/transition.cpp', 'pf-driver/softgpu/gpu_vf_blocks.cpp'],
    'vfio_user': ['pf-driver/softgpu/vfio_user/session.cpp', 'pf-driver/softgpu/vfio_user/channel.cpp',
                  'pf-driver/softgpu/vfio_user/negotiation.cpp'],
}


def build(targets):
    subprocess.run(['cmake', '--preset', 'coverage'], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(['ninja', '-C', BUILD, *(f'fuzz_{target}' for target in targets)], check=True,
                   stdout=subprocess.DEVNULL)


def files_of(program, inputs):
    """llvm-cov's data for each file of the program, after a run with `inputs`."""
    with tempfile.TemporaryDirectory() as folder:
        raw, merged = f'{folder}/raw', f'{folder}/merged'
        subprocess.run([program, '-runs=0', '-close_fd_mask=1', *inputs], check=True, stderr=subprocess.DEVNULL,
                       env=os.environ | {'LLVM_PROFILE_FILE': raw})
        subprocess.run(['llvm-profdata-14', 'merge', '-o', merged, raw], check=True)
        shown = subprocess.run(['llvm-cov-14', 'export', f'-instr-profile={merged}', program],
                               stdout=subprocess.PIPE, check=True).stdout
    return json.loads(shown)['data'][0]['files']


def missing_lines(file):
    """Lines where a region begins that never ran. A segment: line, column, count, has_count, is_entry, is_gap."""
    return sorted({line for line, _, count, has_count, is_entry, *_ in file['segments']
                   if has_count and is_entry and count == 0})


def report(corpus, target, is_long):
    inputs = [path for path in (corpus / target, corpus / f'fuzz_{target}') if path.is_dir()]
    own = [file for file in files_of(BUILD / 'bin' / f'fuzz_{target}', inputs)
           if any(file['filename'].startswith(f'{ROOT}/{parser}') for parser in PARSERS[target])]
    lines, hit = (sum(file['summary']['lines'][key] for file in own) for key in ('count', 'covered'))
    count = sum(1 for folder in inputs for _ in folder.iterdir())
    print(f'{target}: {100 * hit / max(lines, 1):.0f} % of {lines} lines, {count} inputs', flush=True)
    for file in own if is_long else []:
        print(f'    {file["filename"]}: {" ".join(map(str, missing_lines(file)))}')


def main():
    words = [word for word in sys.argv[1:] if word != '--missing']
    if not words:
        sys.exit(__doc__)
    targets = words[1:] or sorted(PARSERS)
    build(targets)
    for target in targets:
        report(pathlib.Path(words[0]).absolute(), target, '--missing' in sys.argv)


main()
