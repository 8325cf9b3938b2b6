"""Matrix products, windows, normalisation, recurrence, quantisation. See ops_math.py."""
import numpy as np

from graph import BOOL, F16, F32, F64, FLOATS, I32, I64, I8, U8, Skip
from ops_math import op


def window(g, sizes, dilate=True, auto=True):
    """Random kernel, strides, dilations and padding that fit the spatial sizes."""
    n = len(sizes)
    kernel = [g.int(1, min(3, s)) for s in sizes]
    attrs = {}
    if g.chance(0.5):
        attrs['strides'] = [g.int(1, 3) for _ in sizes]
    if dilate and g.chance(0.3):
        d = [g.int(1, 2) if (kernel[i] - 1) * 2 + 1 <= sizes[i] else 1 for i in range(n)]
        attrs['dilations'] = d
    if g.chance(0.5):
        attrs['pads'] = [g.int(0, kernel[i % n] - 1) for i in range(2 * n)]
    elif auto and g.chance(0.4) and 'dilations' not in attrs:
        attrs['auto_pad'] = g.pick(['SAME_UPPER', 'SAME_LOWER', 'VALID', 'NOTSET'])
        # A stride beyond the kernel would pad by less than nothing: ONNX Runtime's
        # Conv takes that for none, some of its pools crop, the others refuse it.
        if attrs['auto_pad'][0] == 'S' and 'strides' in attrs:
            attrs['strides'] = [min(s, k) for s, k in zip(attrs['strides'], kernel)]
    return kernel, attrs


def spatial(g, lo=1, hi=3):
    n = g.pick([1, 2, 2, 2, 3])
    n = min(max(n, lo), hi)
    return [g.int(1, 6 if n == 3 else 8) for _ in range(n)]


