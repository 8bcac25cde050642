"""Marks in a card's streams: how far a stream had come at a time, for others to wait for."""

from __future__ import annotations

from typing import Any


class Marks:
    """Makes marks in the streams of one card, and uses them again."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver
        self._idle: list[Any] = []

    def record(self, stream: Any) -> Any:
        """A mark after all that a stream has been given."""
        if self.driver.simulated:
            return stream, stream.given
        if self._idle:
            event = self._idle.pop()
        else:
            event = self.driver.library.cuda.Event(disable_timing=True)
        event.record(stream)
        return event

    def follow(self, later: Any, mark: Any) -> None:
        """What a stream is given from now on comes after a mark."""
        if not self.driver.simulated:
            later.wait_event(mark)
            return
        earlier, upto = mark
        if later.ptr == self.driver.default.ptr:
            earlier.drain(upto)
        else:
            later.tasks.append((lambda: earlier.drain(upto), None))

    def passed(self, mark: Any) -> bool:
        """Has the card come to a mark? It does not wait."""
        if not self.driver.simulated:
            return bool(mark.done)
        stream, upto = mark
        return bool(stream.done >= upto)

    def wait(self, mark: Any) -> None:
        """Wait on the host until the card comes to a mark."""
        if self.driver.simulated:
            mark[0].drain(mark[1])
        else:
            mark.synchronize()

    def give_back(self, mark: Any) -> None:
        """A mark is no longer needed. (Streams that follow it keep what it said.)"""
        if not self.driver.simulated and len(self._idle) < 64:
            self._idle.append(mark)
