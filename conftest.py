"""Fixtures for the whole suite come with pytest's own plugin tester."""

pytest_plugins = ("pytester",)
