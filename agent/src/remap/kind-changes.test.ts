import { expect, test } from 'vitest'
import { noMetadata } from '../event/log.ts'
import { type Kind, kinds } from './kind.ts'
import { withKindAt, withoutKindAt } from './kind-changes.ts'
import { compileProgram } from './program.ts'

const { string, integer, boolean, timestamp, undefined: missing } = kinds
const names = kinds.arrayEach(string)

/** The kind in full: the text of a kind leaves out unknown elements. */
function full(kind: Kind | undefined): string {
  if (kind === undefined) return '-'
  const plain = kind.without(kinds.array).without(kinds.object)
  const parts = plain.isNever ? [] : [plain.toString()]
  for (const collection of [kind.array, kind.object]) {
    if (collection === undefined) continue
    const known = [...(collection.known as ReadonlyMap<string | number, Kind>)].map(
      ([key, item]) => `${key}=${full(item)}`,
    )
    parts.push(`(${[...known, full(collection.unknown)].join('; ')})`)
  }
  return parts.join('|')
}

test.each<[string, Kind, (string | number)[], Kind, string]>([
  ['a field', kinds.objectOf({ a: string }), ['b'], integer, '(a=string; b=integer; -)'],
  ['a value that never exists', kinds.objectOf({ a: string }), ['a'], kinds.never, '(a=string; -)'],
  ['an item after a gap', kinds.arrayOf([]), [2], string, '(0=null; 1=null; 2=string; -)'],
  ['an item among unknown ones', names, [1], integer, '(0=string or null; 1=integer; string or undefined)'],
  ['a known item', kinds.arrayOf([string, integer]), [0], boolean, '(0=boolean; 1=integer; -)'],
  ['the last known item', kinds.arrayOf([string, integer]), [-1], boolean, '(0=string; 1=boolean; -)'],
  ['an item before all', kinds.arrayOf([string]), [-2], boolean, '(0=boolean; 1=null; -)'],
  ['the last of unknown items', names, [-1], integer, '(0=string or integer; string, integer or undefined)'],
  [
    'an unknown item from the end',
    names,
    [-2],
    integer,
    '(0=string or integer; 1=string, integer or null; string, integer or undefined)',
  ],
  [
    'an item that moves known ones',
    kinds.arrayWith(
      new Map([
        [0, string],
        [1, timestamp],
      ]),
      string,
    ),
    [-3],
    integer,
    '(0=string or integer; 1=string, integer or timestamp; 2=string, integer or timestamp; string, integer or undefined)',
  ],
  [
    'an item that moves none',
    kinds.arrayWith(
      new Map([
        [0, timestamp],
        [1, timestamp],
      ]),
      string,
    ),
    [-2],
    integer,
    '(0=integer or timestamp; 1=integer or timestamp; string, integer or undefined)',
  ],
  [
    'a field of an item from the end',
    names,
    [-1, 'x'],
    integer,
    '(0=string|(x=integer; -); string or undefined|(x=integer; -))',
  ],
])('%s after a write', (_title, kind, path, value, expected) => {
  expect(full(withKindAt(kind, path, value))).toBe(expected)
})

test('a distance beyond all measure takes no time', () => {
  const known = new Map(Array.from({ length: 5000 }, (_, index) => [index, string] as const))
  expect(withKindAt(kinds.arrayWith(known, integer), [-65_535], string)).toBe(kinds.array)
})

test.each<[string, Kind, (string | number)[], boolean, string]>([
  ['the root', kinds.objectOf({ a: string }), [], false, '(-)'],
  ['a root of another kind', kinds.string.or(kinds.arrayOf([string])), [], false, 'null|(-)'],
  ['a field', kinds.objectOf({ a: string, b: string }), ['a'], false, '(b=string; -)'],
  ['a field among unknown ones', kinds.objectWith({ a: string }, integer), ['a'], false, '(integer or undefined)'],
  ['an unknown field', kinds.objectEach(integer), ['a'], true, '(integer or undefined)'],
  [
    'a field that may be missing',
    kinds.objectOf({ a: string.or(missing) }),
    ['a'],
    false,
    '(a=string or undefined; -)',
  ],
  ['the only nested field', kinds.objectOf({ a: kinds.objectOf({ b: string }) }), ['a', 'b'], false, '(a=(-); -)'],
  ['the same, compactly', kinds.objectOf({ a: kinds.objectOf({ b: string }) }), ['a', 'b'], true, '(-)'],
  [
    'an unknown nested field, compactly',
    kinds.objectOf({ a: kinds.objectEach(string) }),
    ['a', 'b'],
    true,
    '(a=undefined|(string or undefined); -)',
  ],
  ['an item', kinds.arrayOf([string, integer]), [0], false, '(0=integer; -)'],
  ['the last item', kinds.arrayOf([string, integer]), [-1], false, '(0=string; -)'],
  ['an item before all', kinds.arrayOf([string]), [-2], false, '(0=string; -)'],
  ['the last of unknown items', names, [-1], false, '(string or undefined)'],
  [
    'the last item after a known one',
    kinds.arrayWith(new Map([[0, timestamp]]), string),
    [-1],
    false,
    '(0=string, timestamp or undefined; string or undefined)',
  ],
  [
    'the only item of an item, compactly',
    kinds.arrayOf([kinds.arrayOf([string]), integer]),
    [0, 0],
    true,
    '(0=integer; -)',
  ],
])('%s after a removal', (_title, kind, path, compact, expected) => {
  expect(full(withoutKindAt(kind, path, compact))).toBe(expected)
})

// Where items move, the kinds above may be wrong, so the program tests the values.
test.each([
  ['x = [1]\nx[-2] = "a"\n[upcase(x[0]), x[1], is_null(x[1])]', ['A', 1, false]],
  ['. = {"l": [1, "b", true]}\ndel(.l[0])\nupcase(.l[0])', 'B'],
  ['. = {"l": [1, "b", true]}\ndel(.l[0])\n.l[2] || "none"', 'none'],
])('%s gives %j', (source, expected) => {
  const compiled = compileProgram(source, { keepResult: true })
  if (!compiled.ok) throw new Error(compiled.rendered)
  expect(compiled.program.run({}, noMetadata, true)).toEqual(expected)
})
