"""Pair planes: linear bounds of two ReLUs of one layer at once, over what both pre-activations can be together.

Two triangles forget that z_i and z_j depend on the same inputs. With bounds of z_i + z_j and z_i − z_j, too, the pair
lies in an octagon, and for *any* slopes s

    c_i·relu(z_i) + c_j·relu(z_j)  ≥  s·z + min over the octagon of (c·relu(z) − s·z)

(Singh et al. 2019, "Beyond the Single Neuron Convex Barrier", bound groups of neurons from octahedra in this spirit).
The function on the right is linear but for kinks where z_i = 0 or z_j = 0. So its least value lies at one of thirteen
points: the octagon's corners, the ends of its slices z_i = 0 and z_j = 0, and the origin.
"""

from __future__ import annotations

from radii._torch import Tensor, torch

# With σ the largest |z_i| + |z_j|, ends of the octagon are made of at most two operations on numbers up to 3σ, corners
# and slices of two such ends: each coordinate is off by at most 8 units of σ. Products of them with slopes and
# coefficients, and their sum, add at most 5 more, the product of a slope with a pull one; the rest is to spare.
UNITS = 32.0


def corners(x: tuple[Tensor, Tensor], y: tuple[Tensor, Tensor], octagon: Tensor) -> Tensor:
    """The thirteen points where a function with kinks on both axes can be least, (…, 13, 2), but for rounding.

    `x` and `y` are the ends of z_i and z_j (…); `octagon` (…, 4) holds the ends of z_i + z_j, then of z_i − z_j. Where
    the octagon is empty the points mean nothing.
    """
    (l, u), (bottom, top) = x, y
    s0, s1, d0, d1 = octagon.unbind(-1)
    least, most = torch.minimum, torch.maximum
    # Every end is made as tight as the others allow: only then do neighbouring sides meet in corners.
    right = least(least(u, 0.5 * (s1 + d1)), least(s1 - bottom, top + d1))
    left = most(most(l, 0.5 * (s0 + d0)), most(s0 - top, bottom + d0))
    above = least(least(top, 0.5 * (s1 - d0)), least(s1 - l, u - d0))
    below = most(most(bottom, 0.5 * (s0 - d1)), most(s0 - u, l - d1))
    s_most = least(least(s1, u + top), least(2 * u - d0, 2 * top + d1))
    s_least = most(most(s0, l + bottom), most(2 * l - d1, 2 * bottom + d0))
    d_most = least(least(d1, u - bottom), least(2 * u - s0, s1 - 2 * bottom))
    d_least = most(most(d0, l - top), most(2 * l - s1, s0 - 2 * top))
    at_x = most(least(right, torch.zeros_like(right)), left)
    at_y = most(least(above, torch.zeros_like(above)), below)
    low_y = most(below, most(s_least - at_x, at_x - d_most))
    high_y = least(above, least(s_most - at_x, at_x - d_least))
    low_x = most(left, most(s_least - at_y, at_y + d_least))
    high_x = least(right, least(s_most - at_y, at_y + d_most))
    middle = most(least(high_y, torch.zeros_like(high_y)), low_y)
    across = (
        right, s_most - above, d_least + above, left, left, s_least - below, d_most + below, right,
        at_x, at_x, low_x, high_x, at_x,
    )  # fmt: skip
    up = (
        s_most - right, above, above, left - d_least, s_least - left, below, below, right - d_most,
        low_y, high_y, at_y, at_y, middle,
    )  # fmt: skip
    return torch.stack([torch.stack(across, -1), torch.stack(up, -1)], -1)


def least_offset(points: Tensor, c: tuple[Tensor, Tensor], s: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """The least c·relu(p) − s·p over points (…, 13, 2), but for rounding, and the point where it is, (…, 2)."""
    on = points.clamp_min(0.0)
    value = c[0][..., None] * on[..., 0] + c[1][..., None] * on[..., 1]
    value = value - s[0][..., None] * points[..., 0] - s[1][..., None] * points[..., 1]
    found = value.min(-1)
    at = found.indices[..., None, None].expand(*found.indices.shape, 1, 2)
    return found.values, points.gather(-2, at)[..., 0, :]


def offset_charge(c: tuple[Tensor, Tensor], s: tuple[Tensor, Tensor], span: Tensor, unit: float, terms: int) -> Tensor:
    """What rounding may have added to least offsets (nodes, pairs) in a sum of so many terms, (nodes,).

    `span` (pairs,) is the largest |z_i| + |z_j|.
    """
    size = c[0].abs() + c[1].abs() + s[0].abs() + s[1].abs()
    return (UNITS + terms) * unit * (size @ span)
