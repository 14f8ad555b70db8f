"""torch_neuronx.experimental.profiler, as AWS's optimisation tutorial wraps a kernel call in it."""

import contextlib


class profiler:
    """Profiles are Trena's own: `trena run --trace FILE`."""

    @staticmethod
    @contextlib.contextmanager
    def profile(**ignored):
        """Changes nothing: every launch is timed."""
        yield None
