"""Control flow, sequences, optionals. See ops_math.py."""
import numpy as np
from onnx import TensorProto, helper

from graph import BOOL, F32, FLOATS, I64, Skip, tensor_type
from ops_math import op


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
    x = g.val((g.only,) if g.only else (F32, I64), min_rank=1, empty=0)
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
    if name == 'SequenceMap' and not g.only and g.opset >= 17:
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
    x, n = g.val((g.only,) if g.only else (F32, I64), empty=0), g.count
    nodes = [helper.make_node('Optional', [x.name], [f'o{n}'])]
    nodes.append(helper.make_node('OptionalHasElement' if name == 'OptionalHasElement' else 'OptionalGetElement', [f'o{n}'], [f'r{n}']))
    g.several(nodes, [x], [f'r{n}'], exact=True)
