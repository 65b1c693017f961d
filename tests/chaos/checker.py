# SPDX-License-Identifier: MIT
"""Rules that every history must satisfy, with any schedule.

check(events) returns violations: texts that begin with the name of the broken rule. An event is a
dict with 'kind', 'episode', 't' (seconds) and the members that the rules for this kind read. The
rules see only the events, not the schedule.
"""
import re

MEMORY_KB = 48 << 10  # AddressSanitizer keeps freed memory for a while
DESCRIPTORS = 4       # connections open and close at any time
LOG_BYTES = 512 << 10  # in one episode
SHARE = 0.15
QUANTA = 3
SANITIZER = re.compile(r'ERROR: \w+Sanitizer|runtime error:|SUMMARY: \w+Sanitizer')
ERROR = re.compile(r'^\S+ (error|critical) |^vgpu-pf: error: |MISMATCH|assert|terminate called')

# Log lines of the level error that the schedule may cause, each with the reason.
EXPECTED = [re.compile(text) for text in (
    r'org\.freedesktop\.DBus|the bus|D-Bus',  # the bus was stopped or killed
    r'No space left on device',  # a file system was full
    r'device lost|device gone|lost the device|does not answer',  # softgpu was killed or stopped
    # a program was killed; a vgpud that adopted it cannot know by which signal
    r'ended by signal 9|\(pid \d+\) ended; see|pf-lost|device-lost',
)]

# A full file system of logs may cut these lines, so a line with only their beginning is explained.
CUT = ('vgpu-pf: error: device lost',)
FULL = "full_disk('run'"

HANG = re.compile(r' hang: does not give up the engine|world switch .* failed, command \d+, status 0x(11|ff)')


def is_remarkable(line):
    """True if the line must be in the history, because a rule judges it."""
    return bool(SANITIZER.search(line) or ERROR.search(line))


def of(events, kind):
    return [event for event in events if event['kind'] == kind]


def results_are_exact(events):
    for event in of(events, 'computed'):
        if event['wrong']:
            yield f'{event["wrong"]} results of {event["vf"]} are wrong'


def answers_come_unless_the_vf_was_reset(events):
    """The work of a guest ends, unless its VF or the device was reset."""
    for event in of(events, 'stuck'):
        if event['before'] == event['now']:
            yield f'{event["vf"]} got no answer to its work, and neither its VF nor the device was reset'


def attacks_are_stopped(events):
    for event in of(events, 'attack'):
        if event['stopped'] != 3:
            yield f'only {event["stopped"]} of 3 ways of {event["vf"]} to {event["order"]} were stopped'


def vram_is_ones_own(events):
    """Each page holds the canary, or zeroes if the VF is new or the device lost its memory."""
    for event in of(events, 'canary'):
        strange = event['pages'] - event['kept'] - event['blank']
        if strange:
            yield f'{strange} of {event["pages"]} pages of {event["vf"]} hold what its guest did not write'
        elif event['seed'] and event['blank'] and not event['may_be_blank']:
            yield f'{event["blank"]} of {event["pages"]} pages of {event["vf"]} were lost'


def shares_follow_weights(events):
    """Compares the VFs' service (ns, by the device) with their weights; all VFs always had work."""
    for event in of(events, 'shares'):
        services = event['services']
        total, weights = sum(services.values()), sum(event['weights'].values())
        for name, service in services.items():
            due = total * event['weights'][name] / weights
            if abs(service - due) > SHARE * due + QUANTA * event['quantum_ns']:
                yield f'{name} had {service / 1e6:.0f} ms of the engine, {due / 1e6:.0f} ms were due'


def state_is_old_or_new(events):
    for event in of(events, 'state'):
        if event['defined'] not in event['possible']:
            yield f'{event["where"]} has {event["defined"]}, none of {event["possible"]}'


def every_program_answers(events):
    for event in of(events, 'answers'):
        if not event['is_answered']:
            yield f'{event["program"]} did not answer: {event["text"]}'


def no_program_ends_by_itself(events):
    for event in of(events, 'end'):
        yield f'{event["program"]} ended with status {event["status"]}'


def growth(samples, member):
    """Growth from the lowest value of the first third to the lowest of the last third; 0 with fewer than 3 samples."""
    third = len(samples) // 3
    if third == 0:
        return 0
    values = [sample[member] for sample in samples]
    return min(values[-third:]) - min(values[:third])


def nothing_grows(events):
    """Judges descriptors and memory of each process, sampled without disturbances, and the size of the logs."""
    processes = {}
    for event in of(events, 'sample'):
        processes.setdefault((event['program'], event['pid']), []).append(event)
    for (program, _), samples in processes.items():
        if growth(samples, 'descriptors') > DESCRIPTORS:
            yield f'{program} has {growth(samples, "descriptors")} descriptors more'
        if growth(samples, 'memory_kb') > MEMORY_KB:
            yield f'{program} has {growth(samples, "memory_kb")} KiB of memory more'
    logs = [event['bytes'] for event in of(events, 'logs')]
    for before, after in zip(logs, logs[1:]):
        if after - before > LOG_BYTES:
            yield f'logs grew by {after - before} bytes in one episode'


def logs_hold_no_surprise(events):
    """No unexpected error.

    If the test saw the machine stand still, a guest may leave the engine late (status 0x11), or the
    device may begin a command late (status 0xff).
    """
    stalls = {event['episode'] for event in of(events, 'stall')}
    full = {event['episode'] for event in of(events, 'action') if FULL in event['text']}
    for event in of(events, 'line'):
        text = event['text']
        expected = EXPECTED + [HANG] if event['episode'] in stalls else EXPECTED
        if event['episode'] in full and any(whole.startswith(text) for whole in CUT):
            continue
        if SANITIZER.search(text) or ERROR.search(text) and not any(each.search(text) for each in expected):
            yield f'{event["program"]} logged: {text}'


RULES = (results_are_exact, answers_come_unless_the_vf_was_reset, attacks_are_stopped, vram_is_ones_own,
         shares_follow_weights, state_is_old_or_new, every_program_answers, no_program_ends_by_itself,
         nothing_grows, logs_hold_no_surprise)


def check(events):
    return [f'{rule.__name__}: {text}' for rule in RULES for text in rule(events)]


def rules_of(violations):
    return {text.split(':')[0] for text in violations}
