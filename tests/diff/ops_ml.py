"""ai.onnx.ml. See ops_math.py."""
import numpy as np
from onnx import numpy_helper

from graph import F32, F64, I32, I64, STR, Skip, ml_version
from ops_math import fix, op

ML = 'ai.onnx.ml'
POSTS = [None, 'NONE', 'LOGISTIC', 'SOFTMAX', 'SOFTMAX_ZERO']


def ml(*names):
    return op(*[f'{ML}:{n}' for n in names])


def tensor(values, dtype):
    return numpy_helper.from_array(np.array(values, dtype), 't')


def floats(g, n, lo=None, hi=None):
    return [float(v) for v in g.random(F32, [n], lo, hi)]


@ml('Binarizer')
def binarizer(g, name):
    g.node('Binarizer', [g.val((F32, I64), exact=True)], domain=ML, exact=True, threshold=float(g.pick([0.0, 1.0, -0.5])))


@ml('Scaler')
def scaler(g, name):
    x = g.val((F32, F64, I64, I32), rank=2, empty=0, test=lambda v: v.shape[1] > 0)
    n = x.shape[1]
    # ONNX Runtime subtracts and multiplies in float32.
    offset, scale = (floats(g, n), floats(g, n)) if g.chance(0.7) else (floats(g, 1), floats(g, 1))
    g.node('Scaler', [x], domain=ML, base=1e-4, terms=4 * (x.max_abs() + 4), offset=offset, scale=scale)


@ml('Normalizer')
def normalizer(g, name):
    g.node('Normalizer', [g.val((F32,), rank=2, empty=0, lo=0.25, hi=8)], domain=ML, base=1e-4, norm=g.pick(['MAX', 'L1', 'L2']))


@ml('Imputer')
def imputer(g, name):
    if g.chance(0.3):
        x = g.new(I64, [g.int(1, 3), g.int(1, 4)])
        g.node('Imputer', [x], domain=ML, exact=True, imputed_value_int64s=[7] * (x.shape[1] if g.chance(0.5) else 1),
               replaced_value_int64=int(x.data.flat[0]))
        return
    x = g.new(F32, [g.int(1, 3), g.int(1, 4)])
    g.node('Imputer', [x], domain=ML, exact=True, imputed_value_floats=[1.5] * (x.shape[1] if g.chance(0.5) else 1),
           replaced_value_float=float(x.data.flat[0]) if g.chance(0.5) else float('nan'))


@ml('ArrayFeatureExtractor')
def array_feature(g, name):
    x = g.val((F32, I64, F64, I32), min_rank=1, max_rank=3, empty=0)
    g.node('ArrayFeatureExtractor', [x, g.add(g.rng.integers(0, x.shape[-1], g.int(1, 4), dtype=I64))], domain=ML, exact=True)


@ml('FeatureVectorizer')
def feature_vectorizer(g, name):
    n = g.int(1, 3)
    vals = [g.new(F32, [n, g.int(1, 4)]) for _ in range(g.int(1, 3))]
    g.node('FeatureVectorizer', vals, domain=ML, exact=True, inputdimensions=[v.shape[1] for v in vals])


@ml('OneHotEncoder')
def one_hot_encoder(g, name):
    x = g.new(g.pick([I64, I64, I32, F32, F64]), [g.rows(1, 4) for _ in range(g.int(1, 2))], 0, 3)
    g.node('OneHotEncoder', [x], domain=ML, exact=True, cats_int64s=[0, 1, 2, 5], zeros=g.pick([None, 1]))


# ---- LabelEncoder: version 1 names classes, 2 has lists, 4 tensors too ----
def entries(g, t, n):
    """Different ones."""
    if t == STR:
        return [str(v) for v in g.rng.permutation(np.unique(g.random(STR, [3 * n])))[:n]]
    if t == I64:
        return [int(v) for v in g.rng.permutation(19)[:n] - 9]
    return [float(v) / 4 for v in g.rng.permutation(33)[:n] - 16]