@op('Conv')
def conv(g, name):
    sizes = spatial(g)
    group = g.pick([1, 1, 1, 2, 3])
    cin, cout = g.int(1, 3), g.int(1, 4)
    x = g.new(g.pick([F32, F32, F32, F64]), [g.int(1, 2), cin * group] + sizes, const=False) if g.chance(0.5) else \
        g.val((F32,), min_rank=3, max_rank=5, test=lambda v: all(v.shape), empty=0)
    if x.shape[1] % group:
        group = 1
    kernel, attrs = window(g, x.shape[2:])
    w = g.new(x.dtype, [cout * group, x.shape[1] // group] + kernel)
    b = g.new(x.dtype, [cout * group]) if g.chance(0.5) else None
    k = int(np.prod(w.shape[1:]))
    g.node(name, [x, w, b], terms=k ** 0.5 * x.max_abs() * w.max_abs(), group=g.pick([group, None]) if group == 1 else group,
           kernel_shape=kernel if g.chance(0.6) else None, **attrs)


@op('ConvTranspose')
def conv_transpose(g, name):
    sizes = [min(s, 5) for s in spatial(g)]
    group = g.pick([1, 1, 2])
    cin, cout = g.int(1, 2), g.int(1, 3)
    x = g.new(F32, [g.int(1, 2), cin * group] + sizes)
    n = len(sizes)
    kernel = [g.int(1, 3) for _ in sizes]
    strides = [g.int(1, 2) for _ in sizes]
    attrs = dict(strides=strides)
    if g.chance(0.3):
        attrs['dilations'] = [g.int(1, 2) for _ in sizes]
    if g.chance(0.4):
        attrs['pads'] = [g.int(0, (kernel[i % n] - 1) // 2) for i in range(2 * n)]
    if g.chance(0.3):
        attrs['output_padding'] = [g.int(0, s - 1) for s in strides]
    w = g.new(F32, [cin * group, cout] + kernel)
    b = g.new(F32, [cout * group]) if g.chance(0.5) else None
    g.node(name, [x, w, b], terms=(cin * np.prod(kernel)) ** 0.5 * x.max_abs() * w.max_abs(), group=group, **attrs)


@op('AveragePool', 'MaxPool', 'LpPool')
def pool(g, name):
    types = (F32,) if name != 'MaxPool' else (F32, F32, F64) + ((U8, I8) if g.opset >= 12 else ())
    indices = name == 'MaxPool' and g.opset >= 8 and g.chance(0.4)
    x = g.val(types, min_rank=3, max_rank=5, empty=0, fresh=0.5, exact=indices,
              test=lambda v: all(v.shape) and (v.dtype in FLOATS or v.rank == 4))
    dil = name == 'MaxPool' and g.opset >= 10 or name == 'AveragePool' and g.opset >= 19 or name == 'LpPool' and g.opset >= 18
    kernel, attrs = window(g, x.shape[2:], dil)
    if name != 'LpPool' and g.opset >= 10 and g.chance(0.4) and 'auto_pad' not in attrs or \
            name == 'LpPool' and g.opset >= 18 and g.chance(0.3) and 'auto_pad' not in attrs:
        attrs['ceil_mode'] = 1
    if name == 'AveragePool' and g.chance(0.4):
        attrs['count_include_pad'] = 1
    if name == 'LpPool' and g.chance(0.5):
        attrs['p'] = g.pick([1, 2, 3])
    if name == 'MaxPool' and indices and g.chance(0.4):
        attrs['storage_order'] = g.int(0, 1)
    g.node(name, [x], 2 if indices else 1, exact=name == 'MaxPool', terms=x.max_abs(), kernel_shape=kernel, **attrs)


@op('GlobalAveragePool', 'GlobalMaxPool', 'GlobalLpPool')
def global_pool(g, name):
    x = g.val((F32, F32, F64) if name != 'GlobalLpPool' else (F32,), min_rank=3, max_rank=5, empty=0,
              test=lambda v: all(v.shape))
    g.node(name, [x], exact=name == 'GlobalMaxPool', terms=x.max_abs(), p=g.pick([None, 1, 3]) if name == 'GlobalLpPool' else None)


@op('MaxUnpool')
def max_unpool(g, name):
    n, c, h, w = g.int(1, 2), g.int(1, 2), g.int(1, 3), g.int(1, 3)
    x = g.new(F32, [n, c, h, w])
    H, W = 2 * h, 2 * w
    idx = np.zeros([n, c, h, w], I64)
    for a, b, i, j in np.ndindex(n, c, h, w):
        idx[a, b, i, j] = (a * c + b) * H * W + (2 * i + g.int(0, 1)) * W + 2 * j + g.int(0, 1)
    shape = g.ints([n, c, H, W]) if g.chance(0.4) else None
    g.node(name, [x, g.add(idx), shape], exact=True, kernel_shape=[2, 2], strides=[2, 2])


@op('MaxRoiPool')
def max_roi_pool(g, name):
    n, c, h, w = g.int(1, 2), g.int(1, 2), g.int(3, 7), g.int(3, 7)
    rois = []
    for _ in range(g.int(1, 3)):
        x1, y1 = g.int(0, w - 2), g.int(0, h - 2)
        rois.append([g.int(0, n - 1), x1, y1, g.int(x1, w - 1), g.int(y1, h - 1)])
    g.node(name, [g.new(F32, [n, c, h, w]), g.add(np.array(rois, F32))], exact=True, pooled_shape=[g.int(1, 3), g.int(1, 3)],
           spatial_scale=g.pick([None, 1.0]))


@op('RoiAlign')
def roi_align(g, name):
    n, c, h, w = g.int(1, 2), g.int(1, 3), g.int(3, 7), g.int(3, 7)
    k = g.int(1, 3)
    lo = g.rng.uniform(0, 2, (k, 2))
    rois = np.concatenate([lo, lo + g.rng.uniform(0.5, 4, (k, 2))], 1).astype(F32)
    batch = g.rng.integers(0, n, k, dtype=I64)
    attrs = dict(output_height=g.int(1, 3), output_width=g.int(1, 3), sampling_ratio=g.int(0, 2),
                 spatial_scale=float(g.pick([1.0, 0.5])), mode=g.pick([None, 'avg', 'max']))
    if g.opset >= 16:
        attrs['coordinate_transformation_mode'] = g.pick([None, 'half_pixel', 'output_half_pixel'])
    g.node(name, [g.new(F32, [n, c, h, w]), g.add(rois), g.add(batch)], base=1e-4, terms=4, **attrs)


@op('GridSample')
def grid_sample(g, name):
    n, c = g.int(1, 2), g.int(1, 3)
    size = [g.int(2, 6) for _ in range(2 if g.opset < 20 else g.pick([2, 2, 3]))]
    out = [g.int(1, 4) for _ in size]
    grid = g.rng.uniform(-1.3, 1.3, [n] + out + [len(size)]).astype(F32)
    linear, cubic = ('bilinear', 'bicubic') if g.opset < 20 else ('linear', 'cubic')
    mode = g.pick([None, linear, 'nearest'] + ([cubic] if len(size) == 2 else []))
    g.node(name, [g.new(F32, [n, c] + size), g.add(grid)], base=1e-4, terms=4, mode=mode,
           padding_mode=g.pick([None, 'zeros', 'border', 'reflection']), align_corners=g.pick([None, 0, 1]))


@op('Resize')
def resize(g, name):
    sizes = [g.int(1, 5) for _ in range(g.pick([1, 2, 2, 2, 3]))]
    lead = [g.int(1, 2), g.int(1, 2)]
    x = g.new(F32, lead + sizes)
    mode = g.pick(['nearest', 'linear'] + (['cubic'] if len(sizes) == 2 and g.opset >= 11 else []))
    out = [g.int(1, 8) for _ in sizes]
    by_size = g.opset >= 11 and g.chance(0.5)
    # Factors that are exact, so that nobody's floor falls on another side.
    factors = [1.0, 1.0] + [float(g.pick([0.5, 1.0, 1.5, 2.0, 3.0])) for _ in sizes]
    if not by_size and any(int(np.floor(s * f)) == 0 for s, f in zip(sizes, factors[2:])):
        raise Skip('empty')
    if g.opset < 11:
        g.node(name, [x, g.add(np.array(factors, F32), const=True)], terms=4, mode=mode)
        return
    attrs = dict(mode=mode)
    modes = ['half_pixel', 'asymmetric', 'align_corners', 'pytorch_half_pixel'] + (['half_pixel_symmetric'] if g.opset >= 19 else [])
    attrs['coordinate_transformation_mode'] = g.pick([None] + modes)
    if mode == 'nearest':
        attrs['nearest_mode'] = g.pick([None, 'round_prefer_floor', 'round_prefer_ceil', 'floor', 'ceil'])
        # Sizes give a factor that is not exact; at a tie the side is up to rounding.
        if by_size:
            out = [g.pick([s, 2 * s, 4 * s]) for s in sizes]
    if mode == 'cubic':
        attrs['cubic_coeff_a'] = g.pick([None, -0.5])
        attrs['exclude_outside'] = g.pick([None, 0, 1])
    if g.opset >= 18 and g.chance(0.3) and mode != 'nearest':
        attrs['antialias'] = 1
    axes = None
    if g.opset >= 18 and g.chance(0.3):
        axes = list(range(2, 2 + len(sizes)))
        attrs['axes'] = axes
    full = out if axes else lead + out
    scales = factors[2:] if axes else factors
    if not by_size and attrs['coordinate_transformation_mode'] == 'align_corners' and \
            any(s * f != int(s * f) for s, f in zip(sizes, factors[2:])):
        # ONNX's text has the length as it is, rounded down; its own test data
        # (test_resize_downsample_scales_linear_align_corners) and so ridge have
        # the length before rounding. ONNX Runtime keeps to the text.
        raise Skip('length')
    if by_size:
        g.node(name, [x, None, None, g.add(np.array(full, I64), const=True)], terms=4, base=1e-4, **attrs)
    else:
        g.node(name, [x, None if g.opset >= 13 else g.add(np.zeros(0, F32), const=True), g.add(np.array(scales, F32), const=True)],
               terms=4, base=1e-4, **attrs)


@op('Upsample')
def upsample(g, name):
    if g.opset > 9:
        raise Skip('version')
    x = g.new(F32, [1, g.int(1, 3), g.int(1, 4), g.int(1, 4)])
    s = [1.0, 1.0, float(g.int(1, 3)), float(g.int(1, 3))]
    mode = g.pick(['nearest', 'linear', None])
    if g.opset == 9:
        g.node(name, [x, g.add(np.array(s, F32), const=True)], terms=4, mode=mode)
    else:
        g.node(name, [x], terms=4, mode=mode, scales=s)


# ---- products ----
@op('MatMul')
def matmul(g, name):
    types = (F32, F32, F64) + ((I32, I64) if g.opset >= 9 else ())
    a = g.val(types, min_rank=1, max_rank=4)
    k, n = a.shape[-1], g.int(1, 5)
    r = g.int(1, 3)
    if r == 1:
        dims = [k]
    else:
        batch = [d if g.chance(0.6) else 1 for d in a.shape[:-2]]
        dims = (batch[-(r - 2):] if r > 2 and batch else []) + [k, n]
    b = g.val((a.dtype,), dims=dims, min_rank=len(dims), max_rank=len(dims))
    g.node(name, [a, b], exact=a.dtype not in FLOATS, terms=k ** 0.5 * a.max_abs() * b.max_abs())


@op('Gemm')
def gemm(g, name):
    m, k, n = g.int(1, 6), g.int(1, 6), g.int(1, 6)
    if g.chance(0.03):
        k = 0
    ta, tb = g.pick([None, 0, 1]), g.pick([None, 0, 1])
    t = g.pick([F32, F32, F64])
    a = g.val((t,), dims=[k, m] if ta else [m, k], min_rank=2, max_rank=2)
    b = g.val((t,), dims=[n, k] if tb else [k, n], min_rank=2, max_rank=2)
    c = g.new(t, g.pick([[m, n], [n], [1, n], [m, 1], [1], []])) if g.chance(0.6) or g.opset < 11 else None
    g.node(name, [a, b, c], terms=2 * k ** 0.5 * a.max_abs() * b.max_abs() + 4, transA=ta, transB=tb,
           alpha=g.pick([None, 0.5, 1.0, 2.0]), beta=g.pick([None, 0.25, 1.0, 0.0]))


@op('Einsum')
def einsum(g, name):
    eq, shapes = g.pick([
        ('ij,jk->ik', ('ij', 'jk')), ('ij->ji', ('ij',)), ('bij,bjk->bik', ('bij', 'bjk')), ('ij,ij->', ('ij', 'ij')),
        ('ii->i', ('ii',)), ('i,j->ij', ('i', 'j')), ('bij,bkj->bik', ('bij', 'bkj')), ('ijk->k', ('ijk',)),
        ('bhid,bhjd->bhij', ('bhid', 'bhjd')), ('...ij,...jk->...ik', ('bij', 'bjk')), ('ij,jk', ('ij', 'jk')),
        ('ij,jk,kl->il', ('ij', 'jk', 'kl')), ('abc,cd->abd', ('abc', 'cd'))])
    size = {c: g.int(1, 4) for c in 'abcdhijkl'}
    t = g.pick([F32, F32, F64])
    vals = [g.val((t,), dims=[size[c] for c in s], min_rank=len(s), max_rank=len(s)) for s in shapes]
    scale = float(np.prod([v.max_abs() for v in vals])) * 4
    g.node(name, vals, terms=scale, equation=eq)


# ---- normalisation ----
@op('BatchNormalization')
def batch_norm(g, name):
    x = g.val((F32,) if g.opset < 14 else (F32, F32, F64), min_rank=2, max_rank=5, empty=0, test=lambda v: all(v.shape))
    c = x.shape[1]
    params = [g.new(x.dtype, [c], -2, 2), g.new(x.dtype, [c], -2, 2), g.new(x.dtype, [c], -2, 2), g.new(x.dtype, [c], 0.25, 4)]
    g.node(name, [x] + params, terms=2 * x.max_abs() + 8, epsilon=g.pick([None, 1e-3, 1e-5]))


@op('InstanceNormalization', 'GroupNormalization')
def instance_norm(g, name):
    x = g.val((F32,), min_rank=3, max_rank=5, empty=0, test=lambda v: v.size and np.prod(v.shape[2:]) > 2)
    c, attrs = x.shape[1], {}
    n = c
    if name == 'GroupNormalization':
        groups = g.pick([d for d in range(1, c + 1) if c % d == 0])
        attrs = dict(num_groups=groups)
        n = groups if g.opset < 21 else c
    # Of nearly equal elements the deviation is noise.
    flat = x.data.reshape(x.shape[0] * attrs.get('num_groups', c), -1).astype('f8')
    if (flat.std(1) < 0.1 * np.abs(flat).max(1) + 1e-3).any():
        raise Skip('flat')
    g.node(name, [x, g.new(F32, [n], -2, 2), g.new(F32, [n], -2, 2)], terms=4, base=1e-4, epsilon=g.pick([None, 1e-3]), **attrs)


@op('LayerNormalization', 'RMSNormalization')
def layer_norm(g, name):
    x = g.val((F32, F32, F64), min_rank=1, max_rank=4, empty=0, test=lambda v: v.size and v.data.std() > 0.2)
    axis = g.int(0, x.rank - 1)
    dims = list(x.shape[axis:])
    s = g.new(x.dtype, dims, -2, 2)
    b = g.new(x.dtype, dims) if g.chance(0.6) and name[0] == 'L' else None
    attrs = dict(axis=axis - x.rank if g.chance(0.4) else axis, epsilon=g.pick([None, 1e-3]))
    outs = g.pick([1, 1, 3]) if name[0] == 'L' else 1
    g.node(name, [x, s, b], outs, terms=4, base=1e-4, **attrs)


@op('LRN')
def lrn(g, name):
    x = g.val((F32,), rank=4, empty=0, test=lambda v: all(v.shape))
    g.node(name, [x], size=g.pick([1, 3, 5]), alpha=g.pick([None, 0.5]), beta=g.pick([None, 0.5]), bias=g.pick([None, 2.0]))


@op('LpNormalization')
def lp_norm(g, name):
    x = g.val((F32, F64), min_rank=1, empty=0, lo=0.25, hi=8)
    g.node(name, [x], axis=g.pick([None, g.axis(x.rank)]), p=g.pick([None, 1, 2]))


@op('MeanVarianceNormalization')
def mvn(g, name):
    x = g.val((F32,), rank=4, empty=0, test=lambda v: v.size > 6 and v.data.std() > 0.2, fresh=0.5)
    # Where all elements are alike the definition's epsilon gives 0, ONNX Runtime NaN.
    if (x.data.astype('f8').std((0, 2, 3)) < 0.1 * x.max_abs() + 1e-3).any():
        raise Skip('flat')
    g.node(name, [x], base=1e-4, terms=4, axes=g.pick([None, [0, 2, 3], [0, 1, 2, 3]]))


# ---- recurrence ----
@op('LSTM', 'GRU', 'RNN')
def recurrent(g, name):
    gates = dict(LSTM=4, GRU=3, RNN=1)[name]
    seq, batch, inp, hid = g.int(1, 4), g.int(1, 3), g.int(1, 4), g.int(1, 4)
    direction = g.pick([None, 'forward', 'reverse', 'bidirectional'])
    d = 2 if direction == 'bidirectional' else 1
    # ORT has no batchwise layout.
    x = g.val((F32,), dims=[seq, batch, inp], min_rank=3, max_rank=3, lo=-4, hi=4, fresh=0.6)
    ins = [x, g.new(F32, [d, gates * hid, inp], -1, 1), g.new(F32, [d, gates * hid, hid], -1, 1)]
    ins.append(g.new(F32, [d, 2 * gates * hid], -1, 1) if g.chance(0.5) else None)
    ins.append(g.add(g.rng.integers(1, seq, batch, dtype=I32, endpoint=True)) if g.chance(0.3) else None)
    ins.append(g.new(F32, [d, batch, hid], -1, 1) if g.chance(0.4) else None)
    attrs = dict(direction=direction, hidden_size=hid)
    if name == 'LSTM':
        ins.append(g.new(F32, [d, batch, hid], -1, 1) if g.chance(0.4) else None)
        ins.append(g.new(F32, [d, 3 * hid], -1, 1) if g.chance(0.3) else None)
        attrs['input_forget'] = g.pick([None, None, 0])
    if name == 'GRU':
        attrs['linear_before_reset'] = g.pick([None, 0, 1])
    if g.chance(0.2):
        attrs['clip'] = 1.5
    if g.chance(0.25):
        fs = [g.pick(['Sigmoid', 'Tanh', 'Relu']) for _ in range(dict(LSTM=3, GRU=2, RNN=1)[name] * d)]
        attrs['activations'] = fs
    outs = 3 if name == 'LSTM' else 2
    wanted = [g.chance(0.8) for _ in range(outs)]
    if not any(wanted):
        wanted[0] = True
    g.node(name, ins, outs, wanted=wanted, base=2e-4, terms=1, **attrs)


# ---- quantisation ----
def scale_of(g, shape=(), t=F32):
    return g.add(np.array(g.rng.choice([0.0625, 0.125, 0.25, 0.03125], tuple(shape)), dtype=t), const=not g.chance(0.1))


@op('QuantizeLinear')
def quantize(g, name):
    x = g.val((F32,), exact=True)
    t = g.pick([U8, I8])
    axis, shape = None, ()
    if x.rank and g.opset >= 13 and g.chance(0.4):
        a = g.int(0, x.rank - 1)
        axis, shape = g.pick([a, a - x.rank]), (x.shape[a],)
    z = g.new(t, shape, const=not g.chance(0.2)) if g.chance(0.7) else None
    g.node(name, [x, scale_of(g, shape), z], exact=True, axis=axis)


@op('DequantizeLinear')
def dequantize(g, name):
    x = g.val((U8, I8, I8, I32))
    axis, shape = None, ()
    if x.rank and g.opset >= 13 and g.chance(0.4):
        a = g.int(0, x.rank - 1)
        axis, shape = g.pick([a, a - x.rank]), (x.shape[a],)
    z = g.new(x.dtype, shape) if g.chance(0.7) and x.dtype != I32 else None
    g.node(name, [x, scale_of(g, shape), z], exact=True, axis=axis)


@op('DynamicQuantizeLinear')
def dynamic_quantize(g, name):
    x = g.val((F32,), exact=True, min_rank=1, empty=0)
    # Of nothing but zeros the definition divides by a scale of 0; ONNX Runtime says 1.
    if not x.data.any():
        raise Skip('zeros')
    g.node(name, [x], 3, exact=True)


def weights(g, t, shape, **kw):
    # Without VNNI ONNX Runtime adds pairs of int8 x uint8 in 16 bits that saturate,
    # which is not ONNX's sum: 63 * 255 * 2 still fits.
    return g.new(t, shape, -63, 63, **kw) if t == I8 else g.new(t, shape, **kw)


@op('MatMulInteger')
def matmul_integer(g, name):
    m, k, n = g.int(1, 5), g.int(1, 6), g.int(1, 5)
    batch = g.dims(g.int(0, 1), 1, 2)
    a = g.val((U8, I8) if g.chance(0.6) else (U8,), dims=batch + [m, k], min_rank=len(batch) + 2, max_rank=4)
    b = weights(g, g.pick([U8, I8]), [k, n])
    za = g.new(a.dtype, []) if g.chance(0.6) else None
    zb = g.new(b.dtype, g.pick([[], [n]])) if g.chance(0.6) else None
    g.node(name, [a, b, za, zb], exact=True)


@op('ConvInteger')
def conv_integer(g, name):
    x = g.new(U8, [1, g.int(1, 3), g.int(3, 6), g.int(3, 6)])
    kernel, attrs = window(g, x.shape[2:])
    w = g.new(U8, [g.int(1, 3), x.shape[1]] + kernel)
    zx = g.new(U8, []) if g.chance(0.6) else None
    zw = g.new(U8, []) if g.chance(0.6) else None
    g.node(name, [x, w, zx, zw], exact=True, **attrs)


# Where a quotient falls on a half, the last bit of a product of scales decides:
# powers of two have none.
def two(g, lo=-6, hi=-2):
    return g.add(np.array(2.0 ** g.int(lo, hi), F32), const=True)


@op('QLinearMatMul')
def qlinear_matmul(g, name):
    m, k, n = g.int(1, 5), g.int(1, 6), g.int(1, 5)
    a, b = g.new(g.pick([U8, I8]), [m, k]), weights(g, I8, [k, n])
    if g.chance(0.5):
        a, b = g.new(U8, [m, k]), g.new(U8, [k, n])
    z = [g.new(t, [], const=True) for t in (a.dtype, b.dtype, a.dtype)]
    g.node(name, [a, two(g), z[0], b, two(g), z[1], two(g), z[2]], exact=True)


@op('QLinearConv')
def qlinear_conv(g, name):
    x = g.new(U8, [1, g.int(1, 3), g.int(3, 6), g.int(3, 6)])
    kernel, attrs = window(g, x.shape[2:])
    w = weights(g, g.pick([U8, I8]), [g.int(1, 3), x.shape[1]] + kernel, const=True)
    z = [g.new(t, [], const=True) for t in (U8, w.dtype, U8)]
    bias = g.new(I32, [w.shape[0]], const=True) if g.chance(0.4) else None
    g.node(name, [x, two(g), z[0], w, two(g), z[1], two(g), z[2], bias], exact=True, **attrs)


# ---- losses ----
@op('NegativeLogLikelihoodLoss', 'SoftmaxCrossEntropyLoss')
def loss(g, name):
    n, c = g.int(1, 4), g.int(2, 5)
    rest = g.dims(g.int(0, 2), 1, 3)
    x = g.val((F32,), dims=[n, c] + rest, min_rank=2 + len(rest), max_rank=4, fresh=0.6)
    t = g.add(g.rng.integers(0, c, [n] + rest, dtype=I64))
    w = g.new(F32, [c], 0.25, 2) if g.chance(0.4) else None
    attrs = dict(reduction=g.pick([None, 'mean', 'sum', 'none']))
    if g.chance(0.3):
        attrs['ignore_index'] = int(g.pick([0, 1, -1]))
        if attrs['ignore_index'] == -1 and t.size:
            pass
        # All ignored: a mean over nothing.
        if t.size and (t.data == attrs['ignore_index']).all():
            raise Skip('all ignored')
    outs = g.pick([1, 2]) if name[0] == 'S' else 1
    g.node(name, [x, t, w], outs, terms=x.max_abs() * 4, base=1e-4, **attrs)


# ---- rotation ----
@op('RotaryEmbedding')
def rotary(g, name):
    b, s, h, d = g.int(1, 2), g.int(1, 4), g.int(1, 3), 2 * g.int(1, 3)
    cache = [6, d // 2]
    ins = [g.new(F32, [b, h, s, d]), g.new(F32, cache, -1, 1), g.new(F32, cache, -1, 1),
           g.add(g.rng.integers(0, 6, [b, s], dtype=I64))]
    attrs = dict(interleaved=g.pick([None, 0, 1]))
    if g.chance(0.4):
        ins[0] = g.new(F32, [b, s, h * d])
        attrs['num_heads'] = h
    g.node(name, ins, terms=4, **attrs)
