"""Charts as a page draws them: where each shape is, and what it says. Macros make them SVG.

Positions and sizes are percentages of the drawing, so that a chart fits any width while its text
keeps its size. Nothing is told by colour alone: every tone has a pattern of its own.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

from petstore.console.numbers import grouped, money_in_words

Tone: TypeAlias = Literal["good", "wait", "bad"]
"""What a shape stands for, a class of the style sheet: all is well, nearly full, full."""

_FILLED_SHARE = 0.75
_STEPS = (1, 2, 5, 10)
_NEARLY = 0.8


class Bar(NamedTuple):
    label: str
    value: int
    x: float
    width: float
    y: float
    height: float


class Bars(NamedTuple):
    """Bars over time. ``top`` is the value at the upper edge, ``labels`` those of some bars.

    ``unit`` says what is counted, such as ``requests``; ``of`` what a bar is, such as ``Day``.
    Amounts of money are in the smallest unit of a ``currency``.
    """

    id: str
    title: str
    unit: str
    of: str
    currency: str
    text: str
    top: int
    bars: Sequence[Bar]

    @property
    def labels(self) -> Sequence[tuple[str, float, str]]:
        """The labels of the first, the middle and the last bar, with their places and anchors."""
        first, middle, last = self.bars[0], self.bars[(len(self.bars) - 1) // 2], self.bars[-1]
        between = (middle.label, round(middle.x + middle.width / 2, 2), "middle")
        return [
            (first.label, 0, "start"),
            *([between] if middle is not first else []),
            (last.label, 100, "end"),
        ]

    def in_words(self, value: int) -> str:
        """Return a value with what is counted, such as ``3 requests`` or ``$1,249.50``."""
        if self.currency:
            return money_in_words(value, self.currency)
        return f"{grouped(value)} {self.unit}"


class Meter(NamedTuple):
    """How much of a limit is used. Without a limit ``total`` is ``None``."""

    label: str
    used: int
    total: int | None
    width: float
    tone: Tone


def bars(
    id_: str, title: str, unit: str, of: str, values: Sequence[tuple[str, int]], currency: str = ""
) -> Bars:
    """Return a chart of one or more values; with a ``currency`` they are amounts of money."""
    top = _round_up(max(value for _, value in values))
    slot = 100 / len(values)
    drawn = [
        Bar(
            label,
            value,
            x=_rounded((index + (1 - _FILLED_SHARE) / 2) * slot),
            width=_rounded(_FILLED_SHARE * slot),
            y=_rounded(100 - 100 * value / top),
            height=_rounded(100 * value / top),
        )
        for index, (label, value) in enumerate(values)
    ]
    total = sum(value for _, value in values)
    label, highest = max(values, key=lambda each: each[1])
    chart = Bars(id_, title, unit, of, currency, "", top, drawn)
    text = f"{title}: {chart.in_words(total)} in all"
    if total:
        most = money_in_words(highest, currency) if currency else grouped(highest)
        text += f"; the most, {most}, on {label}"
    return chart._replace(text=text)


def meter(label: str, used: int, total: int | None) -> Meter:
    share = min(1, used / total) if total else 0
    tone: Tone = "good"
    if share >= _NEARLY:
        tone = "wait" if share < 1 else "bad"
    return Meter(label, used, total, _rounded(100 * share), tone)


def _round_up(value: int) -> int:
    """Return the first of 1, 2, 5, 10, 20, 50, … that is not below ``value``."""
    power: int = 10 ** (len(str(max(1, value))) - 1)
    return next(step * power for step in _STEPS if step * power >= value)


def percent_of(value: int, total: int) -> str:
    """Return a share for people: what is there is never shown as nothing, nor as all of it."""
    if value in (0, total):
        return "100%" if value else "0%"
    share = 100 * value / total
    if share < 1:
        return "<1%"
    return ">99%" if share > 99 else f"{share:.0f}%"  # noqa: PLR2004 - as it is written


def change_in_percent(now: int, before: int) -> str:
    """Return how much more or less an amount is, such as ``+12%``; empty without one before."""
    if not before:
        return ""
    return f"{round(100 * (now - before) / before):+,}%".replace("-", "\N{MINUS SIGN}")


def _rounded(percentage: float) -> float:
    return round(percentage, 2)
