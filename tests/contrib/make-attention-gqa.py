#!/usr/bin/env python3
"""Writes attention-gqa.json: GroupQueryAttention, by ONNX Runtime."""
import numpy as np

from cases import case, given, rand, write

ANGLES = [rand(10, 8), rand(10, 8)]


def gqa(name, seq, keys, total, past=0, heads=2, kv_heads=1, batch=2, packed=False, angles=None, ids=None, more=(),
        size=None, n_out=3, wanted=None, attrs=None, **case_more):
    """keys: how many each sequence has after the step; past: rows of the cache."""
    size = size or (16 if angles else 8)  # as ONNX Runtime asks for
    if packed:
        ins = [rand(batch, seq, (heads + 2 * kv_heads) * size), None, None]
    else:
        ins = [rand(batch, seq, heads * size), rand(batch, seq, kv_heads * size), rand(batch, seq, kv_heads * size)]
    ins += [rand(batch, kv_heads, past, size), rand(batch, kv_heads, past, size)] if past else [None, None]
    ins += [given([k - 1 for k in keys]), given(total)]
    ins += angles or [None, None]
    ins += [ids, *more]
    while ins[-1] is None:
        ins.pop()
    case('gqa ' + name, 'GroupQueryAttention', ins, n_out=n_out, wanted=wanted,
         attrs={'num_heads': heads, 'kv_num_heads': kv_heads, **(attrs or {})}, **case_more)


ROTARY = {'do_rotary': 1}
gqa('prompt', 3, [3, 3], 3, heads=6, kv_heads=2)
gqa('prompt, one head of keys', 3, [3, 3], 3, heads=3)
gqa('prompt, as many heads', 3, [3, 3], 3, kv_heads=2)
gqa('prompt, padded', 4, [4, 2], 4)
gqa('prompt, padded, rotary', 4, [4, 2], 4, angles=ANGLES, attrs=ROTARY)
gqa('prompt, padded, into a cache', 4, [4, 2], 4, past=6)
gqa('prompt into a cache', 3, [3, 3], 3, past=6)
gqa('decode', 1, [4, 4], 4, past=3)
gqa('decode, ragged', 1, [4, 2], 4, past=3)
gqa('decode, shared cache', 1, [5, 3], 5, past=8)
gqa('chunk', 3, [5], 5, past=2, batch=1)
gqa('packed', 3, [3, 3], 3, packed=True)
gqa('packed, decode, rotary', 1, [4, 3], 4, past=3, packed=True, angles=ANGLES, attrs=ROTARY)
gqa('rotary', 3, [3, 3], 3, angles=ANGLES, attrs=ROTARY)
gqa('rotary, interleaved', 3, [3, 3], 3, angles=ANGLES, attrs={**ROTARY, 'rotary_interleaved': 1}, n_out=3, wanted=[0])
gqa('rotary, decode', 1, [4, 2], 4, past=6, angles=ANGLES, attrs=ROTARY)
gqa('rotary, chunk', 2, [5], 5, past=3, batch=1, angles=ANGLES, attrs=ROTARY)
gqa('rotary, partial', 3, [3, 3], 3, size=32, heads=2, kv_heads=1, angles=ANGLES, attrs=ROTARY, n_out=3, wanted=[0])
gqa('rotary, positions', 1, [4, 4], 4, past=3, angles=ANGLES, ids=given([[7], [2]], 'int64'), attrs=ROTARY)
gqa('rotary, positions of a prompt', 3, [3, 2], 3, angles=ANGLES, ids=given([[4, 0, 9], [1, 7, 2]], 'int64'), attrs=ROTARY)
gqa('rotary, positions of a prompt, beyond', 3, [3, 3], 3, angles=ANGLES, ids=given([[8, 0, 0], [0, 0, 0]], 'int64'),
    attrs=ROTARY, fails='the caches have 10 rows')
gqa('rotary, beyond', 1, [12, 12], 12, past=11, angles=ANGLES, attrs=ROTARY, fails='the caches have 10 rows')
gqa('window', 6, [6, 6], 6, attrs={'local_window_size': 2}, n_out=3, wanted=[0])
gqa('window, decode', 1, [6, 3], 6, past=5, attrs={'local_window_size': 3})
gqa('softcap', 3, [3, 3], 3, attrs={'softcap': 0.3}, n_out=3, wanted=[0])
gqa('scale', 3, [3, 3], 3, attrs={'scale': 1.5}, n_out=3, wanted=[0])
gqa('smooth', 3, [3, 3], 3, attrs={'smooth_softmax': 1}, n_out=3, wanted=[0])
gqa('bias', 3, [3, 3], 3, more=[rand(2, 2, 3, 3)], n_out=3, wanted=[0])
gqa('bias, broadcast, softcap', 3, [3, 3], 3, more=[rand(1, 1, 3, 3)], attrs={'softcap': 0.3}, n_out=3, wanted=[0])
gqa('bias, decode', 1, [4, 2], 4, past=3, more=[rand(2, 1, 1, 4)])
gqa('sink', 3, [3, 3], 3, more=[None, rand(2)], n_out=3, wanted=[0])
gqa('sink, window', 3, [3, 3], 3, more=[None, rand(2)], attrs={'local_window_size': 2}, n_out=3, wanted=[0])
gqa('scores', 3, [3, 3], 3, n_out=4, attrs={'qk_output': 1, 'softcap': 0.3})
gqa('probabilities', 3, [3, 3], 3, n_out=4, attrs={'qk_output': 2})
gqa('both ways', 3, [3, 3], 3, attrs={'causal': 0}, n_out=3, wanted=[0])
# Query rows and cache rows beyond the valid ones are not specified.
gqa('chunk, padded', 3, [5, 3], 5, past=8, more=[None] * 6 + [given([2, 3])],
    open_values={0: [np.s_[0, 2:]], 1: [np.s_[0, :, 5:], np.s_[1, :, 3:]], 2: [np.s_[0, :, 5:], np.s_[1, :, 3:]]})
gqa('chunk, padded, rotary', 3, [5, 3], 5, past=8, angles=ANGLES, more=[None] * 6 + [given([2, 1])], attrs=ROTARY,
    open_values={0: [np.s_[0, 2:], np.s_[1, 1:]], 1: [np.s_[0, :, 5:], np.s_[1, :, 3:]],
                 2: [np.s_[0, :, 5:], np.s_[1, :, 3:]]})
gqa('too many keys', 1, [5, 4], 4, past=3, fails='seqlens_k[0] is 4')
gqa('no such past', 1, [4, 4], 4, refused='the cache has 0 rows')
gqa('quantised', 3, [3, 3], 3, more=[None, None, rand(1), rand(1)], refused='a quantised cache')
gqa('window cache', 3, [3, 3], 3, attrs={'sliding_window_cache': 1}, refused='sliding_window_cache')
gqa('normalised', 3, [3, 3], 3, more=[None] * 4 + [rand(8), rand(8)], refused='normalising queries and keys')
case('gqa no lengths', 'GroupQueryAttention', [rand(1, 2, 16)], attrs={'num_heads': 2, 'kv_num_heads': 1},
     refused='seqlens_k and total_sequence_length')

write('attention-gqa.json')
