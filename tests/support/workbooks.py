"""Workbooks made by hand, as no program would write them."""

import io
from collections.abc import Iterable
from zipfile import ZIP_DEFLATED, ZipFile

_TYPES = '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>'
_RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_OASIS = "urn:oasis:names:tc:opendocument:xmlns"


def relations(*found: tuple[str, str]) -> str:
    items = "".join(
        f'<Relationship Id="r{number}" Type="{_RELATIONS}/{kind}" Target="{target}"/>'
        for number, (kind, target) in enumerate(found)
    )
    space = "http://schemas.openxmlformats.org/package/2006/relationships"
    return f'<Relationships xmlns="{space}">{items}</Relationships>'


def row(number: int, *cells: str) -> str:
    found = "".join(f'<c t="inlineStr"><is><t>{cell}</t></is></c>' for cell in cells)
    return f'<row r="{number}">{found}</row>'


def excel(*sheet: str, before: str = "", others: Iterable[tuple[str, bytes]] = ()) -> bytes:
    """Return a workbook of one sheet, whose rows are given as XML."""
    file = io.BytesIO()
    with ZipFile(file, "w", ZIP_DEFLATED) as parts:
        parts.writestr("[Content_Types].xml", _TYPES)
        parts.writestr("_rels/.rels", relations(("officeDocument", "xl/workbook.xml")))
        parts.writestr(
            "xl/workbook.xml",
            f'<workbook xmlns="{_MAIN}" xmlns:r="{_RELATIONS}">'
            '<sheets><sheet name="Pets" sheetId="1" r:id="r0"/></sheets></workbook>',
        )
        parts.writestr(
            "xl/_rels/workbook.xml.rels",
            relations(("worksheet", "worksheets/s.xml"), ("sharedStrings", "sharedStrings.xml")),
        )
        with parts.open("xl/worksheets/s.xml", "w", force_zip64=True) as part:
            part.write(f'{before}<worksheet xmlns="{_MAIN}"><sheetData>'.encode())
            for piece in sheet:
                part.write(piece.encode())
            part.write(b"</sheetData></worksheet>")
        for name, content in others:
            parts.writestr(name, content)
    return file.getvalue()


def shared_strings(text: str) -> tuple[str, bytes]:
    return "xl/sharedStrings.xml", f'<sst xmlns="{_MAIN}"><si><t>{text}</t></si></sst>'.encode()


def open_document(rows: str) -> bytes:
    """Return an OpenDocument spreadsheet of one sheet, whose rows are given as XML."""
    file = io.BytesIO()
    with ZipFile(file, "w", ZIP_DEFLATED) as parts:
        parts.writestr(
            "mimetype", "application/vnd.oasis.opendocument.spreadsheet", compress_type=0
        )
        parts.writestr("META-INF/manifest.xml", f'<m:manifest xmlns:m="{_OASIS}:manifest:1.0"/>')
        spaces = "".join(
            f' xmlns:{name}="{_OASIS}:{name}:1.0"' for name in ("office", "table", "text")
        )
        parts.writestr(
            "content.xml",
            f"<office:document-content{spaces}><office:body><office:spreadsheet>"
            f'<table:table table:name="Pets">{rows}</table:table>'
            "</office:spreadsheet></office:body></office:document-content>",
        )
    return file.getvalue()
