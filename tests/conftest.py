"""What holds for all tests."""

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("house", deadline=None, suppress_health_check=[HealthCheck.too_slow])  # machines may be busy
settings.load_profile("house")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The slow ones first, so that two workers end at about the same time (`--no-loadscope-reorder`)."""
    items.sort(key=lambda item: item.get_closest_marker("system") is None)
