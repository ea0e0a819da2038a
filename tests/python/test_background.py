# SPDX-License-Identifier: Apache-2.0
"""The thread of staged builds: nothing that it began runs on once it was stopped."""

import threading

from ingot.background import Worker


def test_threads_that_a_task_starts_at_its_end_are_joined() -> None:
    """Else a daemon thread may be inside of torch when the process ends, which aborts it."""
    worker, begun, may_end, ended = Worker(), threading.Event(), threading.Event(), threading.Event()

    def beside() -> None:
        may_end.wait(0.2)
        ended.set()

    class Job:
        def forget_threads(self) -> None: ...

        def lose_thread(self, reason: str) -> None:
            is_lost.set()

    def task() -> None:
        begun.set()
        is_lost.wait()
        worker.start_beside("beside", beside)

    is_lost, job = threading.Event(), Job()
    worker.watch(job)
    worker.submit(0, task)
    begun.wait()
    worker.stop()
    assert ended.is_set()
