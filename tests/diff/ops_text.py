"""Operators on strings. See ops_math.py."""
import numpy as np

from graph import I32, I64, STR, WORDS
from ops_math import op


@op('StringConcat')
def string_concat(g, name):
    a = g.val((STR,))
    g.node(name, [a, g.broadcastable(a)], exact=True)


@op('StringSplit')
def string_split(g, name):
    # Without a delimiter ONNX Runtime cuts at spaces only; the definition says white
    # space. Nothing in WORDS has any other.
    g.node(name, [g.val((STR,), max_rank=3)], 2, exact=True, delimiter=g.pick([None, '', ' ', ',', '-', '--', 'a', 'ä']),
           maxsplit=g.pick([None, None, 0, 1, 2]))


@op('StringNormalizer')
def string_normalizer(g, name):
    n = g.int(0 if g.chance(0.05) else 1, 5)
    change = g.pick([None, 'NONE', 'LOWER', 'UPPER'])
    words = list(dict.fromkeys(g.pick(WORDS) for _ in range(g.int(0, 3))))
    # Of two dimensions ONNX Runtime asks for the first: a constant.
    x = g.val((STR,), dims=[n]) if g.chance(0.6) else g.new(STR, [1, n], const=True)
    g.node(name, [x], exact=True, case_change_action=change,
           is_case_sensitive=g.pick([None, 0, 1]), stopwords=words or None, locale=g.pick(['C.UTF-8', 'C.UTF-8', 'C']))


PARTS = ['a', 'b', 'A', 'ä', '.', '\\d', '\\w', '\\s', '[ab]', '[^a]', '[a-cA-C]', '(a|b)', '(?:ab)', '[[:alpha:]]', '日', '\\.', ',', '-', '\\S']
TIMES = ['', '', '', '*', '+', '?', '{2}', '{1,2}', '{0,1}', '*?', '+?']


@op('RegexFullMatch')
def regex(g, name):
    def sequence():
        return ''.join(g.pick(PARTS) + g.pick(TIMES) for _ in range(g.int(0, 4)))

    pattern = sequence()
    if g.chance(0.3):
        pattern += '|' + sequence()
    if g.chance(0.2):
        pattern = f'({pattern}){g.pick(TIMES)}'
    if g.chance(0.2):
        pattern = f'{g.pick(["^", "(?s)", ".*"])}{pattern}{g.pick(["$", "", ".*"])}'
    g.node(name, [g.val((STR,))], exact=True, pattern=pattern)


@op('TfIdfVectorizer')
def tfidf(g, name):
    longest = g.int(1, 3)
    shortest = g.int(1, longest)
    t = g.pick([STR, I64, I64, I32])
    alphabet = ['a', 'b', 'ä', ''] if t == STR else [0, 1, 2, -3]
    pool, counts, grams = [], [], 0
    for n in range(1, longest + 1):
        counts.append(len(pool))
        # A gram that is there twice is refused by ridge.
        some = list(dict.fromkeys(tuple(g.pick(alphabet) for _ in range(n)) for _ in range(g.int(1, 3))))
        pool += [word for gram in some for word in gram]
        grams += len(some)
    columns = [int(i) for i in g.rng.permutation(grams)]
    x = np.array([g.pick(alphabet) for _ in range(24)], dtype=t)[:g.int(0 if g.chance(0.05) else 1, 12) * 2].astype(t)
    if g.chance(0.4) and x.size:
        x = x.reshape(2, -1)
    g.node(name, [g.add(x)], mode=g.pick(['TF', 'IDF', 'TFIDF']), min_gram_length=shortest, max_gram_length=longest,
           max_skip_count=g.int(0, 3), ngram_counts=counts, ngram_indexes=columns,
           weights=[float(g.int(1, 16)) / 4 for _ in columns] if g.chance(0.5) else None,
           **({'pool_strings': pool} if t == STR else {'pool_int64s': pool}))
