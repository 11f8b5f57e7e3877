"""Settings shared by all tests."""

from hypothesis import HealthCheck, settings

# The same examples in every run, and no deadline: a busy machine is no failure.
settings.register_profile(
    "book", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("book")
