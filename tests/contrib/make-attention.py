#!/usr/bin/env python3
"""Writes attention.json: attention and what stands around it, by ONNX Runtime."""
import numpy as np

from cases import case, given, rand, uniform, write

# ---- Attention of the standard domain: what the node suite leaves out ----

STD = {'domain': '', 'opset': 24}
QKV = [rand(1, 2, 3, 4), rand(1, 2, 3, 4), rand(1, 2, 3, 4)]
case('std masked row', 'Attention', [*QKV, given([[1, 1, 1], [0, 0, 0], [1, 0, 0]], 'bool')], **STD)
case('std masked row, float', 'Attention',
     [*QKV, given([[0, 0.5, 0], ['-inf', '-inf', '-inf'], [0, '-inf', -1]], 'float32')], **STD)
case('std masked row, scores', 'Attention', [*QKV, given([[1, 1, 1], [0, 0, 0], [1, 0, 0]], 'bool')], n_out=4,
     wanted=[0, 3], attrs={'qk_matmul_output_mode': 3}, **STD)
case('std lengths', 'Attention', [*QKV, None, None, None, given([2], 'int64')], **STD)
case('std lengths, none', 'Attention', [*QKV, None, None, None, given([0], 'int64')], **STD)
case('std lengths, causal', 'Attention', [*QKV, None, None, None, given([2], 'int64')], attrs={'is_causal': 1}, **STD)
case('std lengths, decode', 'Attention',
     [rand(2, 4, 1, 4), rand(2, 2, 6, 4), rand(2, 2, 6, 4), None, None, None, given([3, 6], 'int64')],
     attrs={'is_causal': 1}, **STD)
case('std lengths, too long', 'Attention', [*QKV, None, None, None, given([4], 'int64')],
     fails='nonpad_kv_seqlen[0] is 4', **STD)
case('std causal, fewer keys', 'Attention', [rand(1, 1, 3, 4), rand(1, 1, 2, 4), rand(1, 1, 2, 4)],
     attrs={'is_causal': 1}, **STD)
case('std causal, past', 'Attention',
     [rand(2, 3, 8), rand(2, 3, 4), rand(2, 3, 4), None, rand(2, 1, 2, 4), rand(2, 1, 2, 4)], n_out=3,
     attrs={'is_causal': 1, 'q_num_heads': 2, 'kv_num_heads': 1}, domain='', opset=23)
case('std no heads', 'Attention', [rand(1, 3, 4)] * 3, refused='need the attributes q_num_heads', **STD)
case('std rotary positions', 'RotaryEmbedding',
     [rand(1, 2, 2, 4), rand(5, 2), rand(5, 2), given([[0, 5]], 'int64')], fails='position of token 1', **STD)

# ---- MultiHeadAttention ----

MHA = 'MultiHeadAttention'
N2 = {'num_heads': 2}


def mha(name, inputs, n_out=1, wanted=None, attrs=None, **more):
    case('mha ' + name, MHA, inputs, n_out=n_out, wanted=wanted, attrs={**N2, **(attrs or {})}, **more)


Q, K, V = rand(2, 3, 8), rand(2, 4, 8), rand(2, 4, 12)
mha('plain', [Q, K, V])
mha('scale', [Q, K, V], attrs={'scale': 0.25})
mha('bias', [Q, K, V, rand(28)])
mha('causal', [Q, K, V], attrs={'unidirectional': 1})
mha('causal, one query', [rand(2, 1, 8), K, V], attrs={'unidirectional': 1})
mha('causal, bias, present', [Q, rand(2, 3, 8), rand(2, 3, 8), rand(24)], n_out=3, attrs={'unidirectional': 1})
mha('heads first', [Q, rand(2, 2, 4, 4), rand(2, 2, 4, 4)])
mha('lengths', [Q, K, V, None, given([2, 4])])
mha('keys', [Q, K, V, None, given([[1, 1, 0, 1], [0, 1, 1, 1]])])
mha('keys, all masked', [Q, K, V, None, given([[0, 0, 0, 0], [0, 1, 1, 1]])])
mha('keys, filter', [Q, K, V, None, given([[1, 1, 0, 1], [0, 1, 1, 1]])], attrs={'mask_filter_value': -2.0})
mha('keys, causal', [Q, K, V, None, given([[0, 0, 1, 1], [0, 1, 1, 1]])], attrs={'unidirectional': 1})
mha('rows', [Q, K, V, None, given([[[1, 1, 0, 1], [0, 1, 1, 1], [1, 0, 0, 0]]] * 2)])
mha('rows, causal', [Q, K, V, None, given([[[1, 1, 0, 1], [0, 1, 1, 1], [1, 0, 0, 0]]] * 2)],
    attrs={'unidirectional': 1})
mha('attention bias', [Q, K, V, None, None, rand(2, 2, 3, 4)])
mha('attention bias, broadcast', [Q, K, V, None, given([[1, 1, 0, 1], [0, 1, 1, 1]]), rand(1, 1, 3, 4)])
mha('past', [Q, rand(2, 3, 8), rand(2, 3, 8), None, None, None, rand(2, 2, 5, 4), rand(2, 2, 5, 4)], n_out=3)
mha('past, all', [Q, rand(2, 3, 8), rand(2, 3, 8), rand(24), given([[1] * 7 + [0], [0, 0] + [1] * 6]),
                  rand(1, 2, 3, 8), rand(2, 2, 5, 4), rand(2, 2, 5, 4)], n_out=3, attrs={'unidirectional': 1})
mha('decode', [rand(2, 1, 8), rand(2, 1, 8), rand(2, 1, 8), None, None, None, rand(2, 2, 5, 4), rand(2, 2, 5, 4)],
    n_out=3)
