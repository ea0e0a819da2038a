# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

import pytest
import served_models


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of engines and requests."""
    folder = tmp_path_factory.mktemp("served")
    served_models.write(folder)
    return folder
