"""Numbers, amounts of money and charts, as people read and type them."""

import re
from collections.abc import Sequence
from datetime import date
from typing import NamedTuple
from unicodedata import category, decimal, normalize

from petstore.errors import InvalidBody
from petstore.orders.model import MAX_AMOUNT

# The currencies of ISO 4217 whose unit is not divided into hundredths.
_DECIMALS = {
    **dict.fromkeys(
        (
            *("BIF", "CLP", "DJF", "GNF", "ISK", "JPY", "KMF", "KRW"),
            *("PYG", "RWF", "UGX", "UYI", "VND", "VUV", "XAF", "XOF", "XPF"),
        ),
        0,
    ),
    **dict.fromkeys(("BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"), 3),
    **dict.fromkeys(("CLF", "UYW"), 4),
}
_HUNDREDTHS = 2
# The sign of a currency in pages comes first, then what else people and browsers write for it.
_NAMES = {
    "AUD": "A$ $ AU$",
    "BRL": "R$",
    "CAD": "CA$ $ C$",
    "CHF": "CHF Fr. SFr.",
    "CNY": "CN¥ ¥ 元 RMB",
    "CZK": "Kč",
    "DKK": "DKK kr. kr",
    "EUR": "€ euros euro",
    "GBP": "£",
    "HKD": "HK$ $",
    "ILS": "₪",
    "INR": "₹ Rs. Rs",
    "JPY": "¥ JP¥ 円 yen",
    "KRW": "₩ 원",
    "KWD": "KWD KD د.ك.",
    "MXN": "MX$ $",
    "NGN": "₦",
    "NOK": "NOK kr. kr",
    "NZD": "NZ$ $",
    "PHP": "₱",
    "PLN": "zł",
    "RUB": "₽",
    "SEK": "SEK kr. kr",
    "SGD": "S$ $ SG$",
    "THB": "฿",
    "TRY": "₺ TL",
    "TWD": "NT$ $",
    "UAH": "₴",
    "USD": "$ US$ dollars dollar",
    "VND": "₫",
    "ZAR": "R",
}
_SEPARATORS = str.maketrans(
    "\N{ARABIC THOUSANDS SEPARATOR}\N{ARABIC DECIMAL SEPARATOR}\N{RIGHT SINGLE QUOTATION MARK}",
    ",.'",
)
# "249,-" and "249." have no decimals, for which dashes may stand.
_NO_DECIMALS = re.compile(r"(?<=[0-9])[.,][-\N{EN DASH}\N{EM DASH}]{0,2}$")
_AMOUNT = re.compile(
    r"(?P<whole>[0-9]{1,16}|[1-9][0-9]{0,2}(?P<by>[.,' ])(?:[0-9]{2,3}(?P=by))*[0-9]{3})"
    r"(?:(?P<point>[.,])(?P<fraction>[0-9]+))?"
)
_THOUSANDS = 3


def grouped(number: int) -> str:
    return f"{number:,}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def _decimals_of(currency: str) -> int:
    return _DECIMALS.get(currency, _HUNDREDTHS)


def typed_amount(text: str, currency: str, name: str = "amount") -> int | None:
    """Thousands may be grouped, and decimals come after a point or a comma: ``1.249,5``.

    What could be thousands or decimals is refused with a question.
    """
    if not text.strip():
        return None
    decimals, match = _decimals_of(currency), _AMOUNT.fullmatch(_bare(text, currency))
    if match is None or match["by"] == (match["point"] or ""):
        raise _no_price(name, currency)
    whole, fraction = re.sub("[^0-9]", "", match["whole"]), match["fraction"] or ""
    could_be_thousands = (
        len(fraction) == _THOUSANDS >= len(whole) and match["by"] is None and whole[0] != "0"
    )
    if could_be_thousands and (decimals == 0 or (match["point"], decimals) == (",", _HUNDREDTHS)):
        whole, fraction = whole + fraction, ""
    elif could_be_thousands and (match["point"], decimals) != (".", _THOUSANDS):
        many = money_in_words(int(whole + fraction) * 10**decimals, currency)
        few = money_in_words(int(whole + fraction.ljust(decimals, "0")[:decimals]), currency)
        raise _no_price(name, currency, f"is {match[0]} {many} or {few}? ")
    if len(fraction) > decimals:
        raise _no_price(name, currency)
    amount = int(whole + fraction.ljust(decimals, "0"))
    if amount > MAX_AMOUNT:
        raise InvalidBody(f"{name}: expected at most {money_in_words(MAX_AMOUNT, currency)}")
    return amount


def _bare(text: str, currency: str) -> str:
    typed = (str(decimal(c)) if c.isdecimal() else c for c in normalize("NFKC", text))
    # Marks of text direction show nothing.
    bare = "".join(c for c in typed if category(c) != "Cf").translate(_SEPARATORS).casefold()
    for name in sorted([currency, *_NAMES.get(currency, "").split()], key=len, reverse=True):
        bare = bare.strip().removeprefix(name.casefold()).removesuffix(name.casefold())
    return _NO_DECIMALS.sub("", bare.strip())


def _no_price(name: str, currency: str, question: str = "") -> InvalidBody:
    example = plain_amount(10 ** _decimals_of(currency) * 249, currency)
    return InvalidBody(
        f"{name}: {question}{'Enter' if question else 'enter'} a price such as {example}"
    )


def plain_amount(amount: int, currency: str) -> str:
    decimals = _decimals_of(currency)
    whole, rest = divmod(amount, 10**decimals)
    return f"{whole}.{rest:0{decimals}}" if decimals else str(whole)


def money_in_words(amount: int, currency: str) -> str:
    """Return an amount as all pages and commands show it, such as ``$1,249.50``."""
    whole, point, rest = plain_amount(abs(amount), currency).partition(".")
    sign = _NAMES.get(currency, currency).split()[0]
    gap = "\N{NO-BREAK SPACE}" if sign[-1].isalpha() or sign[-1] == "." else ""
    return f"{'-' if amount < 0 else ''}{sign}{gap}{int(whole):,}{point}{rest}"


class Bars(NamedTuple):
    """``unit`` says what is counted, such as ``requests``; ``of`` what a bar is, such as ``Day``.

    Amounts of money are in the smallest unit of a ``currency``.
    """

    title: str
    unit: str
    of: str
    points: Sequence[tuple[str, int]]
    currency: str = ""

    @property
    def top(self) -> int:
        """The value at the upper edge: the first of 1, 2, 5, 10, 20, … that no bar exceeds."""
        highest = max(1, *(value for _, value in self.points))
        power: int = 10 ** (len(str(highest)) - 1)
        return next(step * power for step in (1, 2, 5, 10) if step * power >= highest)

    @property
    def text(self) -> str:
        total = sum(value for _, value in self.points)
        text = f"{self.title}: {self.in_words(total)} in all"
        if not total:
            return text
        label, highest = max(self.points, key=lambda each: each[1])
        most = money_in_words(highest, self.currency) if self.currency else grouped(highest)
        return f"{text}; the most, {most}, on {label}"

    def in_words(self, value: int) -> str:
        if self.currency:
            return money_in_words(value, self.currency)
        return f"{grouped(value)} {self.unit}"


def chart_day(day: date) -> str:
    """Return a day as charts label it; the script shows it as the reader writes it."""
    return f"{day.day} {day:%b}"


def change_in_percent(now: int, before: int) -> str:
    """Return how much more or less an amount is, such as ``+12%``; empty without one before."""
    if not before:
        return ""
    return f"{round(100 * (now - before) / before):+,}%".replace("-", "\N{MINUS SIGN}")
