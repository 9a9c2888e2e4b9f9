"""Times of a peer, and of the Go benchmark that runs in turns with it."""
import re
import subprocess
import time


def clock_of(threads):
    """The clock of a measurement: of one thread the time of the processor, of several that of the day."""
    return time.process_time if threads == 1 else time.perf_counter


def least(run, clock, runs):
    """The least seconds of so many runs behind a first one."""
    run()
    times = []
    for _ in range(runs):
        start = clock()
        run()
        times.append(clock() - start)
    return min(times)


def go_benchmark(package, name, runs, *units):
    """The values that a benchmark of a package reports in these units, from the root of the repository."""
    out = subprocess.run(["go", "test", package, "-run", "^$", "-bench", name + "$", "-benchtime", f"{runs}x"],
                         check=True, capture_output=True, text=True).stdout
    return [float(re.search(rf"([\d.]+) {unit}", out)[1]) for unit in units]
