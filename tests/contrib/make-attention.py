#!/usr/bin/env python3
"""Writes attention.json: attention and its neighbours, by ONNX Runtime."""
from cases import case, given, rand, write

case('layernorm', 'LayerNormalization', [rand(2, 3, 8), rand(8), rand(8)], domain='', attrs={'epsilon': 1e-5})

write('attention.json')
