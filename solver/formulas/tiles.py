r"""Grouped GEMM by tiles: rows are padded to whole tiles, and each tile reads the strips that it multiplies.

An output tile of $t_m$ rows and $t_n$ columns reads a strip of the input ($t_m \times K$) and one of the weights
($K \times t_n$), so several tiles of rows read the same weights again. Outputs are written once, without padding.
"""

import math
from collections.abc import Sequence


def tile_count(length: float, tile: float) -> float:
    r"""Tiles along a side: $\lceil x/t \rceil$."""
    return float(math.ceil(length / tile))


def padded_rows(rows: Sequence[float], tile: float, empty: bool = False) -> float:
    r"""Rows that run: $\sum_e t \lceil m_e/t \rceil$; with ``empty``, an expert without rows takes a tile too.

    Source: section 9.4.3 (224 for 64 valid rows; 256 when the empty expert is padded as well).
    """
    least = 1.0 if empty else 0.0
    return tile * sum(max(least, tile_count(each, tile)) for each in rows)


def gemm_bytes(
    rows: float,
    inner: float,
    columns: float,
    tile_rows: float,
    tile_columns: float,
    weight_bytes: float,
    activation_bytes: float,
) -> float:
    r"""Traffic of one product: $\lceil m/t_m \rceil \lceil N/t_n \rceil K (t_m b_a + t_n b_w) + m N b_a$.

    ``inner`` is $K$, ``columns`` is $N$; $b_a$ and $b_w$ are bytes of an activation and of a weight. Units: bytes.
    """
    tiles = tile_count(rows, tile_rows) * tile_count(columns, tile_columns)
    strips = inner * (tile_rows * activation_bytes + tile_columns * weight_bytes)
    return tiles * strips + rows * columns * activation_bytes


def expert_bytes(
    rows: float,
    hidden: float,
    width: float,
    tile_rows: float,
    tile_columns: float,
    weight_bytes: float,
    activation_bytes: float,
) -> float:
    r"""Traffic of one gated expert: two products $h \to f_e$ and one $f_e \to h$; the activation kernel is not counted.

    Units: bytes. Source: section 9.4.2 (921 MB for eight experts of 128 rows).
    """
    tile = (tile_rows, tile_columns, weight_bytes, activation_bytes)
    return 2.0 * gemm_bytes(rows, hidden, width, *tile) + gemm_bytes(rows, width, hidden, *tile)