mha('scores', [Q, K, V, None, given([[1, 1, 0, 1], [0, 1, 1, 1]])], n_out=4, wanted=[0, 3],
    like={'out_types': {3: 'float32'}})
X = uniform('mha packed', 'float32', [2, 3, 2, 3, 4], -1, 1)
mha('packed qkv', [given(X, 'float32')],
    like={'inputs': [given(X[:, :, :, i].reshape(2, 3, 8), 'float32') for i in range(3)]})
X = uniform('mha packed kv', 'float32', [2, 5, 2, 2, 4], -1, 1)
Y = given(uniform('mha packed q', 'float32', [2, 3, 8], -1, 1), 'float32')
mha('packed kv', [Y, given(X, 'float32')],
    like={'inputs': [Y, *(given(X[:, :, :, i].reshape(2, 5, 8), 'float32') for i in range(2))]})
mha('shared buffer', [Q, K, V] + [None] * 5 + [given([1])], refused='shared by past and present')
mha('beams', [Q, K, V] + [None] * 6 + [given([[[0] * 4]])], refused='cache_indirection')
mha('odd mask', [Q, K, V, None, given([[1, 1, 0], [0, 1, 1]])], refused='a mask of shape 2x3')

# ---- Attention of ONNX Runtime ----


def attention(name, inputs, n_out=1, wanted=None, attrs=None, **more):
    case('attention ' + name, 'Attention', inputs, n_out=n_out, wanted=wanted, attrs={**N2, **(attrs or {})}, **more)


X, W, B = rand(2, 3, 5), rand(5, 24), rand(24)
attention('plain', [X, W, B])
attention('no bias', [X, W])
attention('const', [X, {**W, 'const': True}, {**B, 'const': True}])
attention('causal', [X, W, B], attrs={'unidirectional': 1})
attention('sizes', [X, rand(5, 28), rand(28)], attrs={'qkv_hidden_sizes': [8, 8, 12]})
attention('lengths', [X, W, B, given([2, 3])])
attention('lengths, none', [X, W, B, given([0, 3])])
attention('end start', [X, W, B, given([3, 2, 1, 0])])
attention('end start, causal', [X, W, B, given([3, 2, 1, 0])], attrs={'unidirectional': 1})
attention('keys', [X, W, B, given([[1, 0, 1], [1, 1, 0]])])
attention('keys, causal', [X, W, B, given([[0, 1, 1], [1, 1, 0]])], attrs={'unidirectional': 1})
attention('keys, dummy', [X, W, B, given([[1], [0]])])
attention('rows', [X, W, B, given([[[1, 0, 1], [1, 1, 0], [0, 0, 1]]] * 2)])
SQUARE = uniform('square', 'int32', [2, 1, 7, 7], 0, 1)
attention('square', [X, W, B, given(SQUARE)], like={'inputs': [X, W, B, given(SQUARE[:, 0, :3, :3])]})
PAST = rand(2, 2, 2, 4, 4)
attention('square, past', [X, W, B, given(SQUARE), PAST], n_out=2,
          like={'inputs': [X, W, B, given(SQUARE[:, 0, 4:7, :7]), PAST]})
attention('past', [X, W, B, None, rand(2, 2, 2, 4, 4)], n_out=2)
attention('past, causal', [X, W, B, None, rand(2, 2, 2, 4, 4)], n_out=2, attrs={'unidirectional': 1})
attention('past, keys, causal', [X, W, B, given([[0, 0] + [1] * 5, [1] * 7]), rand(2, 2, 2, 4, 4)], n_out=2,
          attrs={'unidirectional': 1, 'mask_filter_value': -5.0})
attention('present', [X, W, B], n_out=2)
attention('attention bias', [X, W, B, None, None, rand(2, 2, 3, 3)])
attention('attention bias, keys, scale', [X, W, B, given([[1, 0, 1], [1, 1, 0]]), None, rand(2, 2, 3, 3)],
          attrs={'scale': 0.3})
attention('rotary', [X, W, B], attrs={'do_rotary': 1}, refused='do_rotary is not supported')
attention('shared buffer', [X, W, B, None, rand(2, 2, 2, 4, 4)], attrs={'past_present_share_buffer': 1},
          refused='shared by past and present')

# ---- RotaryEmbedding of ONNX Runtime ----


def rotary(name, inputs, attrs=None, **more):
    case('rotary ' + name, 'RotaryEmbedding', inputs, attrs=attrs or {}, **more)


IDS = given([[0, 2, 4], [1, 3, 0]], 'int64')
rotary('plain', [rand(2, 3, 8), IDS, rand(5, 2), rand(5, 2)])
rotary('interleaved', [rand(2, 3, 8), IDS, rand(5, 2), rand(5, 2)], attrs={'interleaved': 1})
rotary('offset', [rand(2, 3, 8), given([2], 'int64'), rand(5, 2), rand(5, 2)])
rotary('heads first', [rand(2, 2, 3, 4), IDS, rand(5, 2), rand(5, 2)])
rotary('partial', [rand(2, 3, 12), IDS, rand(5, 2), rand(5, 2)], attrs={'num_heads': 2, 'rotary_embedding_dim': 4})
rotary('partial, interleaved', [rand(2, 3, 12), IDS, rand(5, 2), rand(5, 2)],
       attrs={'num_heads': 2, 'rotary_embedding_dim': 4, 'interleaved': 1})
rotary('beyond', [rand(2, 3, 8), given([3], 'int64'), rand(5, 2), rand(5, 2)],
       fails='the position of token 2 of sequence 0 is 5')
rotary('packed', [rand(2, 3, 8), IDS, rand(5, 2), rand(5, 2)], attrs={'is_packed_batching': 1},
       refused='packed batches')

write('attention.json')
