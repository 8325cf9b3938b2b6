"""Control flow, sequences, optionals; quantised operators of com.microsoft; ai.onnx.ml.
See ops_math.py."""
import numpy as np
from onnx import TensorProto, helper

from graph import BOOL, F32, F64, FLOATS, I32, I64, I8, U8, Skip, tensor_type
from ops_math import op
from ops_more import MS, ms, quantized
from ops_nn import two, window

ML = 'ai.onnx.ml'


def info(name, v=None, t=None, shape=None):
    return helper.make_tensor_value_info(name, t or tensor_type(v), shape)


@op('If')
def if_(g, name):
    x, y = g.val((F32, I64), empty=0), None
    y = g.like(x)
    c = g.new(BOOL, []) if g.chance(0.7) else g.val((BOOL,), rank=0)
    n = g.count
    branches = []
    for k, (o, a) in enumerate((('Add', y), ('Mul', x))):
        # Branches read the values around them, and their names may hide others.
        inner = f't{n}_{k}'
        nodes = [helper.make_node(o, [x.name, a.name], [inner]), helper.make_node('Identity', [inner], [f'b{n}_{k}'])]
        branches.append(helper.make_graph(nodes, f'branch{k}', [], [info(f'b{n}_{k}', x)]))
    node = helper.make_node('If', [c.name], [f'r{n}'], then_branch=branches[0], else_branch=branches[1])
    exact = x.dtype not in FLOATS
    g.several([node], [c, x, y], [f'r{n}'], exact=exact or (x.exact and y.exact))


@op('Loop')
def loop(g, name):
    x = g.new(g.pick([F32, I64]), g.dims(g.int(0, 2), 1, 3), -2, 2)
    add = g.like(x, lo=-2, hi=2)
    n, trips = g.count, g.int(0, 4)
    m = g.add(np.array(trips, I64), const=g.chance(0.5))
    cond = g.add(np.array(g.chance(0.9)), const=g.chance(0.5)) if g.chance(0.6) else None
    ends = g.chance(0.3)
    body = [helper.make_node('Add', [f'st{n}', add.name], [f'so{n}'])]
    if ends:  # stops before the count is reached
        body += [helper.make_node('Constant', [], [f'two{n}'], value=helper.make_tensor('t', TensorProto.INT64, [], [2])),
                 helper.make_node('Less', [f'i{n}', f'two{n}'], [f'co{n}'])]
    else:
        body.append(helper.make_node('Identity', [f'ci{n}'], [f'co{n}']))
    scan = g.chance(0.6)
    outs = [info(f'co{n}', t=TensorProto.BOOL, shape=[]), info(f'so{n}', x)]
    if scan:
        body.append(helper.make_node('Mul', [f'so{n}', f'so{n}'], [f'sc{n}']))
        outs.append(info(f'sc{n}', x))
    graph = helper.make_graph(body, 'body', [info(f'i{n}', t=TensorProto.INT64, shape=[]),
                                             info(f'ci{n}', t=TensorProto.BOOL, shape=[]), info(f'st{n}', x)], outs)
    names = [f'r{n}'] + ([f'r{n}_2'] if scan else [])
    node = helper.make_node('Loop', [m.name, cond.name if cond else '', x.name], names, body=graph)
    g.several([node], [m] + ([cond] if cond else []) + [x, add], names, exact=add.exact or x.dtype not in FLOATS)


@op('Scan')
def scan(g, name):
    if g.opset < 9:
        raise Skip('version')
    steps, d = g.int(1, 4), g.dims(g.int(0, 2), 1, 3)
    t = g.pick([F32, I64])
    xs = g.val((t,), dims=[steps] + d, min_rank=1 + len(d), max_rank=1 + len(d), lo=-4, hi=4)
    s = g.new(t, d, -2, 2)
    n = g.count
    body = [helper.make_node('Add', [f's{n}', f'x{n}'], [f'so{n}']), helper.make_node('Sub', [f'so{n}', f'x{n}'], [f'y{n}'])]
    graph = helper.make_graph(body, 'body', [info(f's{n}', s), info(f'x{n}', s)], [info(f'so{n}', s), info(f'y{n}', s)])
    attrs = {}
    if g.chance(0.4):
        attrs['scan_input_directions'] = [g.int(0, 1)]
    if g.chance(0.3):
        attrs['scan_output_directions'] = [g.int(0, 1)]
    node = helper.make_node('Scan', [s.name, xs.name], [f'r{n}', f'r{n}_2'], num_scan_inputs=1, body=graph, **attrs)
    g.several([node], [s, xs], [f'r{n}', f'r{n}_2'], exact=xs.exact or t == I64, terms=8)


# ---- sequences ----
@op('SequenceConstruct', 'SequenceAt', 'SequenceInsert', 'SequenceErase', 'SequenceLength', 'ConcatFromSequence',
    'SequenceEmpty', 'SplitToSequence', 'SequenceMap')