@ml('LabelEncoder')
def label_encoder(g, name):
    version = ml_version(g.opset)
    if version == 1:
        words = entries(g, STR, g.int(1, 4))
        if g.chance(0.5):
            g.node('LabelEncoder', [g.val((STR,), min_rank=1)], domain=ML, exact=True, classes_strings=words,
                   default_int64=g.pick([None, 7]))
        else:
            g.node('LabelEncoder', [g.new(I64, g.shape(1), -1, 5)], domain=ML, exact=True, classes_strings=words,
                   default_string=g.pick([None, 'none']))
        return
    word = {STR: 'string', I64: 'int64', F32: 'float'}
    pairs = [(I64, F32), (F32, I64), (I64, STR), (STR, I64), (STR, F32), (F32, STR), (STR, STR), (I64, I64), (F32, F32)]
    a, b = g.pick(pairs)
    keys = entries(g, a, g.int(1, 4))
    n = len(keys)
    values = [str(v) if b == STR else int(v) if b == I64 else float(v) for v in g.random(b, [n])]
    attrs = {f'keys_{word[a]}s': keys, f'values_{word[b]}s': values}
    if g.chance(0.6):
        attrs[f'default_{word[b]}'] = {STR: 'none', I64: 42, F32: 9.0}[b]
    if version >= 4 and STR not in (a, b) and g.chance(0.3):
        t = g.pick([F64, None])  # of doubles only by tensors
        a, b = (F64, F64) if t else (a, b)
        attrs = dict(keys_tensor=tensor(keys, a), values_tensor=tensor(values, b), default_tensor=tensor([9], b))
    # Of the keys some must occur.
    x = g.random(a, g.shape(1, 3))
    at = g.rng.random(x.shape) < 0.6
    x[at] = np.array(keys, dtype=a)[g.rng.integers(0, n, int(at.sum()))]
    g.node('LabelEncoder', [g.add(x)], domain=ML, exact=True, **attrs)


# ---- linear models ----
@ml('LinearRegressor')
def linear_regressor(g, name):
    n, c, t = g.rows(1, 3), g.int(1, 4), g.int(1, 3)
    post = g.pick([None, 'NONE'] if t == 1 else POSTS)
    g.node('LinearRegressor', [g.new(F32, [n, c])], domain=ML, terms=16, base=1e-4, targets=t, coefficients=floats(g, c * t),
           intercepts=floats(g, t) if g.chance(0.6) else None, post_transform=post)


@ml('LinearClassifier')
def linear_classifier(g, name):
    n, c, classes = g.rows(1, 4), g.int(1, 4), g.int(2, 4)
    x = g.new(g.pick([F32, F32, F64, I64, I32]), [n, c])
    scores, post = classes, g.pick(POSTS)
    if classes == 2 and g.chance(0.5):
        scores, post = 1, 'LOGISTIC'
    labels = [int(v) for v in g.rng.permutation(19)[:classes] - 9]
    # Both outputs, as ONNX Runtime asks.
    g.node('LinearClassifier', [x], 2, domain=ML, terms=16, base=1e-4, coefficients=floats(g, c * scores),
           intercepts=floats(g, scores), classlabels_ints=labels, post_transform=post)


# ---- trees ----
MODES = ['BRANCH_LEQ', 'BRANCH_LT', 'BRANCH_GTE', 'BRANCH_GT', 'BRANCH_EQ', 'BRANCH_NEQ']


def grow(g, features, depth):
    """A random tree: (feature, mode, value, missing goes to the true side, yes, no), or None for a leaf."""
    if depth == 0 or g.chance(0.25):
        return None
    # A NaN takes the false side unless missing ones go to the true one. By IEEE's rules it
    # is unequal to anything, and so ONNX Runtime sends it to the true side of BRANCH_NEQ.
    modes = range(5 if features.dtype in (F32, F64) and np.isnan(features.data).any() else 6)
    # Quarters, and what the inputs are rounded to: equal ones occur.
    here = (g.int(0, features.shape[1] - 1), g.pick(modes), g.int(-8, 8) / 4, g.int(0, 1))
    return here + (grow(g, features, depth - 1), grow(g, features, depth - 1))


def grown(g, features):
    tree = None
    while tree is None:
        tree = grow(g, features, 3)
    return tree


def tree_input(g, types=(F32,)):
    t = types[int(g.rng.integers(len(types)))]
    n, c = g.rows(1, 5), g.int(1, 4)
    x = g.random(t, [n, c]) if g.chance(0.5) else np.rint(g.random(F64, [n, c]) * 4) / 4
    x = x.astype(t)
    if t in (F32, F64) and x.size and g.chance(0.2):
        x.flat[g.int(0, x.size - 1)] = np.nan
    return g.add(x)


def named_trees(g, features, trees):
    """Lists of the attributes of nodes, and (tree, node) of each leaf."""
    a = {k: [] for k in ('treeids', 'nodeids', 'featureids', 'modes', 'values', 'truenodeids', 'falsenodeids', 'missing_value_tracks_true')}
    leaves = []
    for t in range(trees):
        queue, made, count = [(grown(g, features), 0)], [], 1
        while queue:
            node, i = queue.pop(0)
            if node is None:
                leaves.append((t, i))
                made.append((t, i, 0, 'LEAF', 0.0, 0, 0, 0))
                continue
            f, mode, value, missing, yes, no = node
            made.append((t, i, f, MODES[mode], value, count, count + 1, missing))
            queue += [(yes, count), (no, count + 1)]
            count += 2
        for m in made:
            for k, v in zip(a, m):
                a[k].append(v)
    return {f'nodes_{k}': v for k, v in a.items()}, leaves


