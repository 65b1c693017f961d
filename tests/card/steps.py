# SPDX-License-Identifier: MIT
"""Steps of the report that use vgpud: observe() changes nothing, change() makes, changes and removes VFs."""
import json


def observe(report, vgpud):
    report.add_output('list.json', vgpud.command('list', '--json'))
    for gpu in vgpud.gpus:
        report.add_output(f'show-{gpu["id"]}.txt', vgpud.command('show', gpu['id']))
        state = vgpud.state_of(gpu['id'])
        report.claim(f'vgpud observes {gpu["pci"]["address"]}', state == 'ok', state)
        refused = vgpud.ctl('apply', '-', '--yes', stdin=configuration(gpu['id'], 1))
        report.claim(f'vgpud refuses to change {gpu["pci"]["address"]}', 'VGPU-' in refused.stderr, said(refused))
    report.add('vgpud-observe.log', vgpud.text_of_log())


def configuration(gpu, count):
    profile = {'resources': {}, 'assignment_mode': 'vfio-pci'}
    group = {'profile': 'card', 'count': count, 'name': 'card-{n}'}
    return json.dumps({'profiles': {'card': profile}, 'configs': {'card': [{'gpu': gpu, 'vfs': [group]}]}})


def vram_of(vgpud):
    """Returns 512MiB if the driver lets vgpud choose the VRAM of VFs, else ''."""
    shown = json.loads(vgpud.ctl('show', 'card0', '--json').stdout or '{}')
    return '512MiB' if 'vram_unit_bytes' in shown.get('gpu', {}) else ''


def with_vram(text, vram):
    document = json.loads(text)
    if vram:
        document['profiles']['card']['resources']['vram'] = vram
    return json.dumps(document)


def change(report, tree, vgpud, pf):
    vram = vram_of(vgpud)
    for count in (2, 3, 0):
        text = with_vram(configuration('card0', count) if count else empty(), vram)
        report.add(f'plan-{count}-{pf}.txt', said(vgpud.ctl('plan', '-', stdin=text)))
        applied = vgpud.ctl('apply', '-', '--yes', stdin=text)
        report.add(f'apply-{count}-{pf}.txt', said(applied))
        report.claim(f'{pf}: a configuration of {count} VFs is applied', applied.returncode == 0, said(applied))
        if count == 0 or applied.returncode != 0:
            continue
        report.add(f'sysfs-{count}-vfs-{pf}.txt', tree.text(pf))
        drivers = [tree.link(f'{tree.devices}/{vf}/driver') for vf in tree.vfs(pf).values()]
        report.claim(f'{pf}: {count} VFs have a driver for VMs',
                     len(drivers) == count and all(name.endswith('vfio-pci') for name in drivers), drivers)
        vgpud.restart_vgpud()
        held = vgpud.ctl('assert', '-', stdin=text)
        report.claim(f'{pf}: {count} VFs are as configured after a restart of vgpud', held.returncode == 0, said(held))
        report.add_output(f'list-{count}-{pf}.json', vgpud.command('list', '--json'))
    report.add(f'vgpud-full-{pf}.log', vgpud.text_of_log())


def empty():
    return json.dumps({'profiles': {'card': {'resources': {}}}, 'configs': {'card': [{'gpu': 'card0', 'vfs': []}]}})


def said(done):
    return done.stdout + done.stderr
