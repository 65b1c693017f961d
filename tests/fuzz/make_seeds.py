#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes tests/fuzz/corpus: inputs that reach what random bytes seldom find.

Run by hand after a change of an input format; the files are part of the tree.
"""
import json
import pathlib
import struct
import subprocess

CORPUS = pathlib.Path(__file__).parent / "corpus"
FOREVER = 0xFFF << 16


def write(target, name, data):
    path = CORPUS / target / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


# --- sdma: a byte of how (16: the kernel's ring), then packets
SCRATCH = 0xC040 * 4  # byte offset of the register that changes while a packet waits
MEM = 1 << 31
EQUAL, NOT_EQUAL = 3 << 28, 4 << 28


def sdma(name, how, *dwords):
    write("sdma", name, bytes([how]) + struct.pack(f"<{len(dwords)}I", *dwords))


def poll(header, address, reference, last):
    return (8 | header, address, 0, reference, 0xFFFFFFFF, last)


FENCE = (5, 0x8000, 0, 0x1234)
TIMESTAMPS = (13, 0x100, 0, 13 | 1 << 8, 0x8008, 0, 13 | 2 << 8, 0x8010, 0)
TRAP = (6, 7)
INDIRECT = (4, 0, 0, 16, 0, 0)

for ring, how in (("user", 0x04), ("kernel", 0x14)):
    # virtual addresses of VMID 0 begin with VRAM at 0xf4_00000000
    sdma(f"{ring}-poll-memory", how, *poll(MEM | EQUAL, 0, 0x5555, FOREVER), *FENCE, *TRAP)
    sdma(f"{ring}-poll-memory-changed", how, *poll(MEM | NOT_EQUAL, 0, 8, FOREVER), *FENCE)
    sdma(f"{ring}-poll-memory-retries", how, *poll(MEM | EQUAL, 0, 1, 5 << 16), *FENCE, *TRAP)
    sdma(f"{ring}-poll-register", how, *poll(EQUAL, SCRATCH, 0x5555, FOREVER), *FENCE, *TRAP)
    sdma(f"{ring}-poll-register-retries", how, *poll(EQUAL, SCRATCH, 1, 5 << 16), *FENCE)
    sdma(f"{ring}-hdp-flush", how, 8 | 1 << 26, SCRATCH, SCRATCH + 4, 0x5555, 0xFFFFFFFF, 0, *FENCE)
    sdma(f"{ring}-timestamps", how, *TIMESTAMPS, *TRAP)
    sdma(f"{ring}-register-write", how, 14 | 0xF << 28, SCRATCH // 4, 0x5555, *TRAP)
    sdma(f"{ring}-indirect", how, *TRAP, *TIMESTAMPS[3:6], *INDIRECT)
    sdma(f"{ring}-semaphore", how, 7 | 1 << 30, 0x8000, 0, 7, 0x8000, 0, 7, 0x8000, 0)
    sdma(f"{ring}-conditional", how, 9, 0, 0, 1, 4, *FENCE, *TRAP)
    sdma(f"{ring}-atomic", how, 10 | 0x2F << 25, 0x8000, 0, 1, 0, 0, 0, 0, *TRAP)

# the kernel's own addresses
VRAM_HI = 0xF4


def at_vram(packet):
    return (packet[0], packet[1], VRAM_HI) + tuple(packet[3:])


KERNEL = 0x14
STAMPS = sum((at_vram(TIMESTAMPS[i:i + 3]) for i in (3, 6)), TIMESTAMPS[0:3])
sdma("kernel-vram-timestamps", KERNEL, *STAMPS, *at_vram(FENCE), *TRAP)
sdma("kernel-vram-poll", KERNEL, *at_vram(poll(MEM | EQUAL, 0, 0x5555, FOREVER)), *at_vram(FENCE))
sdma("kernel-vram-indirect", KERNEL, *at_vram(INDIRECT), *TRAP, *STAMPS)
sdma("kernel-user-indirect", KERNEL, 4 | 8 << 16, 0, 0, 16, 0, 0, *TRAP)

# --- uapi: messages of how, length, operation, bytes
HEAD, WELL_FORMED, LONG, GUEST, DEVICE, VERY_LONG, VF = 1, 4, 8, 16, 32, 64, 128
FAULT, FLR_HANGS, GONE, BACK, ATTACH, INTERRUPTS = range(6)
GET_INFO, RELEASE, CONTROL, DUMP = 1, 4, 6, 14
IDLE, SAVE, LOAD, RUN = range(4)
LOST, ABORTED, LATE = 0, 4, 8


def message(how, operation, *body):
    return struct.pack("<BHB", how, len(body), operation) + bytes(body)


def device(what, value, how=0):
    return message(DEVICE | how, what, 0, value)


def work(how=LONG):
    return message(GUEST | how, 0, 0, 2)


def control(action, how=LONG):
    return message(HEAD | WELL_FORMED | how, CONTROL, *struct.pack("<4I", 16, 1, 1, action))


def uapi(name, *messages):
    first = bytes([messages[0][0] | VF]) + messages[0][1:]
    write("uapi", name, first + b"".join(messages[1:]))


for step in (IDLE, SAVE, LOAD, RUN):
    for kind, word in ((LOST, "lost"), (ABORTED, "aborted"), (LATE, "late")):
        uapi(f"hang-{('idle', 'save', 'load', 'run')[step]}-{word}", device(FAULT, step | kind),
             work(VERY_LONG), control(1, VERY_LONG), control(2), work(VERY_LONG))
uapi("whole-reset", device(FLR_HANGS, 1), device(FAULT, RUN | LOST), work(VERY_LONG),
     work(VERY_LONG), device(FLR_HANGS, 0), work(VERY_LONG))
uapi("whole-reset-by-operator", device(FLR_HANGS, 1), control(4, VERY_LONG), work(VERY_LONG))
uapi("device-lost-and-back", device(GONE, 0, LONG), message(HEAD | WELL_FORMED, GET_INFO, 0),
     device(BACK, 0, LONG), work(VERY_LONG))
uapi("device-lost-and-new", device(GONE, 0, LONG), control(1), device(BACK, 1, LONG),
     work(VERY_LONG))
uapi("device-lost-in-scrub", message(HEAD | WELL_FORMED, RELEASE, *struct.pack("<4I", 16, 1, 1, 0)),
     device(GONE, 0), device(BACK, 1, VERY_LONG))
uapi("attach-detach", device(ATTACH, 1, LONG), work(), device(ATTACH, 0, VERY_LONG), work())
uapi("interrupts-lost", device(INTERRUPTS, 1), work(VERY_LONG), control(4, VERY_LONG))
uapi("reset", control(4, VERY_LONG), work())


# --- agent: the lines of a connection, from the examples of the schema
EXAMPLES = CORPUS.resolve().parents[2] / "schemas" / "examples"


def line(example, **changes):
    document = json.loads((EXAMPLES / f"{example}.json").read_text()) | changes
    return json.dumps(document, separators=(",", ":")).encode() + b"\n"


welcomed = line("valid/vf-agent-hello", welcomed=True)
write("agent", "hello", welcomed)
write("agent", "status", welcomed + line("valid/vf-agent-status"))
write("agent", "result", welcomed + line("valid/vf-agent-result"))
write("agent", "wrong-type", welcomed + line("invalid/vf-agent-result-type"))
write("agent", "conversation", b"\n" + line("valid/vf-agent-hello") + welcomed +
      line("valid/vf-agent-status") + line("valid/vf-agent-result"))


# --- state: a byte of how, then a file or damage to one (state_fuzz.cpp)
GPU, APPLY, DAMAGED_GPU, DAMAGED_APPLY = range(4)


def state(name, how, data):
    write("state", name, bytes([how]) + data)


STATE_GPU = (EXAMPLES / "valid" / "vgpud-state-gpu.json").read_bytes()
STATE_APPLY = (EXAMPLES / "valid" / "vgpud-state-apply.json").read_bytes()
state("gpu", GPU, STATE_GPU)
state("gpu-of-another-name", GPU, STATE_GPU.replace(b'"gpu": "gpu0"', b'"gpu": "gpu7"'))
state("gpu-newer", GPU, STATE_GPU.replace(b'"version": 1', b'"version": 2'))
state("gpu-wrong-type", GPU, STATE_GPU.replace(b'"weight": 100', b'"weight": "x"'))
state("apply", APPLY, STATE_APPLY)
state("apply-empty", APPLY, b'{"schema": "vgpud-apply", "version": 1}')
state("damaged-gpu", DAMAGED_GPU, bytes([0, 90, 1, 1, 0, 2]))
state("cut-apply", DAMAGED_APPLY, bytes([255, 255, 0]))

# --- scenario: the examples of vgpuctl simulate
for example in sorted((EXAMPLES / "valid").glob("vgpu-scenario-*.json")):
    write("scenario", example.name.removeprefix("vgpu-scenario-").removesuffix(".json"), example.read_bytes())

# --- recording: of short simulations, by a vgpuctl that is built
RECORDED = {
    "two": {"duration_ms": 30, "vfs": [{"count": 2}]},
    "contracts": {"duration_ms": 60, "vfs": [
        {"min_pct": 20, "latency_ms": 20, "work": {"arrivals": "periodic", "work_ms": 2, "period_ms": 20}},
        {"max_pct": 30, "burst_ms": 4, "quantum_ms": 2}, {"mode": "strict", "quantum_ms": 2}]},
    "changes": {"duration_ms": 60, "vfs": [{"name": "a"}, {"name": "b", "joins_later": True}],
                "changes": [{"at_ms": 10, "vf": "b", "what": "join"}, {"at_ms": 30, "vf": "a", "what": "weight", "weight": 7},
                            {"at_ms": 45, "vf": "b", "what": "leave"}]},
}
for vgpuctl in sorted(CORPUS.resolve().parents[2].glob("build/*/bin/vgpuctl"))[:1]:
    for name, scenario in RECORDED.items():
        path = CORPUS / "recording" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run([vgpuctl, "simulate", "-", "--trace", path], input=json.dumps(scenario).encode(),
                       check=True, stdout=subprocess.DEVNULL)
