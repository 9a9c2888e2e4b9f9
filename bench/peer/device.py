"""What a CUDA device needs beside a processor: waiting, captured steps, memory, names.

Every function here does nothing, or says nothing, of the device "cpu".
"""
import contextlib
import sys
import warnings

import torch


def require(device):
    """Ends the program where there is no such device."""
    if device == "cuda" and not torch.cuda.is_available():
        sys.exit(f"--device cuda: torch {torch.__version__}, built for CUDA {torch.version.cuda}, finds no device here; "
                 "nvidia-smi says whether the driver does")


def wait(device):
    """Returns when the device has done all that was asked of it."""
    if device == "cuda":
        torch.cuda.synchronize()


def attention_order(first):
    """A context in which scaled_dot_product_attention takes cuDNN's kernels first; None: torch's own order."""
    if first is None:
        return contextlib.nullcontext()
    from torch.nn.attention import SDPBackend as By, sdpa_kernel

    return sdpa_kernel([By.CUDNN_ATTENTION, By.FLASH_ATTENTION, By.EFFICIENT_ATTENTION], set_priority=True)


def host_syncs(step):
    """How often one step makes the processor wait for the CUDA device: 0 if it is written well."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        try:
            step()
        finally:
            torch.cuda.set_sync_debug_mode("default")
    calls = [w for w in seen if "called a synchronizing" in str(w.message)]
    for w in calls:
        print(f"a step waits for the device at {w.filename}:{w.lineno}: {w.message}", file=sys.stderr)
    return len(calls)


def captured(step):
    """The step as a CUDA graph, which the processor launches as one.

    A step of small layers takes as long as thousands of launches; a graph takes as long as its
    kernels. Its shapes and addresses are fixed: the inputs of a training run are copied into
    those of the batch. The optimiser must be capturable.
    """
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):  # libraries take their work space of a stream before the capture
        for _ in range(2):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = step()

    def replay():
        graph.replay()
        return out

    return replay


def forget_peak(device):
    """The peak of memory begins here."""
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()


def memory(device):
    """The most that tensors took at once, and what torch holds of the device for them (MB)."""
    if device != "cuda":
        return {}
    most = {"peak_device_mb": torch.cuda.max_memory_allocated(), "reserved_device_mb": torch.cuda.max_memory_reserved()}
    return {k: v / 2**20 for k, v in most.items()}


def names(device):
    """The device and the libraries that compute on it."""
    if device != "cuda":
        return {}
    return {"device_name": torch.cuda.get_device_name(), "cuda": torch.version.cuda, "cudnn": torch.backends.cudnn.version()}
