"""Give a Dask scheduler the load of a large sweep, with tasks that do nothing.

One scheduler and its workers run as threads of this process; so the rate is that of the
scheduler, the client and the messages between them. The tasks and their merging are submitted
as `engine.datasets.cluster` does it: a few for each worker ahead, merged in groups.

    python docs/scripts/simulate_scheduler.py --tasks 5000 --workers 100
"""

from __future__ import annotations

import argparse
import resource
import time
from functools import partial

import distributed

from engine.datasets.cluster import submit_ahead
from engine.datasets.plan import MergeTree


def nothing(_number: int) -> int:
    """Stand for a task."""
    return 1


def add(counts: list[int]) -> int:
    """Stand for the merging of results."""
    return sum(counts)


def main() -> None:
    """Print tasks per second, and the memory of the process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=5000)
    parser.add_argument("--workers", type=int, default=100)
    arguments = parser.parse_args()
    with (
        distributed.LocalCluster(
            n_workers=arguments.workers,
            threads_per_worker=1,
            processes=False,
            dashboard_address=None,
            memory_limit=0,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        tree = MergeTree(partial(client.submit, add, priority=1, pure=False))
        began, computed = time.perf_counter(), time.process_time()
        memory = []

        def count(_number: int) -> None:
            memory.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)

        tasks = range(arguments.tasks)
        submit_ahead(client, nothing, tasks, lambda: arguments.workers, tree.push, count)
        total = tree.finish().result()
        seconds, computed = time.perf_counter() - began, time.process_time() - computed
    assert total == arguments.tasks
    print(f"{total} tasks on {arguments.workers} workers")
    print(f"{total / seconds:.0f} tasks/s by the clock")
    print(f"{computed / total * 1e3:.2f} ms of CPU a task")
    tenth = len(memory) // 10
    print(f"memory after a tenth {memory[tenth] >> 10} MB, at the end {memory[-1] >> 10} MB")


if __name__ == "__main__":
    main()
