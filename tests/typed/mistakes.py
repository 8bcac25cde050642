"""What a checker has to refuse: each line is an error of the kind named, and no other name will do."""

import mirabelle as mb

x = mb.HostArray([1.0, 2.0])
number: float = mb.sum(x)  # pyright: ignore[reportAssignmentType]
text: str = x + 1  # pyright: ignore[reportAssignmentType]
mb.sum(x, axes=0)  # pyright: ignore[reportCallIssue]
mb.roll(x)  # pyright: ignore[reportCallIssue]
mb.sin(x, x, x)  # pyright: ignore[reportCallIssue]
mb.reshape(x, "2")  # pyright: ignore[reportArgumentType]
mb.zeros(3, device=float)  # pyright: ignore[reportCallIssue, reportArgumentType]
mb.summe(x)  # type: ignore
x.summe()  # type: ignore
x.sum(axis="rows")  # pyright: ignore[reportArgumentType]
mb.sum(x).nothing  # type: ignore
half: mb.HostArray[mb.float32] = mb.HostArray[mb.float64]([1.0])  # pyright: ignore[reportAssignmentType]


@mb.compile
def doubled(u: mb.AbstractArray) -> mb.AbstractArray:
    return 2 * u


doubled(x, x)  # pyright: ignore[reportCallIssue]
