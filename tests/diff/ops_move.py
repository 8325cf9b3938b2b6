"""Operators that move data, make it, or pick from it. See ops_math.py."""
import numpy as np

from graph import ANY, BOOL, F32, F64, FLOATS, I32, I64, LOW, NUMERIC, STR, Skip
from ops_math import op


def fractions(g, n, total):
    """n lengths >= 0 that add up to total."""
    cuts = sorted(g.int(0, total) for _ in range(n - 1))
    return [b - a for a, b in zip([0] + cuts, cuts + [total])]


@op('Transpose')
def transpose(g, name):
    x = g.val(ANY, specials=True)
    perm = [int(i) for i in g.rng.permutation(x.rank)] if g.chance(0.8) else None
    g.node(name, [x], exact=True, perm=perm if perm else None)


@op('Reshape')
def reshape(g, name):
    x = g.val(ANY, specials=True)
    n, shape, zero = x.size, [], False
    left = n
    for _ in range(g.int(0, 3)):
        d = g.pick([k for k in range(1, left + 1) if left % k == 0]) if left else 1
        shape.append(d)
        left //= max(d, 1)
    shape.append(left)
    if n == 1 and g.chance(0.2):
        shape = []
    if g.chance(0.4) and shape and n:
        shape[g.int(0, len(shape) - 1)] = -1
    elif g.chance(0.4):
        for k in range(min(len(shape), x.rank)):
            if x.shape[k] == shape[k] and g.chance(0.7):
                shape[k], zero = 0, True
    attrs = {}
    if not n and 0 in shape:
        if g.opset >= 14:
            attrs['allowzero'] = 1
            if -1 in shape:
                raise Skip('allowzero')
        elif any(d == 0 and (k >= x.rank or x.shape[k]) for k, d in enumerate(shape)):
            raise Skip('zero')
    g.node(name, [x, g.ints(shape)], exact=True, **attrs)


@op('Flatten')
def flatten(g, name):
    x = g.val(FLOATS if g.opset < 9 else ANY, specials=True)
    axis = g.int(-x.rank if g.opset >= 11 else 0, x.rank) if g.chance(0.8) else None
    if axis is None and x.rank < 1:
        axis = 0
    g.node(name, [x], exact=True, axis=axis)


@op('Squeeze')
def squeeze(g, name):
    x = g.val(ANY, min_rank=1, test=lambda v: 1 in v.shape, specials=True)
    ones = [i for i, d in enumerate(x.shape) if d == 1]
    axes = [a for a in ones if g.chance(0.7)] or ones[:1]
    if g.opset >= 11:
        axes = [a - x.rank if g.chance(0.3) else a for a in axes]
    if g.chance(0.2):
        axes = None
    if g.opset >= 13:
        g.node(name, [x, g.ints(axes) if axes else None], exact=True)
    else:
        g.node(name, [x], exact=True, axes=axes)


@op('Unsqueeze')
def unsqueeze(g, name):
    x = g.val(ANY, max_rank=4, specials=True)
    k = g.int(1, 2)
    axes = sorted(int(a) for a in g.rng.permutation(x.rank + k)[:k])
    if g.opset >= 11:
        axes = [a - x.rank - k if g.chance(0.3) else a for a in axes]
        if g.opset >= 13 and g.chance(0.3):
            axes.reverse()
    if g.opset >= 13:
        g.node(name, [x, g.ints(axes)], exact=True)
    else:
        g.node(name, [x], exact=True, axes=axes)


@op('Concat')
def concat(g, name):
    x = g.val(ANY, min_rank=1, specials=True)
    axis = g.int(0, x.rank - 1)
    vals = [x]
    for _ in range(g.int(0, 3)):
        dims = list(x.shape)
        dims[axis] = g.int(0 if g.chance(0.1) else 1, 4)
        vals.append(g.val((x.dtype,), dims=dims, min_rank=x.rank, max_rank=x.rank, specials=True))
    order = g.rng.permutation(len(vals))
    g.node(name, [vals[int(i)] for i in order], exact=True, axis=axis - x.rank if g.opset >= 11 and g.chance(0.3) else axis)


