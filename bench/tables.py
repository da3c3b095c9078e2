# SPDX-License-Identifier: Apache-2.0
"""Medians, spreads and aligned tables."""

import statistics


def median(values):
    values = [value for value in values if value is not None]
    return statistics.median(values) if values else None


def number(value, unit=""):
    """Formats a number with three significant digits."""
    if value is None:
        return "-"
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return f"{value:,.{digits}f}{unit}"


def with_spread(values, unit=""):
    """The median, and the range in brackets if there is one."""
    values = [value for value in values if value is not None]
    if not values:
        return "-"
    if len(values) == 1:
        return number(values[0], unit)
    return f"{number(median(values), unit)} [{number(min(values))} {number(max(values))}]"


def ratio(value):
    return "-" if value is None else f"{value:.3f}"


def ratio_with_spread(values):
    values = [value for value in values if value is not None]
    if len(values) < 2:
        return ratio(median(values))
    return f"{ratio(median(values))} [{ratio(min(values))} {ratio(max(values))}]"


def table(rows):
    """Lines of a table. Aligns the first column to the left, the others to the right."""
    widths = [max(len(row[c]) for row in rows) for c in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]
        lines.append("    " + "  ".join(cells).rstrip())
    return lines
