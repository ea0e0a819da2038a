# SPDX-License-Identifier: Apache-2.0
import os
import signal

import pytest

# Builds in tests, also those of programs that tests start, neither find what the user's own builds kept, nor keep
# anything there. Tests of the disk cache name a folder.
os.environ.setdefault("INGOT_ENGINE_CACHE_DIR", "off")

# Programs that tests start take Ctrl-C, also where the tests run in the background, for which shells ignore the signal.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests marked `long` run only when INGOT_LONG=1 (make test LONG=1)."""
    if os.environ.get("INGOT_LONG") == "1":
        return
    for item in items:
        if item.get_closest_marker("long"):
            item.add_marker(pytest.mark.skip(reason="long: set INGOT_LONG=1"))
