# SPDX-License-Identifier: Apache-2.0
"""Bars in groups, as an SVG."""

from __future__ import annotations

from html import escape

_COLORS = ("#c7c7c7", "#7f7f7f", "#1f77b4", "#9467bd", "#ff9896", "#d62728", "#8c564b")
_BAR, _GAP, _LEFT, _RIGHT, _ROW = 12, 14, 150, 90, 16


def bars(title: str, rows: dict[str, dict[str, float]]) -> str:
    """A group for each row: its values, in the order of the first row that has them, relative to the row's largest."""
    names = list(dict.fromkeys(name for values in rows.values() for name in values))
    height = 2 * _ROW + len(names) * _ROW + sum(len(values) * _BAR + _GAP for values in rows.values())
    width, across = 640, 640 - _LEFT - _RIGHT
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="11">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="{width / 2}" y="{_ROW}" text-anchor="middle" font-size="13">{escape(title)}</text>',
    ]
    colors = {name: _COLORS[k % len(_COLORS)] for k, name in enumerate(names)}
    y = 2 * _ROW
    for name in names:
        parts.append(f'<rect x="{_LEFT}" y="{y - 9}" width="10" height="10" fill="{colors[name]}"/>')
        parts.append(f'<text x="{_LEFT + 16}" y="{y}">{escape(name)}</text>')
        y += _ROW
    for row, values in rows.items():
        parts.append(
            f'<text x="{_LEFT - 8}" y="{y + len(values) * _BAR / 2 + 4}" text-anchor="end">{escape(row)}</text>'
        )
        for name, value in values.items():
            length = value / max(values.values()) * across
            parts.append(
                f'<rect x="{_LEFT}" y="{y}" width="{length:.1f}" height="{_BAR - 2}" fill="{colors[name]}"/>'
            )
            parts.append(
                f'<text x="{_LEFT + length + 4:.1f}" y="{y + _BAR - 3}" font-size="10">{value:.0f}</text>'
            )
            y += _BAR
        y += _GAP
    return "\n".join([*parts, "</svg>"]) + "\n"
