"""What holds for all tests."""

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The slow ones first, so that two workers end at about the same time (`--no-loadscope-reorder`)."""
    items.sort(key=lambda item: item.get_closest_marker("system") is None)
