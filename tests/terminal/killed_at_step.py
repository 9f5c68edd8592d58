"""A command that kills itself at a step of a link."""

import os
import signal
from typing import Any

from concord.transmission.steps import Steps


def kill_at(step: str) -> None:
    """From now on whatever takes this step ends at once, as by `kill -9`."""
    begin = Steps.__init__

    def watched(self: Steps, *arguments: Any, **named: Any) -> None:
        begin(self, *arguments, **named)
        heard = self.progress

        def progress(taken: str) -> None:
            if taken == step:
                os.kill(os.getpid(), signal.SIGKILL)
            heard(taken)

        self.progress = progress

    Steps.__init__ = watched  # type: ignore[method-assign]
