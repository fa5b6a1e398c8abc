// Every value of a document is found at its position in the text. Each value is its own path, so the test needs no counted offsets.

import { expect, test } from 'vitest'
import { positionAt } from './place.ts'
import { type Format, parseText, type Segments } from './syntax.ts'

const documents: { name: string; format: Format; text: string }[] = [
  {
    name: 'tables, arrays of tables and dotted keys',
    format: 'toml',
    text: `top = "top" # a comment with [brackets] = "and quotes"
a.b."c.d" = 'a/b/c.d'

[x]
  y = """x/y"""
[x.z]
w = [ "x/z/w/0", # one
  [ 'x/z/w/1/0', "x/z/w/1/1", ],
  { p = "x/z/w/2/p", q = { r = '''x/z/w/2/q/r''' } } ]
[[list]]
name = "list/0/name"
[list.sub]
name = "list/0/sub/name"
[[list.inner]]
name = "list/0/inner/0/name"
[[list.inner]]
name = "list/0/inner/1/name"
[[list]]
name = "list/1/name"
[list.sub]
name = "list/1/sub/name"
["quoted \\"key\\""]
'single' = "quoted \\"key\\"/single"
`,
  },
  {
    name: 'strings that look like structure',
    format: 'toml',
    text: `a = "a"
b = """
] } = # [not.a.table] \\"""" # after
c = 'c'
d = '''
'' [x] ''
'''
e = [ """ " ] """, "e/1" ]
f = "f"
`,
  },
  {
    name: 'flow, block, anchors and merged tables',
    format: 'yaml',
    text: `# comment
a: a
b: &shared {c: b/c, d: b/d}
e:
  <<: *shared
  d: e/d
f:
  - f/0
  - {g: f/1/g}
  -
    h: "f/2/h"
? key with blanks
: key with blanks
i: >-
  i
`,
  },
  {
    name: 'nested tables and lists',
    format: 'json',
    text: '{\n  "a": "a", "b": [ "b/0", {"c\\"d": "b/1/c\\"d"} ],\n\t"e": {"f": {"g": "e/f/g"}}\n}',
  },
]

/** All texts in a value, with their paths. */
function* texts(value: unknown, path: Segments = []): Generator<{ path: Segments; text: string }> {
  if (typeof value === 'string') yield { path, text: value }
  else if (Array.isArray(value)) for (const [index, item] of value.entries()) yield* texts(item, [...path, index])
  else if (typeof value === 'object' && value !== null) {
    for (const [key, member] of Object.entries(value)) yield* texts(member, [...path, key])
  }
}

test.each(documents)('$format, $name', ({ format, text }) => {
  const parsed = parseText(text, format)
  if (!parsed.ok) throw new Error(parsed.problems.map((problem) => problem.message).join('\n'))
  let found = 0
  for (const { path, text: value } of texts(parsed.document.value)) {
    const span = parsed.document.locate(path)
    // A value of a merged table is located where that table is written, under its own path.
    if (value !== path.join('/') && value !== 'b/c') continue
    found++
    expect(text.slice(span.value, span.value + 4 + JSON.stringify(value).length)).toContain(
      format === 'json' || value.includes('"') ? JSON.stringify(value).slice(1, -1) : value,
    )
  }
  expect(found).toBeGreaterThan(2)
})

test('a missing path is located at its nearest existing parent', () => {
  const text = 'a:\n  b: {c: 1}\n'
  const parsed = parseText(text, 'yaml')

  const span = parsed.ok ? parsed.document.locate(['a', 'b', 'x', 'y']) : undefined
  expect(positionAt(text, span?.key ?? 0)).toEqual({ line: 2, column: 3 })
})

test.each([
  { format: 'yaml' as const, text: 'a: 1\na: 2', message: /^not valid YAML: Map keys must be unique/, line: 2 },
  { format: 'yaml' as const, text: 'a: [1, 2', message: /^not valid YAML: /, line: 1 },
  { format: 'yaml' as const, text: 'a: 1\n---\nb: 2', message: /^not valid YAML: /, line: 2 },
  { format: 'yaml' as const, text: 'a: *gone', message: /^not valid YAML: Unresolved alias/, line: 1 },
  { format: 'toml' as const, text: 'a = 1\na = 2', message: /^not valid TOML: /, line: 2 },
  { format: 'toml' as const, text: 'a = 1\n[b\nc = 2', message: /^not valid TOML: /, line: 2 },
  { format: 'json' as const, text: '{"a": 1, "a": 2}', message: /unique/, line: 1 },
])('$format $text is refused', ({ format, text, message, line }) => {
  const parsed = parseText(text, format)

  const problem = parsed.ok ? undefined : parsed.problems[0]
  expect(problem?.message).toMatch(message)
  expect(positionAt(text, problem?.offset ?? 0).line).toBe(line)
})

test('a small text cannot grow without bound', () => {
  const lines = ['a0: &a0 [x, x, x, x, x, x, x, x, x, x]']
  for (let level = 1; level < 12; level++) {
    lines.push(
      `a${level}: &a${level} [${Array(10)
        .fill(`*a${level - 1}`)
        .join(', ')}]`,
    )
  }
  expect(parseText(lines.join('\n'), 'yaml')).toMatchObject({ ok: false })
})
