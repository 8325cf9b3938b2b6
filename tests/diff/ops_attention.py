"""Attention of com.microsoft with its caches, masks and biases, and what
transformers have around it. See ops_math.py."""
import numpy as np
from onnx import helper

from graph import BOOL, F16, F32, I32, I64, I8, U8, Skip
from ops_math import op
from ops_more import MS, ms

CLOSE = {F32: 1e-4, F16: 1e-2}


def keys_of(g, batch, longest, shortest=1):
    """How many keys each sequence has: one of them all."""
    keys = [g.int(min(shortest, longest), longest) for _ in range(batch)]
    keys[g.int(0, batch - 1)] = longest
    return keys


@ms('GroupQueryAttention')
def gqa(g, name):
    batch, kv = g.int(1, 3), g.int(1, 2)  # of an empty batch ONNX Runtime divides by zero
    heads = kv * g.int(1, 3)
    rotary = g.chance(0.5)
    size = 16 * g.int(1, 2) if rotary else 8 * g.int(1, 2)  # ONNX Runtime asks for such heads
    t = F16 if g.chance(0.15) else F32
    attrs = dict(num_heads=heads, kv_num_heads=kv, scale=g.pick([None, None, 0.5]), softcap=g.pick([None, None, None, 2.0]))
    kind = g.pick(['prompt', 'prompt', 'decode', 'chunk'])
    seq, past, room = g.int(1, 5), 0, None
    if kind == 'prompt':
        keys = keys_of(g, batch, seq)
        room = seq + g.int(0, 3) if g.chance(0.3) else None
    else:
        past = g.int(1, 5)
        if kind == 'decode':
            seq = 1
        else:
            batch = 1
        keys = keys_of(g, batch, past + seq, seq)
        room = g.pick([past, past + seq + g.int(0, 2)])
    total = max(keys)
    fresh = [min(k, seq) for k in keys]
    valid = None
    if room is not None and g.chance(0.3):
        # Chunks that are padded, as query_seqlens says.
        batch, seq = g.int(1, 3), g.int(1, 4)
        fresh = [g.int(0, seq) for _ in range(batch)]
        keys = [f + g.int(0 if f else 1, room) for f in fresh]
        total, valid = max(max(keys), seq) + g.int(0, 1), g.add(np.array(fresh, I32))
        room = max([total] + [k - f + seq for k, f in zip(keys, fresh)])
    width = (heads + 2 * kv) * size
    if g.chance(0.3):
        ins = [g.new(t, [batch, seq, width], -2, 2), None, None]
    else:
        ins = [g.new(t, [batch, seq, heads * size], -2, 2)] + [g.new(t, [batch, seq, kv * size], -2, 2) for _ in range(2)]
    ins += [None, None] if room is None else [g.new(t, [batch, kv, room, size], -2, 2) for _ in range(2)]
    ins += [g.add(np.array([k - 1 for k in keys], I32)), g.add(np.array(total, I32))]
    more = [None, None, None, None, None]  # cos, sin, positions, bias, sink
    if rotary:
        half = size // 2 if g.chance(0.6) else 8
        angles = g.rng.uniform(0, 3, [12, half])
        more[:2] = [g.add(np.cos(angles).astype(t)), g.add(np.sin(angles).astype(t))]
        attrs.update(do_rotary=1, rotary_interleaved=g.pick([None, 0, 1]))
        if g.chance(0.3):
            more[2] = g.add(g.rng.integers(0, 12 - seq, [batch, seq], dtype=I64))
    if g.chance(0.3):
        more[3] = g.new(t, [g.pick([1, batch]), g.pick([1, heads]), seq, total], -2, 2)
    if g.chance(0.2):
        more[4] = g.new(t, [heads], -2, 2)
    elif g.chance(0.2):
        attrs['smooth_softmax'] = 1
    if g.chance(0.3):
        attrs['local_window_size'] = g.int(1, 6)
    elif g.chance(0.15) and valid is None:
        attrs['causal'] = 0
    # Without these outputs ONNX Runtime does not look at the cache that comes in.
    present = room is not None or g.chance(0.8)
    n = g.count
    g.count += 7
    names = [f'v{n}'] + ([f'v{n + 1}', f'v{n + 2}'] if present else [])
    if present and valid is None and all(f == seq for f in fresh) and g.chance(0.2):
        attrs['qk_output'] = g.int(1, 2)
        names.append(f'v{n + 6}')
    args = ins + more + ([None] * 4 + [valid] if valid is not None else [])
    node = helper.make_node('GroupQueryAttention', [v.name if v else '' for v in args], names, name=f'n{len(g.nodes)}', domain=MS,
                            **{k: v for k, v in attrs.items() if v is not None})
    key = ('GroupQueryAttention', MS, 1, tuple(str(v.dtype) if v else '' for v in args))
    nodes, used = [node], [v for v in args if v is not None]
    # What comes of padding is not specified: zeros in its place.
    if any(f < seq for f in fresh):
        if g.opset < 9:
            raise Skip('Where')
        names[0] = f'v{n + 3}'
        kept = np.arange(seq)[None, :, None] < np.array(fresh)[:, None, None]
        mask, zero = g.add(kept, const=True), g.add(np.zeros((), t), const=True)
        nodes.append(helper.make_node('Where', [mask.name, f'v{n}', zero.name], [names[0]]))
        used += [mask, zero]
        if present and valid is not None:
            rows = g.add(np.arange(max(room, total))[None, None, :, None] < np.array(keys)[:, None, None, None], const=True)
            used.append(rows)
            for i in (1, 2):
                nodes.append(helper.make_node('Where', [rows.name, f'v{n + i}', zero.name], [f'v{n + 3 + i}']))
                names[i] = f'v{n + 3 + i}'
    g.several(nodes, used, names, key=key, terms=4, base=CLOSE)


