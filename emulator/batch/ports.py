"""What the control plane needs from whoever runs the jobs."""

from typing import Protocol


class JobScheduler(Protocol):
    """The scheduler as the control plane sees it; every method is called on the event loop's thread."""

    def changed(self) -> None:
        """Look again at what can be placed: an environment or queue has changed."""

    def queue_deleted(self, name: str) -> None:
        """End every job of a queue that is being deleted."""

    def unfinished(self, queue_name: str) -> int:
        """Count the jobs of a queue that have not ended; an array counts once for each child."""

    async def close(self) -> None:
        """End every job; when it returns, no process of a job is left."""
