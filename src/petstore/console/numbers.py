"""Numbers and amounts of money as people read and type them; in the store, in the smallest unit."""

import re

from markupsafe import Markup

from petstore.domain.cursors import MAX_COUNTED
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
# What people type in place of a code. The page shows most other currencies by their code.
_SYMBOLS = {"USD": "$", "EUR": "€", "GBP": "£", "JPY": "¥", "INR": "₹"}
_SPACES = " '\N{RIGHT SINGLE QUOTATION MARK}\N{NO-BREAK SPACE}\N{NARROW NO-BREAK SPACE}"


def grouped(number: int) -> str:
    """Return an integer with thin spaces between groups of three digits."""
    return f"{number:,}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def count_in_words(count: int, noun: str, plural: str = "") -> str:
    """Return how many there are, such as ``253 pets``: exactly up to ``MAX_COUNTED``."""
    more = "more than " if count > MAX_COUNTED else ""
    return (
        f"{more}{grouped(min(count, MAX_COUNTED))} {noun if count == 1 else plural or f'{noun}s'}"
    )


def shown_count(count: int, noun: str, plural: str = "") -> Markup:
    """Return how many there are in words, whose number the script shows as the reader writes it."""
    number = grouped(min(count, MAX_COUNTED))
    data = f'<data value="{min(count, MAX_COUNTED)}">{number}</data>'
    return Markup(count_in_words(count, noun, plural).replace(number, data))  # noqa: S704 - no input


def _decimals_of(currency: str) -> int:
    return _DECIMALS.get(currency, _HUNDREDTHS)


def typed_amount(text: str, currency: str) -> int | None:
    """Return what a person typed as an amount, ``None`` if that is nothing.

    Thousands may be grouped, and decimals come after a point or a comma: ``1,249.50`` and
    ``1.249,5`` are the same. The code or the symbol of the currency may stand before or behind.
    """
    bare = text
    for mark in (currency, _SYMBOLS.get(currency, currency)):
        bare = bare.removeprefix(mark).removesuffix(mark).strip()
    if not bare and bare == text:
        return None
    decimals = _decimals_of(currency)
    match = _pattern(decimals).fullmatch(bare)
    if match is None:
        raise _no_price(currency)
    whole, fraction = re.sub(r"[^0-9]", "", match["whole"]), match["fraction"] or ""
    amount = int(whole + fraction.ljust(decimals, "0"))
    if amount > MAX_AMOUNT:
        raise _no_price(currency)
    return amount


def _pattern(decimals: int) -> re.Pattern[str]:
    # A point before three digits divides thousands, unless the currency has three decimals.
    separators = _SPACES if decimals > _HUNDREDTHS else f"{_SPACES}.,"
    fraction = rf"(?:[.,](?P<fraction>[0-9]{{1,{decimals}}}))?" if decimals else "(?P<fraction>)"
    groups = rf"[1-9][0-9]{{0,2}}(?P<group>[{separators}])[0-9]{{3}}(?:(?P=group)[0-9]{{3}})*"
    return re.compile(rf"(?P<whole>{groups}|[0-9]{{1,16}}){fraction}")


def _no_price(currency: str) -> InvalidBody:
    most = money_in_words(MAX_AMOUNT, currency)
    example = plain_amount(10 ** _decimals_of(currency) * 249, currency)
    return InvalidBody(f"amount: expected a price such as {example}, at most {most}")


def plain_amount(amount: int, currency: str) -> str:
    """Return an amount as a field of a form has it, such as ``1249.50``."""
    decimals = _decimals_of(currency)
    whole, rest = divmod(amount, 10**decimals)
    return f"{whole}.{rest:0{decimals}}" if decimals else str(whole)


def money_in_words(amount: int, currency: str) -> str:
    """Return an amount in a sentence, such as ``1 249.50 USD``."""
    whole, point, rest = plain_amount(amount, currency).partition(".")
    return f"{grouped(int(whole))}{point}{rest} {currency}"


def shown_money(amount: int, currency: str) -> Markup:
    return Markup('<data value="{}" data-currency="{}">{}</data>').format(
        plain_amount(amount, currency), currency, money_in_words(amount, currency)
    )