@op('Split')
def split(g, name):
    x = g.val(ANY, min_rank=1, specials=True)
    axis = g.int(0, x.rank - 1)
    n = g.int(1, 3)
    attrs = {} if axis == 0 and g.chance(0.3) else dict(axis=axis - x.rank if g.opset >= 11 and g.chance(0.3) else axis)
    if g.chance(0.6):
        parts = fractions(g, n, x.shape[axis])
        if g.opset >= 13:
            g.node(name, [x, g.ints(parts)], n, exact=True, **attrs)
        else:
            g.node(name, [x], n, exact=True, split=parts, **attrs)
    elif g.opset >= 18:
        # The last piece may be smaller, but not wanting.
        size = -(-x.shape[axis] // n) if x.shape[axis] else 0
        if size * (n - 1) >= x.shape[axis] and n > 1:
            raise Skip('pieces')
        g.node(name, [x], n, exact=True, num_outputs=n, **attrs)
    else:
        if x.shape[axis] % n:
            n = 1
        g.node(name, [x], n, exact=True, **attrs)


@op('Slice')
def slice_(g, name):
    x = g.val(ANY, min_rank=1, specials=True)
    axes = [int(a) for a in g.rng.permutation(x.rank)[:g.int(1, x.rank)]]
    starts, ends, steps = [], [], []
    for a in axes:
        d = x.shape[a]
        starts.append(g.pick([0, g.int(-d - 2, d + 2), g.int(0, max(d - 1, 0)), -1]))
        ends.append(g.pick([d, g.int(-d - 2, d + 2), 2 ** 31 - 1 if g.chance(0.5) else 2 ** 63 - 1, g.int(0, d)]))
        steps.append(1)
    if g.opset < 10:
        if any(e > 2 ** 40 for e in ends):
            ends = [min(e, 2 ** 31 - 1) for e in ends]
        axes = None if axes == list(range(len(axes))) and g.chance(0.5) else axes
        g.node(name, [x], exact=True, starts=starts, ends=ends, axes=axes)
        return
    for i, a in enumerate(axes):
        if g.chance(0.4):
            steps[i] = g.pick([2, 3, -1, -2])
            if steps[i] < 0:
                starts[i], ends[i] = g.pick([-1, x.shape[a], g.int(-2, 4)]), g.pick([-x.shape[a] - 1, -2 ** 31, g.int(-4, 3)])
    t = g.pick([I64, I64, I32])
    if t == I32:
        ends = [min(e, 2 ** 31 - 1) for e in ends]
    names_axes = not (axes == list(range(len(axes))) and g.chance(0.5))
    with_steps = any(s != 1 for s in steps) or g.chance(0.3)
    if names_axes and g.chance(0.3):
        axes = [a - x.rank for a in axes]
    g.node(name, [x, g.ints(starts, t), g.ints(ends, t), g.ints(axes, t) if names_axes else None,
                  g.ints(steps, t) if with_steps else None], exact=True)


@op('Pad')
def pad(g, name):
    x = g.val(ANY if g.opset >= 13 else FLOATS if g.opset < 11 else NUMERIC, min_rank=1, specials=True)
    modes = ['constant', 'reflect', 'edge'] + (['wrap'] if g.opset >= 19 else [])
    mode = g.pick(modes) if x.size else 'constant'
    axes = list(range(x.rank))
    if g.opset >= 18 and g.chance(0.3):
        axes = [int(a) for a in g.rng.permutation(x.rank)[:g.int(1, x.rank)]]
    before, after = [], []
    for a in axes:
        d = x.shape[a]
        top = 3 if mode == 'constant' else max(d - 1, 0) if mode == 'reflect' else min(d, 3)
        low = -min(d // 2, 1) if mode == 'constant' and g.chance(0.3) else 0
        before.append(g.int(low, top))
        after.append(g.int(low, top))
    attrs = dict(mode=mode if mode != 'constant' or g.chance(0.3) else None)
    if g.opset < 11:
        if mode == 'constant' and g.chance(0.5):
            attrs['value'] = 1.5
        g.node(name, [x], exact=True, pads=before + after, **attrs)
        return
    value = g.scalar(1, x.dtype) if mode == 'constant' and g.chance(0.5) else None
    given = g.ints([a - x.rank if g.chance(0.3) else a for a in axes]) if len(axes) != x.rank or axes != sorted(axes) else None
    g.node(name, [x, g.ints(before + after), value, given], exact=True, **attrs)


@op('Tile')
def tile(g, name):
    x = g.val(ANY if g.opset >= 13 else NUMERIC, min_rank=1, max_rank=4, specials=True)
    reps = [g.int(0 if g.chance(0.05) else 1, 3) for _ in range(x.rank)]
    g.node(name, [x, g.ints(reps)], exact=True)


@op('Expand')
def expand(g, name):
    x = g.val(ANY, max_rank=4, specials=True)
    shape = [g.int(1, 4) if d == 1 else g.pick([d, 1]) for d in x.shape]
    if g.chance(0.3):
        shape = shape[g.int(0, len(shape)):]
    elif g.chance(0.3):
        shape = g.dims(1, 1, 3) + shape
    g.node(name, [x, g.ints(shape)], exact=True)


@op('DepthToSpace', 'SpaceToDepth')
def depth(g, name):
    b = g.int(1, 3)
    n, c, h, w = g.dims(4, 1, 3)
    dims = [n, c * b * b, h, w] if name == 'DepthToSpace' else [n, c, h * b, w * b]
    x = g.val((F32, F64), dims=dims, min_rank=4, max_rank=4, fresh=0.6, specials=True)
    attrs = dict(mode=g.pick([None, 'DCR', 'CRD'])) if name == 'DepthToSpace' and g.opset >= 11 else {}
    g.node(name, [x], exact=True, blocksize=b, **attrs)


@op('Shape', 'Size')
def shape(g, name):
    x = g.val(ANY, specials=True)
    attrs = {}
    if name == 'Shape' and g.opset >= 15 and g.chance(0.5):
        attrs = dict(start=g.int(-x.rank - 1, x.rank), end=g.pick([None, g.int(-x.rank, x.rank + 1)]))
    g.node(name, [x], exact=True, **attrs)


@op('Dropout')
def dropout(g, name):
    x = g.val((F32, F64), specials=True)
    # Before version 12 nothing says what the mask is when nothing is dropped.
    two = g.opset >= 12 and g.chance(0.4)
    if g.opset >= 12:
        g.node(name, [x, g.scalar(0.3, F32) if g.chance(0.5) else None], 2 if two else 1, exact=True)
    else:
        g.node(name, [x], 2 if two else 1, exact=True, ratio=g.pick([None, 0.3]))


# ---- made ----
@op('ConstantOfShape')
def constant_of_shape(g, name):
    from onnx import numpy_helper
    t = g.only or g.pick(ANY)
    value = numpy_helper.from_array(g.random(t, [1])) if g.only or g.chance(0.8) else None
    s = g.shape()
    v = g.add(np.array(s, dtype=I64), const=not g.chance(0.08))
    g.node(name, [v], exact=True, value=value)


@op('EyeLike')
def eye_like(g, name):
    x = g.val((F32, F64, I32, I64), rank=2, specials=True)
    g.node(name, [x], exact=True, dtype=g.pick([None, 1, 6, 7, 11]), k=g.pick([None, 0, 1, -1, 3]))


@op('Range')
def range_(g, name):
    t = g.pick([F32, F64, I32, I64])
    a, step = g.int(-5, 5), g.pick([1, 2, -1, 3])
    b = a + step * g.int(0, 6) + g.int(-1, 1)
    scale = 0.25 if t in FLOATS else 1
    g.node(name, [g.scalar(v, t) for v in (a * scale, b * scale, step * scale)], exact=True)


@op('Trilu')
def trilu(g, name):
    x = g.val((F32, F64, I64, BOOL), min_rank=2, specials=True)
    g.node(name, [x, g.add(np.array(g.int(-3, 3), dtype=I64), const=True) if g.chance(0.6) else None], exact=True,
           upper=g.pick([None, 0, 1]))


@op('OneHot')
def one_hot(g, name):
    x = g.val((I64, I32, F32), min_rank=1, max_rank=3, exact=True, lo=-3, hi=6, test=lambda v: v.dtype not in FLOATS or
              bool((np.rint(v.data) == v.data).all()))
    t = g.only or g.pick([F32, I64, I32])
    vals = g.add(g.random(t, [2]))
    d = g.int(1, 6)
    depth = g.add(np.array([d] if g.chance(0.3) else d, dtype=g.pick([I64, I32, F32])), const=not g.chance(0.1))
    axis = g.int(-x.rank - 1 if g.opset >= 11 else -1, x.rank) if g.chance(0.7) else None
    if g.opset < 11 and x.size and x.data.min() < 0:
        raise Skip('negative')
    g.node(name, [x, depth, vals], exact=True, axis=axis)


# ---- picked ----
def indices(g, shape, n, negative=True):
    if not n:
        shape = [0 if i == 0 else d for i, d in enumerate(shape)]
        if not shape:
            raise Skip('nothing to pick from')
    t = g.pick([I64, I64, I32])
    lo = -n if negative and g.opset >= 11 and g.chance(0.5) else 0
    a = g.rng.integers(lo, max(n, 1), tuple(shape), dtype=t) if n else np.zeros(tuple(shape), t)
    return a


@op('Gather')
def gather(g, name):
    x = g.val(ANY, min_rank=1, specials=True)
    axis = g.int(0, x.rank - 1)
    if x.dtype == STR and np.prod(x.shape[axis + 1:]) != 1:
        # ONNX Runtime copies the first string of each row that is picked, no more.
        axis = x.rank - 1
    idx = indices(g, g.shape(0, 3), x.shape[axis])
    g.node(name, [x, g.add(idx, const=not g.chance(0.4))], exact=True, axis=g.pick([axis, axis - x.rank if g.opset >= 11 else axis]))


@op('GatherElements')
def gather_elements(g, name):
    x = g.val(ANY, min_rank=1, specials=True)
    axis = g.int(0, x.rank - 1)
    shape = [g.int(1, d) if d else 0 for d in x.shape]
    shape[axis] = g.int(1, 5)
    g.node(name, [x, g.add(indices(g, shape, x.shape[axis]))], exact=True, axis=g.pick([axis, axis - x.rank]))


def nd_indices(g, x, batch=0):
    k = g.int(1, x.rank - batch)
    lead = list(x.shape[:batch]) + g.dims(g.int(0 if batch else 1, 2), 1, 4)
    cols = []
    for i in range(k):
        d = x.shape[batch + i]
        if not d:
            raise Skip('nothing to pick from')
        cols.append(g.rng.integers(-d if g.chance(0.3) else 0, d, tuple(lead), dtype=I64))
    return np.stack(cols, -1), lead, k


@op('GatherND')
def gather_nd(g, name):
    x = g.val(ANY, min_rank=1, specials=True)
    batch = g.int(0, x.rank - 1) if g.opset >= 12 and g.chance(0.4) else 0
    idx, _, _ = nd_indices(g, x, batch)
    g.node(name, [x, g.add(idx)], exact=True, batch_dims=batch or None)


def reduction(g, x):
    if g.opset < 16 or x.dtype in LOW + (BOOL, STR) or g.chance(0.5):
        return None
    return g.pick(['none', 'add', 'mul'] + (['min', 'max'] if g.opset >= 18 else []))


@op('Scatter', 'ScatterElements')
def scatter_elements(g, name):
    if (name == 'Scatter') != (g.opset < 11):
        raise Skip('version')
    x = g.val(ANY, min_rank=1, empty=0)
    axis = g.int(0, x.rank - 1)
    shape = [g.int(1, d) for d in x.shape]
    how = reduction(g, x)
    idx = np.zeros(shape, dtype=I64)
    moved = np.moveaxis(idx, axis, -1)
    for where in np.ndindex(moved.shape[:-1]):
        n = moved.shape[-1]
        moved[where] = g.rng.permutation(x.shape[axis])[:n] if how in (None, 'none') else g.rng.integers(0, x.shape[axis], n)
    if g.opset >= 11 and g.chance(0.3):
        idx -= x.shape[axis]
    up = g.val((x.dtype,), dims=shape, min_rank=x.rank, max_rank=x.rank)
    g.node(name, [x, g.add(idx.astype(g.pick([I64, I32]))), up], exact=how in (None, 'none', 'min', 'max') or x.dtype not in FLOATS,
           terms=4 * (x.max_abs() + up.max_abs()), axis=g.pick([axis, axis - x.rank if g.opset >= 11 else axis]), reduction=how)


@op('ScatterND')
def scatter_nd(g, name):
    x = g.val(ANY, min_rank=1, empty=0)
    how = reduction(g, x)
    idx, lead, k = nd_indices(g, x)
    if how in (None, 'none'):
        flat = {tuple(int(i) % d for i, d in zip(r, x.shape)) for r in idx.reshape(-1, k)}
        if len(flat) != int(np.prod(lead)):
            raise Skip('twice')
    up = g.val((x.dtype,), dims=lead + list(x.shape[k:]), min_rank=len(lead) + x.rank - k, max_rank=9)
    g.node(name, [x, g.add(idx), up], exact=how in (None, 'none', 'min', 'max') or x.dtype not in FLOATS,
           terms=4 * (x.max_abs() + up.max_abs()), reduction=how)


@op('Compress')
def compress(g, name):
    x = g.val(ANY, min_rank=1, specials=True)
    axis = g.int(0, x.rank - 1) if g.chance(0.7) else None
    n = x.shape[axis] if axis is not None else x.size
    c = g.new(BOOL, [g.int(0, n)])
    g.node(name, [x, c], exact=True, axis=axis)


@op('NonZero')
def non_zero(g, name):
    x = g.val((F32, I32, I64, BOOL), exact=True, min_rank=1)
    g.node(name, [x], exact=True)


@op('Unique')
def unique(g, name):
    x = g.val((g.only,) if g.only else (F32, I64), exact=True, min_rank=1, empty=0)
    axis = g.int(0, x.rank - 1) if g.chance(0.5) else None
    g.node(name, [x], 4, exact=True, axis=axis, sorted=g.pick([None, 0, 1]))


@op('ReverseSequence')
def reverse_sequence(g, name):
    x = g.val(ANY, min_rank=2, specials=True, empty=0)
    time, batch = g.pick([(0, 1), (1, 0)])
    lens = g.rng.integers(1, x.shape[time], x.shape[batch], dtype=I64, endpoint=True)
    g.node(name, [x, g.add(lens)], exact=True, time_axis=time, batch_axis=batch)


@op('TensorScatter')
def tensor_scatter(g, name):
    b, s, d = g.int(1, 3), g.int(2, 6), g.int(1, 4)
    n = g.int(1, s)
    x, u = g.new(F32, [b, s, d]), g.new(F32, [b, n, d])
    at = g.add(g.rng.integers(0, s - n, b, dtype=I64, endpoint=True)) if g.chance(0.7) else None
    g.node(name, [x, u, at], exact=True, mode=g.pick([None, 'linear', 'circular']))