def sequence(g, name):
    x = g.val((F32, I64), min_rank=1, empty=0)
    vals = [x] + [g.like(x) for _ in range(g.int(0, 2))]
    n, nodes, used = g.count, [], list(vals)
    seq, count = f's{n}', len(vals)
    if name == 'SplitToSequence':
        axis = g.int(0, x.rank - 1)
        keep = g.int(0, 1)
        nodes.append(helper.make_node('SplitToSequence', [x.name], [seq], axis=axis, keepdims=keep))
        used, count = [x], x.shape[axis]
    elif name == 'SequenceEmpty':
        nodes += [helper.make_node('SequenceEmpty', [], [f'e{n}'], dtype=tensor_type(x)),
                  helper.make_node('SequenceInsert', [f'e{n}', x.name], [seq])]
        used, count = [x], 1
    else:
        nodes.append(helper.make_node('SequenceConstruct', [v.name for v in vals], [seq]))
    if name == 'SequenceInsert':
        at = g.add(np.array(g.int(-count, count), I64)) if g.chance(0.7) else None
        nodes.append(helper.make_node(name, [seq, x.name] + ([at.name] if at else []), [f'i{n}']))
        seq, count, used = f'i{n}', count + 1, used + ([at] if at else [])
    if name == 'SequenceErase' and count > 1:
        at = g.add(np.array(g.int(-count, count - 1), I64)) if g.chance(0.7) else None
        nodes.append(helper.make_node(name, [seq] + ([at.name] if at else []), [f'i{n}']))
        seq, count, used = f'i{n}', count - 1, used + ([at] if at else [])
    if name == 'SequenceMap' and g.opset >= 17:
        body = helper.make_graph([helper.make_node('Neg', [f'm{n}'], [f'o{n}'])], 'map', [info(f'm{n}', x)], [info(f'o{n}', x)])
        nodes.append(helper.make_node(name, [seq], [f'q{n}'], body=body))
        seq = f'q{n}'
    out = f'r{n}'
    if name == 'SequenceLength':
        nodes.append(helper.make_node(name, [seq], [out]))
    elif name == 'ConcatFromSequence' or g.chance(0.4):
        nodes.append(helper.make_node('ConcatFromSequence', [seq], [out], axis=0 if name != 'ConcatFromSequence' else g.int(-x.rank, x.rank - 1),
                                      new_axis=g.int(0, 1) if name != 'SplitToSequence' else 1))
    else:
        at = g.add(np.array(g.int(-count, count - 1), I64))
        used.append(at)
        nodes.append(helper.make_node('SequenceAt', [seq, at.name], [out]))
    g.several(nodes, used, [out], exact=True)


@op('Optional', 'OptionalHasElement', 'OptionalGetElement')
def optional(g, name):
    if g.opset < 15:
        raise Skip('version')
    x, n = g.val((F32, I64), empty=0), g.count
    nodes = [helper.make_node('Optional', [x.name], [f'o{n}'])]
    nodes.append(helper.make_node('OptionalHasElement' if name == 'OptionalHasElement' else 'OptionalGetElement', [f'o{n}'], [f'r{n}']))
    g.several(nodes, [x], [f'r{n}'], exact=True)


# ---- com.microsoft, quantised ----
@ms('QLinearSigmoid', 'QLinearLeakyRelu')
def ms_unary(g, name):
    t = g.pick([U8, I8])
    g.node(name.split(':')[1], quantized(g, t, g.dims(g.int(1, 3))) + [two(g, -8, -3), g.new(t, [], const=True)], domain=MS, exact=True,
           alpha=0.125 if 'Leaky' in name else None)


@ms('QLinearGlobalAveragePool')
def ms_gap(g, name):
    # The mean of a power of two of elements falls where both round alike.
    g.node('QLinearGlobalAveragePool', quantized(g, U8, [1, g.int(1, 3), 2, 2]) + [two(g, -6, -5), g.new(U8, [], const=True)], domain=MS, exact=True)


@ms('QLinearConcat')
def ms_concat(g, name):
    t = g.pick([U8, I8])
    a = g.dims(2, 1, 4)
    ins = [two(g), g.new(t, [], const=True)] + quantized(g, t, a) + quantized(g, t, [g.int(1, 3), a[1]])
    g.node('QLinearConcat', ins, domain=MS, exact=True, axis=0)


@ms('QLinearWhere')
def ms_where(g, name):
    t, s = g.pick([U8, I8]), g.dims(2, 1, 4)
    g.node('QLinearWhere', [g.new(BOOL, s)] + quantized(g, t, s) + quantized(g, t, s) + [two(g), g.new(t, [], const=True)], domain=MS, exact=True)


@ms('QGemm')
def ms_qgemm(g, name):
    m, k, n = g.int(1, 4), g.int(1, 5), g.int(1, 4)
    g.node('QGemm', quantized(g, U8, [m, k]) + quantized(g, U8, [k, n]) + [None, two(g), g.new(U8, [], const=True)], domain=MS, exact=True)