def mask_of(g, batch, seq, total, kinds):
    """A mask, of int32; no row is left with nothing to see."""
    kind = g.pick(kinds)
    if kind == 'lengths':
        return g.add(np.array([g.int(1, total) for _ in range(batch)], I32))
    if kind == 'ends':
        ends = [g.int(1, total) for _ in range(batch)]
        return g.add(np.array(ends + [g.int(0, e - 1) for e in ends], I32))
    if kind == 'keys':
        m = g.rng.integers(0, 2, [batch, total], dtype=I32)
        m[:, 0] = 1
        return g.add(m)
    m = g.rng.integers(0, 2, [batch, seq, total], dtype=I32)
    m[:, :, 0] = 1
    return g.add(m)


@ms('Attention')
def ms_attention(g, name):
    batch, seq, h, d, e = g.rows(1, 2), g.int(1, 4), g.int(1, 2), g.pick([2, 4]), g.int(2, 5)
    past = g.int(1, 3) if g.chance(0.3) else 0
    total = past + seq
    attrs = dict(num_heads=h, unidirectional=g.pick([None, 0, 1]), scale=g.pick([None, None, 0.5]),
                 mask_filter_value=g.pick([None, None, -5.0]))
    width = 3 * h * d
    if not past and g.chance(0.3):
        v = h * g.int(1, 3)
        attrs['qkv_hidden_sizes'] = [h * d, h * d, v]
        width = 2 * h * d + v
    ins = [g.new(F32, [batch, seq, e], -1, 1), g.new(F32, [e, width], -1, 1), g.new(F32, [width], -1, 1) if g.chance(0.8) else None]
    ins.append(mask_of(g, batch, seq, total, ['lengths', 'ends', 'keys', 'rows'] if not past else ['keys', 'rows']) if g.chance(0.5) else None)
    ins.append(g.new(F32, [2, batch, h, past, d], -1, 1) if past else None)
    ins.append(g.new(F32, [batch, h, seq, total], -1, 1) if not past and g.chance(0.25) else None)
    outs = 2 if past or (not attrs.get('qkv_hidden_sizes') and g.chance(0.2)) else 1
    g.node('Attention', ins, outs, domain=MS, terms=4, base=1e-4, **attrs)


@ms('MultiHeadAttention')
def ms_mha(g, name):
    batch, s, t, h, d = g.rows(1, 2), g.rows(1, 3), g.int(1, 4), g.int(1, 2), g.pick([2, 4])
    past = g.int(1, 3) if g.chance(0.3) else 0
    if past:
        t = s
    total = past + t
    attrs = dict(num_heads=h, scale=g.pick([None, None, 0.5]), mask_filter_value=g.pick([None, None, -5.0]),
                 unidirectional=g.pick([None, None, 0, 1]))
    v = d if past or g.chance(0.6) else g.int(1, 3)
    q = g.new(F32, [batch, s, h * d], -2, 2)
    bias = None
    if not past and g.chance(0.2) and v == d:  # heads first, as a cross attention's cache is
        ins = [q, g.new(F32, [batch, h, t, d], -2, 2), g.new(F32, [batch, h, t, d])]
    else:
        ins = [q, g.new(F32, [batch, t, h * d], -2, 2), g.new(F32, [batch, t, h * v])]
        bias = g.new(F32, [2 * h * d + h * v], -1, 1) if g.chance(0.4) else None
    ins.append(bias)
    ins.append(mask_of(g, batch, s, total, ['lengths', 'keys', 'rows'] if not past else ['keys', 'rows']) if g.chance(0.4) else None)
    ins.append(g.new(F32, [g.pick([1, batch]), g.pick([1, h]), s, total], -1, 1) if g.chance(0.25) else None)
    ins += [g.new(F32, [batch, h, past, d], -1, 1) for _ in range(2)] if past else []
    outs = 3 if past or (bias is not None and t == s and g.chance(0.3)) else 1
    g.node('MultiHeadAttention', ins, outs, domain=MS, terms=4, base=1e-4, **attrs)


