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
