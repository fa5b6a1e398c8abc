import { compileProgram } from '@penstock/agent/config'
import { expect, test } from 'vitest'
import { groupNames, segmentsOf, translateRegex } from './regex.ts'

// All patterns were checked with Go's `regexp`. The expected text is in the dialect of the remap language.
test.each([
  ['\\d+ \\w+', '[0-9]+ [0-9A-Za-z_]+'],
  ['[^\\s"]+\\S', '[^\\t\\n\\f\\r\\x20"]+[^\\t\\n\\f\\r\\x20]'],
  ['\\bword\\b', '(?-u:\\b)word(?-u:\\b)'],
  ['a{2,3}b{x}{', 'a{2,3}b\\{x\\}\\{'],
  ["it's", 'it\\x27s'],
  ['[[&~]x]', '[\\[\\&\\~]x]'],
  ['[]a]', '[\\]a]'],
  ['[a-z.-]', '[a-z.\\-]'],
  ['\\Qa.b\\E\\/\\_\\<', 'a\\.b/_<'],
  ['\\x41\\101[[:alpha:]]', '\\x{41}\\x{41}[[:alpha:]]'],
  ['(?i)(?P<a>x)$', '(?i)(?P<a>x)$'],
])('the Go pattern %s is converted to one that compiles', (go, expected) => {
  const translated = translateRegex(go)
  expect(translated).toEqual({ ok: true, text: expected })
  expect(compileProgram(`.x = match("a", r'${expected}')`)).toMatchObject({ ok: true })
})

test.each([['\\q'], ['[a'], ['a\\'], ['\\B']])('the pattern %s is rejected with a reason', (go) => {
  expect(translateRegex(go)).toMatchObject({ ok: false, reason: expect.stringMatching(/\w/) })
})

test('groups keep their names', () => {
  expect(groupNames('(?P<a>x)(y)(?<b_1>z)(?:w)')).toEqual(['a', 'b_1'])
})

test('a pattern with sequential groups is split', () => {
  expect(segmentsOf('(?i)password=(\\S+) (?P<n>[)]x)')).toEqual({
    pattern: '(?i)(password=)(\\S+)( )([)]x)',
    pieces: [
      { text: 'password=', isGroup: false },
      { text: '\\S+', isGroup: true },
      { text: ' ', isGroup: false },
      { text: '[)]x', isGroup: true, name: 'n' },
    ],
  })
  expect(segmentsOf('x([(]\\(a(b|(c))+)')).toEqual({
    pattern: '(x)([(]\\(a(?:b|(?:c))+)',
    pieces: [
      { text: 'x', isGroup: false },
      { text: '[(]\\(a(?:b|(?:c))+', isGroup: true },
    ],
  })
  expect(segmentsOf('a|(b)?')?.pattern).toBe('(a)|(b)?')
  expect(segmentsOf('x(?i:(a)|b[(]+)?')?.pattern).toBe('(x)(?i:(a)|(b[(]+))?')
  expect(segmentsOf('(a)+')).toBeUndefined()
  expect(segmentsOf('(?:(a)b)*')).toBeUndefined()
  expect(segmentsOf('((?P<n>a)b)')).toBeUndefined()
})