@ms('QAttention')
def qattention(g, name):
    batch, seq, h, d, e = g.int(1, 2), g.int(1, 4), g.int(1, 2), g.pick([2, 4]), g.int(1, 6)
    past = g.int(1, 3) if g.chance(0.3) else 0
    width = 3 * h * d
    # See ops_nn.weights: pairs of int8 x uint8 saturate.
    w = g.new(I8, [e, width], -63, 63, const=g.chance(0.7)) if g.chance(0.5) else g.new(U8, [e, width], const=g.chance(0.7))
    columns = g.chance(0.3)
    scale = g.new(F32, [width] if columns else [], 0.0078125, 0.03125, const=True)
    ins = [g.new(U8, [batch, seq, e], 0, 255), w, g.new(F32, [width], -1, 1), g.new(F32, [], 0.0078125, 0.03125, const=True), scale]
    ins.append(mask_of(g, batch, seq, past + seq, ['lengths', 'ends', 'keys', 'rows'] if not past else ['keys', 'rows'])
               if g.chance(0.5) else None)
    ins.append(g.new(U8, [], 0, 255, const=True) if g.chance(0.7) else None)
    ins.append(g.new(w.dtype, [width] if columns else [], 0 if w.dtype == U8 else -9, 9, const=True) if g.chance(0.7) else None)
    ins.append(g.new(F32, [2, batch, h, past, d], -1, 1) if past else None)
    g.node('QAttention', ins, 2 if past or g.chance(0.2) else 1, domain=MS, terms=4, base=1e-4, num_heads=h,
           unidirectional=g.pick([None, 0, 1]), mask_filter_value=g.pick([None, None, -5.0]), scale=g.pick([None, None, 0.5]))


@op('Attention')
def attention(g, name):
    b, kv, s, t, d, e = g.int(1, 2), g.int(1, 2), g.int(1, 3), g.int(1, 4), g.int(1, 4), g.int(1, 4)
    h, attrs = kv * g.int(1, 2), {}
    past, causal = g.int(1, 3) if g.chance(0.3) else 0, g.pick([None, 0, 1])
    if past and causal:
        # With as many new keys as queries. Otherwise the definition (and ONNX's reference)
        # begins the diagonal behind the past ones, ONNX Runtime ends it at the last.
        t = s
    if g.chance(0.5):
        q, k, v = g.new(F32, [b, h, s, d], -2, 2), g.new(F32, [b, kv, t, d], -2, 2), g.new(F32, [b, kv, t, e])
    else:
        q, k, v = g.new(F32, [b, s, h * d], -2, 2), g.new(F32, [b, t, kv * d], -2, 2), g.new(F32, [b, t, kv * e])
        attrs = dict(q_num_heads=h, kv_num_heads=kv)
    total = past + t
    mask = None
    if g.chance(0.4):
        shape = g.pick([[s, total], [b, 1, s, total], [1, h, s, total]])
        if g.chance(0.5):
            mask = g.new(F32, shape)
        else:
            m = g.random(BOOL, shape)
            m[..., 0] = True  # no row without anything to see
            mask = g.add(m)
    ins = [q, k, v, mask] + ([g.new(F32, [b, kv, past, n]) for n in (d, e)] if past else [])
    attrs.update(is_causal=causal, scale=g.pick([None, 0.5]), softcap=g.pick([None, None, 2.0]))
    outs = 3 if past else 1
    if g.chance(0.2):
        outs, attrs['qk_matmul_output_mode'] = 4, g.pick([None, 0, 3])
    g.node(name, ins, outs, base=1e-4, terms=4, wanted=[True] + [bool(past)] * 2 + [True] if outs == 4 else None, **attrs)


