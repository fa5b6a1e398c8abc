import { expect, test } from 'vitest'
import { noMetadata } from '../event/log.ts'
import { codeExamples } from './code-examples.ts'
import { diagnosticCodes } from './codes.ts'
import { isFailure } from './function.ts'
import { examplesOf, languagePages } from './language.ts'
import { compileProgram } from './program.ts'
import { valueText } from './text.ts'

const examples = languagePages().flatMap((page) =>
  examplesOf(page).map((example) => ({ page: page.title, ...example })),
)

test.each(examples)('$page: $source', ({ source, result }) => {
  const compiled = compileProgram(source, { keepResult: true })
  if (!compiled.ok) throw new TypeError(compiled.rendered)
  const given = compiled.program.run({}, noMetadata, true)
  expect(isFailure(given) ? given.message : valueText(given)).toBe(result)
})

test('there are examples on the pages', () => expect(examples.length).toBeGreaterThan(10))

// These are part of E610, and 801 needs a deprecated function, of which there is none.
const withoutExample = ['400', '401', '403', '710', '720', '801']

test.each(Object.keys(diagnosticCodes).filter((code) => !withoutExample.includes(code)))(
  'E%s: what is refused, and what to write instead',
  (code) => {
    const { wrong, right } = codeExamples[Number(code)] ?? { wrong: '', right: '' }
    const refused = compileProgram(wrong, { keepResult: true })
    const given = refused.ok ? refused.warnings : refused.diagnostics
    expect(given.map((diagnostic) => diagnostic.code)).toEqual([Number(code)])
    const instead = compileProgram(right, { keepResult: true })
    expect(instead.ok ? instead.renderedWarnings : instead.rendered).toBe('')
  },
)

test.each([
  // A later error does not hide the fallible parts before it.
  ['timestamp(.) == upcase(w)', [701, 100]],
  ['[to_int(.a), w]', [701, 100]],
  ['!to_int(.a)', [660, 100]],
  ['x = upcase(.a) == w', [701, 110]],
  ['{ to_int(.a); x = to_int(.b) }', [103, 100]],
  // Each fallible part of an expression is reported.
  ['to_int(.a) + to_int(.b)', [100, 100]],
  ['{ to_int(.a); upcase(.b) }', [100, 110]],
  ['if true { to_int(.a) } else { to_int(.b) }', [100, 100]],
  // All fields of an object are checked.
  ['{"k": w, "l": to_int(.a), "m": v}', [701, 701, 100]],
  ['{"k": to_int(.a), "k": 1}', [100]],
  // An assignment, a predicate, a call and a handled failure report once.
  ['x = { to_int(.a); to_int(.b) }', [103]],
  ['if to_int(.a) == to_int(.b) { 1 }', [100]],
  ['upcase(to_string(.a) + to_string(.b))', [630]],
  ['abort to_string(.a)', [631]],
  ['x = map_values!([.a]) -> |v| { to_int(v) }', [103]],
  ['1 ?? to_int(.a)', [651]],
  ['.x |= to_int(.a)', [652]],
  ['to_int(.a) ?? to_int(.b)', [100]],
  // A path that ends without its last part is a syntax error, not the end of the program.
  ['.a.', [203]],
  ['x = .a.', [203]],
  ['{}.', [203]],
  ['.a[', [203]],
  ['.a[0', [203]],
  ['[1', [204]],
  ['f(.a', [204]],
])('%s is refused with the codes %j', (source, codes) => {
  const compiled = compileProgram(source, { keepResult: true })
  expect(compiled.ok ? [] : compiled.diagnostics.map(({ code }) => code)).toEqual(codes)
})

test.each([
  ['if (x = 1; true) { null }\nx', '1'],
  ['if (x = 1; false) { null }\nx', '1'],
  ['if (x = 1; true) { x = "s" }\nx', '"s"'],
  ['if (x = 1; false) { null } else if (false) { null } else { null }\nx', '1'],
  ['if false { null } else if (x = 5; x < 0) { x } else if (y = 6; y > x) { y } else { 10 }', '6'],
  ['x = if false { null } else { if (y = 7; false) { null }\ny }\nx', '7'],
  ['if false { null } else if (x = 1; true) { null }\nx', 'E701'],
  ['if false { x = 1 } else if (x > 0) { null }', 'E701'],
  ['if (x = 1; true) { if (y = 2; true) { null }\ny = y + 1 }\ny', 'E701'],
])('a variable of a predicate stays in its scope: %s', (source, result) => {
  const compiled = compileProgram(source, { keepResult: true })
  if (!compiled.ok) return expect(compiled.diagnostics.map(({ code }) => `E${code}`)).toEqual([result])
  const given = compiled.program.run({}, noMetadata, true)
  expect(isFailure(given) ? given.message : valueText(given)).toBe(result)
})