@ms('QuantizeLinear', 'DequantizeLinear')
def ms_quantize(g, name):
    t = g.pick([U8, I8])
    x = g.val((F32,), exact=True) if 'ms:Q' in name or ':Quantize' in name else g.val((t,))
    g.node(name.split(':')[1], [x, two(g), g.new(t if x.dtype == F32 else x.dtype, [], const=True)], domain=MS, exact=True)


@ms('NhwcMaxPool')
def ms_nhwc(g, name):
    h, w = g.int(2, 6), g.int(2, 6)
    kernel, attrs = window(g, [h, w], auto=False)
    g.node('NhwcMaxPool', [g.new(g.pick([U8, I8]), [1, h, w, g.int(1, 3)])], domain=MS, exact=True, kernel_shape=kernel, **attrs)


# ---- ai.onnx.ml ----
def ml(*names):
    return op(*[f'{ML}:{n}' for n in names])


@ml('Binarizer')
def binarizer(g, name):
    g.node('Binarizer', [g.val((F32, I64), exact=True)], domain=ML, exact=True, threshold=float(g.pick([0.0, 1.0, -0.5])))


@ml('Scaler')
def scaler(g, name):
    x = g.val((F32, F64, I64, I32), rank=2, empty=0, test=lambda v: v.shape[1] > 0)
    n = x.shape[1]
    # ONNX Runtime subtracts and multiplies in float32.
    g.node('Scaler', [x], domain=ML, base=1e-4, terms=4, offset=[float(v) for v in g.random(F32, [n])], scale=[0.5] * n)


@ml('Normalizer')
def normalizer(g, name):
    g.node('Normalizer', [g.val((F32,), rank=2, empty=0, lo=0.25, hi=8)], domain=ML, base=1e-4, norm=g.pick(['MAX', 'L1', 'L2']))


@ml('Imputer')
def imputer(g, name):
    x = g.new(F32, [g.int(1, 3), g.int(1, 4)])
    g.node('Imputer', [x], domain=ML, exact=True, imputed_value_floats=[1.5] * (x.shape[1] if g.chance(0.5) else 1),
           replaced_value_float=float(x.data.flat[0]) if g.chance(0.5) else float('nan'))


@ml('ArrayFeatureExtractor')
def array_feature(g, name):
    x = g.val((F32, I64), min_rank=1, max_rank=3, empty=0)
    g.node('ArrayFeatureExtractor', [x, g.add(g.rng.integers(0, x.shape[-1], g.int(1, 4), dtype=I64))], domain=ML, exact=True)


@ml('FeatureVectorizer')
def feature_vectorizer(g, name):
    n = g.int(1, 3)
    vals = [g.new(F32, [n, g.int(1, 4)]) for _ in range(g.int(1, 3))]
    g.node('FeatureVectorizer', vals, domain=ML, exact=True, inputdimensions=[v.shape[1] for v in vals])


@ml('OneHotEncoder')
def one_hot_encoder(g, name):
    x = g.new(I64, [g.int(1, 4)], 0, 3)
    g.node('OneHotEncoder', [x], domain=ML, exact=True, cats_int64s=[0, 1, 2, 5], zeros=1)


@ml('LabelEncoder')
def label_encoder(g, name):
    x = g.val((I64,), exact=True, min_rank=1, lo=-9, hi=9)
    g.node('LabelEncoder', [x], domain=ML, exact=True, keys_int64s=[1, 2, 3], values_floats=[0.5, -1.0, 4.0], default_float=9.0)


@ml('LinearRegressor')
def linear_regressor(g, name):
    n, c, t = g.int(1, 3), g.int(1, 4), g.int(1, 3)
    g.node('LinearRegressor', [g.new(F32, [n, c])], domain=ML, terms=16, targets=t, coefficients=[float(v) for v in g.random(F32, [c * t])],
           intercepts=[float(v) for v in g.random(F32, [t])] if g.chance(0.6) else None)


@ml('TreeEnsembleRegressor')
def tree(g, name):
    x = g.val((F32,), rank=2, exact=True, empty=0)
    g.node('TreeEnsembleRegressor', [x], domain=ML, terms=1, n_targets=1, nodes_treeids=[0, 0, 0], nodes_nodeids=[0, 1, 2],
           nodes_featureids=[g.int(0, x.shape[1] - 1), 0, 0], nodes_modes=[g.pick(['BRANCH_LEQ', 'BRANCH_LT', 'BRANCH_GT']), 'LEAF', 'LEAF'],
           nodes_values=[0.5, 0.0, 0.0], nodes_truenodeids=[1, 0, 0], nodes_falsenodeids=[2, 0, 0], nodes_hitrates=[1.0] * 3,
           nodes_missing_value_tracks_true=[0] * 3, target_treeids=[0, 0], target_nodeids=[1, 2], target_ids=[0, 0],
           target_weights=[1.5, -2.0])