# ---- states ----
@op('LinearAttention', f'{MS}:LinearAttention')
def linear_attention(g, name):
    b, t, kv, d = g.rows(1, 2), g.rows(1, 4), g.int(1, 2), g.int(1, 4)
    h, e = kv * g.int(1, 2), g.int(1, 4)
    rule = g.pick(['linear', 'gated', 'delta', 'gated_delta', None])
    ins = [g.new(F32, [b, t, h * d], -1, 1), g.new(F32, [b, t, kv * d], -1, 1), g.new(F32, [b, t, kv * e], -1, 1)]
    ins.append(g.new(F32, [b, kv, d, e], -1, 1) if g.chance(0.5) else None)
    ins.append(g.new(F32, [b, t, g.pick([kv, kv * d])], -2, 0) if rule in ('gated', 'gated_delta', None) else None)
    ins.append(g.new(F32, [b, t, g.pick([1, kv])], 0, 1) if rule in ('delta', 'gated_delta', None) else None)
    g.node('LinearAttention', ins, 2, domain=MS if ':' in name else '', terms=4, base=1e-4, q_num_heads=h, kv_num_heads=kv,
           update_rule=rule, scale=g.pick([None, 0.5]))


@op('CausalConvWithState', f'{MS}:CausalConvWithState')
def causal_conv(g, name):
    b, c, s, k = g.rows(1, 2), g.int(1, 4), g.rows(1, 5), g.int(1, 4)
    ins = [g.new(F32, [b, c, s]), g.new(F32, [c, 1, k]), g.new(F32, [c]) if g.chance(0.5) else None,
           g.new(F32, [b, c, k - 1]) if k > 1 and g.chance(0.5) else None]
    g.node('CausalConvWithState', ins, 2, domain=MS if ':' in name else '', terms=16, base=1e-4,
           activation=g.pick([None, 'none', 'silu']), wanted=[True, k > 1])


# ---- normalisation ----
@ms('SkipLayerNormalization', 'SkipSimplifiedLayerNormalization')
def ms_skip_norm(g, name):
    name = name.split(':')[1]
    b, s, d = g.rows(1, 2), g.rows(1, 3), g.int(4, 8)
    shape = [b, s, d] if g.chance(0.8) else [s, d]
    x, skip = g.new(F32, shape), g.new(F32, g.pick([shape, [s, d], [1, s, d]]) if len(shape) == 3 else shape)
    ins = [x, skip, g.new(F32, [d], -2, 2)]
    if 'Simplified' not in name:
        ins.append(g.new(F32, [d]) if g.chance(0.6) else None)
    bias = g.new(F32, [d]) if g.chance(0.3) else None
    flat = x.data + skip.data + (bias.data if bias else 0)
    if flat.size and flat.std(-1).min() < 0.3:
        raise Skip('flat')
    more = g.chance(0.4)
    g.node(name, ins + [bias], 4 if more else 1, domain=MS, terms=4, base=1e-4, epsilon=g.pick([None, 1e-3]),
           wanted=[True, False, False, True] if more else None)


@op('SimplifiedLayerNormalization')
def simplified_norm(g, name):
    # ONNX Runtime's own, in the standard domain.
    x = g.val((F32,), min_rank=1, max_rank=4, empty=0, test=lambda v: v.size and v.data.std() > 0.2)
    axis = g.int(0, x.rank - 1)
    if (np.abs(x.data.reshape(int(np.prod(x.shape[:axis])), -1)).max(-1) < 0.1).any():
        raise Skip('flat')
    s = g.new(F32, list(x.shape[axis:]), -2, 2)
    g.node(name, [x, s], g.pick([1, 2]), terms=4, base=1e-4, axis=axis - x.rank if g.chance(0.4) else axis,
           epsilon=g.pick([None, 1e-3]))


@ms('EmbedLayerNormalization')
def embed(g, name):
    b, s, d, words, places = g.rows(1, 2), g.rows(1, 4), g.int(4, 8), g.int(2, 6), g.int(4, 6)
    segments = g.chance(0.6)
    ids = g.add(g.rng.integers(0, words, [b, s], dtype=I32))
    # Constants, for ONNX Runtime asks for their dimensions.
    ins = [ids, g.add(g.rng.integers(0, 2, [b, s], dtype=I32)) if segments else None, g.new(F32, [words, d], const=True),
           g.new(F32, [places, d], const=True), g.new(F32, [2, d], const=True) if segments else None,
           g.new(F32, [d], -2, 2, const=True), g.new(F32, [d], const=True)]
    ins.append(g.add(g.rng.integers(0, 2, [b, s], dtype=I32)) if g.chance(0.5) else None)
    ins.append(g.add(g.rng.integers(0, places, [g.pick([1, b]), s], dtype=I32)) if g.chance(0.3) else None)
    outs = g.pick([2, 3])
    g.node('EmbedLayerNormalization', ins, outs, domain=MS, terms=4, base=2e-4, epsilon=g.pick([None, 1e-3]))