def votes(g, kind, leaves, targets, positive=False):
    """Every leaf votes once for each of the targets: other numbers of votes ONNX Runtime counts in its own way."""
    lines = [(t, n, i) for t, n in leaves for i in range(targets)]
    return {f'{kind}_treeids': [v[0] for v in lines], f'{kind}_nodeids': [v[1] for v in lines], f'{kind}_ids': [v[2] for v in lines],
            f'{kind}_weights': floats(g, len(lines), *((0.0625, 2) if positive else (-2, 2)))}


def not_deprecated(g):
    if ml_version(g.opset) >= 5:
        raise Skip('deprecated in favour of TreeEnsemble')


@ml('TreeEnsembleRegressor')
def tree_regressor(g, name):
    not_deprecated(g)
    x = tree_input(g, (F32, F32, F64))
    targets = g.int(1, 3)
    nodes, leaves = named_trees(g, x, g.int(1, 4))
    base = floats(g, targets) if g.chance(0.4) else None
    g.node('TreeEnsembleRegressor', [x], domain=ML, terms=8, n_targets=targets, base_values=base,
           aggregate_function=g.pick([None, 'SUM', 'AVERAGE', 'MIN', 'MAX']),
           post_transform=g.pick(POSTS) if targets > 1 else g.pick([None, 'NONE']), **nodes, **votes(g, 'target', leaves, targets))


@ml('TreeEnsembleClassifier')
def tree_classifier(g, name):
    not_deprecated(g)
    x = tree_input(g, (F32, F32, F64, I64, I32))
    classes = g.int(2, 4)
    nodes, leaves = named_trees(g, x, g.int(1, 4))
    # Of two classes with a score each ONNX Runtime gives 0 and 1 in place of the labels.
    one = classes == 2
    scores = 1 if one else classes
    g.node('TreeEnsembleClassifier', [x], 2, domain=ML, terms=8, classlabels_int64s=[int(v) for v in g.rng.permutation(19)[:classes] - 9],
           base_values=floats(g, scores) if g.chance(0.3) else None, post_transform=g.pick(POSTS[:3] if one else POSTS),
           **nodes, **votes(g, 'class', leaves, scores, positive=g.chance(0.4)))


@ml('TreeEnsemble')
def tree_ensemble(g, name):
    x = tree_input(g, (F32, F32, F64))
    # Sets: ONNX Runtime has positive integers only, and cuts the fraction of what it looks up.
    sets = g.chance(0.3)
    if sets:
        x = g.new(x.dtype, x.shape, 0, 9)
        x.data = np.rint(x.data)
        fix(g, x)
    t, targets = x.dtype, g.int(1, 3)
    nodes = {k: [] for k in ('featureids', 'modes', 'splits', 'truenodeids', 'falsenodeids', 'trueleafs', 'falseleafs',
                             'missing_value_tracks_true')}
    roots, leaves, members = [], [], []

    def place(node):
        """The index of a node, or of a leaf, and whether it is one."""
        if node is None:
            leaves.append(g.int(0, targets - 1))
            return len(leaves) - 1, 1
        f, mode, value, missing, yes, no = node
        i = len(nodes['modes'])
        for k, v in zip(nodes, (f, mode, value, 0, 0, 0, 0, missing)):
            nodes[k].append(v)
        if mode == 4 and sets:  # one of several values
            nodes['modes'][i] = 6
            members.extend([float(v + 1) for v in g.rng.permutation(9)[:g.int(1, 3)]] + [float('nan')])
        for child, k, leaf in ((yes, 'truenodeids', 'trueleafs'), (no, 'falsenodeids', 'falseleafs')):
            at, is_leaf = place(child)
            nodes[k][i], nodes[leaf][i] = at, is_leaf
        return i, 0

    for _ in range(g.int(1, 3)):
        roots.append(place(grown(g, x))[0])

    attrs = {f'nodes_{k}': v for k, v in nodes.items()}
    attrs.update(nodes_modes=tensor(nodes['modes'], 'uint8'), nodes_splits=tensor(nodes['splits'], t))
    # SOFTMAX (1) and LOGISTIC (2) ONNX Runtime takes for each other; the rest it computes in float32.
    y = g.node('TreeEnsemble', [x], domain=ML, terms=8, base={F32: 2e-5, F64: 2e-6}, n_targets=targets,
           aggregate_function=g.pick([0, 1, 2, 3]), post_transform=g.pick([0, 0, 3]) if targets > 1 else 0, tree_roots=roots,
           leaf_targetids=leaves, leaf_weights=tensor(floats(g, len(leaves), -2, 2), t), membership_values=tensor(members, t) if members else None, **attrs)
    if np.isnan(y.data).any():
        raise Skip('SOFTMAX_ZERO of nothing but zeros, which ONNX Runtime divides by zero')
