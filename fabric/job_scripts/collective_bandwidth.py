"""Measure the bandwidth of all-reduce over all processes of a torchrun job.

Prints a line per message size and, last, one line of JSON. Exits 1 when the best bus bandwidth is
under TRAINYARD_MINIMUM_BUS_GBPS (1 GB = 1e9 bytes). Bus bandwidth is 2 (n - 1) / n * bytes / time
for n processes: https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md
"""
# pyright: basic, reportMissingImports=false
# torch is in the image of the job, not in this project.

import json
import os
import sys
import time

import torch
import torch.distributed as dist


def choose_backend():
    """Return backend, device, a function that waits for the device, and sizes in MiB."""
    if torch.cuda.is_available():
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
        return "nccl", device, torch.cuda.synchronize, (1, 16, 256, 1024)
    try:
        import torch_xla
        import torch_xla.core.xla_model as xm
        import torch_xla.distributed.xla_backend  # registers the backend
    except ImportError:
        return "gloo", torch.device("cpu"), lambda: None, (1, 4, 16)

    def wait():
        torch_xla.sync()
        xm.wait_device_ops()

    return "xla", xm.xla_device(), wait, (1, 16, 256)


def seconds_per_call(tensor, wait, calls=10):
    """Return the mean time of an all-reduce, after two that warm up and bring all in step."""
    for call in range(calls + 2):
        if call == 2:
            start = time.perf_counter()
        dist.all_reduce(tensor)
        wait()
    return (time.perf_counter() - start) / calls


backend, device, wait, sizes = choose_backend()
dist.init_process_group(backend)
processes = dist.get_world_size()
reports = dist.get_rank() == 0
if reports and backend == "gloo":
    print("NOTE: no accelerator, so this measures gloo over TCP, which never uses EFA", flush=True)

bandwidths = {}
for mib in sizes:
    seconds = seconds_per_call(torch.zeros(mib << 18, device=device), wait)  # 4 bytes each
    bandwidths[mib] = 2 * (processes - 1) / processes * (mib << 20) / seconds / 1e9
    if reports:
        print(f"{mib:6d} MiB {seconds * 1e6:12.1f} us {bandwidths[mib]:8.2f} GB/s", flush=True)

best = max(bandwidths.values())
minimum = float(os.environ.get("TRAINYARD_MINIMUM_BUS_GBPS") or 0)
if reports:
    result = {"backend": backend, "processes": processes, "busGBps": round(best, 3)}
    print(json.dumps({**result, "minimumGBps": minimum, "passed": best >= minimum}), flush=True)
dist.destroy_process_group()
sys.exit(reports and best < minimum)
