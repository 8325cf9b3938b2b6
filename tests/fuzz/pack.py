#!/usr/bin/env python3
"""Packs of small files, and the record of time (see scripts/fuzz, replay.c).

  pack.py pack PACK FOLDER MAX_BYTES   smallest files first, as long as they fit
  pack.py unpack PACK FOLDER
  pack.py time TABLE TARGET SECONDS    adds seconds to a row of the table
"""
import hashlib
import os
import re
import struct
import sys


def pack(path, folder, limit):
    files = sorted((os.path.getsize(os.path.join(folder, n)), n) for n in os.listdir(folder))
    total = left = 0
    with open(path, 'wb') as out:
        for size, name in files:
            if total + size + 4 > limit:
                left += 1
                continue
            with open(os.path.join(folder, name), 'rb') as f:
                data = f.read()
            out.write(struct.pack('<I', len(data)) + data)
            total += len(data) + 4
    print(f'{path}: {len(files) - left} files, {total} bytes' + (f'; {left} did not fit' if left else ''))


def unpack(path, folder):
    with open(path, 'rb') as f:
        data = f.read()
    at = 0
    while at < len(data):
        size, = struct.unpack_from('<I', data, at)
        piece = data[at + 4:at + 4 + size]
        with open(os.path.join(folder, hashlib.sha1(piece).hexdigest()), 'wb') as f:
            f.write(piece)
        at += 4 + size


def add_time(path, target, seconds):
    text = open(path).read()
    row = re.compile(r'^\| ' + re.escape(target) + r' +\| *(\d+) *\|', re.M)
    m = row.search(text)
    if not m:
        raise SystemExit(f'{path}: no row for {target}')
    total = int(m.group(1)) + int(seconds)
    text = text[:m.start()] + f'| {target} | {total} |' + text[m.end():]
    with open(path, 'w') as f:
        f.write(text)
    print(f'{path}: {target}: {total} s')


def main():
    verb, args = sys.argv[1], sys.argv[2:]
    if verb == 'pack':
        pack(args[0], args[1], int(args[2]))
    elif verb == 'unpack':
        unpack(*args)
    elif verb == 'time':
        add_time(*args)
    else:
        raise SystemExit(__doc__)


if __name__ == '__main__':
    main()
