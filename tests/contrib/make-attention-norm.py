#!/usr/bin/env python3
"""Writes attention-norm.json: what normalises between attention, by ONNX Runtime."""
from cases import case, given, rand, write

SKIP, SIMPLE, EMBED = 'SkipLayerNormalization', 'SkipSimplifiedLayerNormalization', 'EmbedLayerNormalization'
EPS = {'epsilon': 1e-5}
X, SAME, ROW = rand(2, 3, 8), rand(2, 3, 8), rand(8)

case('skip plain', SKIP, [X, SAME, ROW], attrs=EPS)
case('skip beta', SKIP, [X, SAME, ROW, ROW], attrs=EPS)
case('skip all', SKIP, [X, SAME, ROW, ROW, ROW], n_out=4, wanted=[0, 3], attrs=EPS)
case('skip default epsilon', SKIP, [rand(2, 2, 8, lo=-1e-6, hi=1e-6), rand(2, 2, 8, lo=-1e-6, hi=1e-6), ROW])
case('skip 2d', SKIP, [rand(3, 8), rand(3, 8), ROW, ROW], attrs=EPS)
case('skip broadcast', SKIP, [X, rand(3, 8), ROW, ROW], n_out=4, wanted=[0, 3], attrs=EPS)
case('skip broadcast, 1', SKIP, [X, rand(1, 3, 8), ROW, ROW, ROW], attrs=EPS)
case('skip mean', SKIP, [X, SAME, ROW], refused='mean and inv_std_var', outputs=[{}, {}])
case('skip odd', SKIP, [X, rand(2, 1, 8), ROW], refused='skip of shape 2x1x8')
case('skip simplified', SIMPLE, [X, SAME, ROW], attrs=EPS)
case('skip simplified, all', SIMPLE, [X, SAME, ROW, ROW], n_out=4, wanted=[0, 3], attrs=EPS)

STD = {'domain': '', 'opset': 17}
case('simplified', 'SimplifiedLayerNormalization', [X, ROW], n_out=2, attrs=EPS, **STD)
case('simplified, axis', 'SimplifiedLayerNormalization', [X, rand(3, 8)], n_out=2, attrs={**EPS, 'axis': 1}, **STD)
case('simplified, stash', 'SimplifiedLayerNormalization', [X, rand(3)], refused='has shape 3, not 8', **STD)
case('layer norm of opset 11', 'LayerNormalization', [X, ROW, ROW], n_out=3, attrs=EPS, domain='', opset=11)

IDS, SEGMENTS = given([[0, 4, 2], [1, 1, 3]]), given([[0, 0, 1], [1, 0, 1]])
TABLES = [rand(5, 8), rand(4, 8), rand(2, 8), rand(8), rand(8)]
NO_SEGMENT = [rand(5, 8), rand(4, 8), None, rand(8), rand(8)]
case('embed', EMBED, [IDS, SEGMENTS, *TABLES, given([[1, 1, 0], [1, 0, 0]])], n_out=2, attrs=EPS)
case('embed, mask with gaps', EMBED, [IDS, SEGMENTS, *TABLES, given([[0, 1, 1], [1, 0, 2]])], n_out=2, attrs=EPS)
case('embed, no mask', EMBED, [IDS, SEGMENTS, *TABLES], n_out=2, attrs=EPS)
case('embed, no segments', EMBED, [IDS, None, *NO_SEGMENT], n_out=2, attrs=EPS)
case('embed, sum', EMBED, [IDS, SEGMENTS, *TABLES], n_out=3, attrs=EPS)
case('embed, positions', EMBED, [IDS, SEGMENTS, *TABLES, None, given([[3, 0, 1]])], n_out=2, attrs=EPS)
case('embed, positions each', EMBED, [IDS, SEGMENTS, *TABLES, None, given([[3, 0, 1], [0, 1, 1]])], n_out=2, attrs=EPS)
case('embed, no such word', EMBED, [given([[0, 5, 2]]), None, *NO_SEGMENT], n_out=2,
     fails='word 5 is outside of an embedding of 5 rows')
case('embed, no gamma', EMBED, [IDS, None, *NO_SEGMENT[:3]], refused='input 5 is missing')
case('embed, no such position', EMBED, [IDS, None, *NO_SEGMENT, None, given([[3, 0, -1]])], n_out=2,
     fails='position -1')

# LinearAttention and CausalConvWithState, which ONNX Runtime had before ONNX did

GATED = [rand(2, 3, 8), rand(2, 3, 4), rand(2, 3, 6), rand(2, 1, 4, 6), rand(2, 3, 1), rand(2, 3, 1, lo=0.0)]
case('linear attention', 'LinearAttention', GATED, n_out=2, attrs={'q_num_heads': 2, 'kv_num_heads': 1})
case('linear attention, window', 'LinearAttention', GATED, refused='state_window',
     attrs={'q_num_heads': 2, 'kv_num_heads': 1, 'state_window': 2})
case('causal conv', 'CausalConvWithState', [rand(2, 3, 4), rand(3, 1, 3), rand(3), rand(2, 3, 2)], n_out=2,
     attrs={'activation': 'silu'})
case('causal conv, dilated', 'CausalConvWithState', [rand(2, 3, 4), rand(3, 1, 3)], refused='dilation',
     attrs={'dilation': 2})

write('attention-norm.json')
