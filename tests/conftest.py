"""Settings shared by all tests."""

from hypothesis import HealthCheck, settings

# The same examples in every run, and no deadline: a busy machine is no failure.
settings.register_profile("book", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
# For `make trust`: other examples in every run, and twenty times as many of them (property_cases.examples).
settings.register_profile("thorough", settings.get_profile("book"), derandomize=False, print_blob=True)
settings.load_profile("book")
