import { expect, test } from 'vitest'
import { noMetadata } from '../event/log.ts'
import { setField, type ValueObject } from '../event/value.ts'
import { fieldLiteral, textLiteral } from './literal.ts'
import { compileProgram } from './program.ts'

const texts = [
  '',
  'plain',
  '"',
  '\\',
  '{{ host }}',
  '\\{{',
  '}}',
  '{',
  'a\nb\t\u0000\u001f',
  'é😀',
  "s'x'",
  '%{DATA}',
  '#',
]

function resultOf(source: string, event: ValueObject = {}): unknown {
  const compiled = compileProgram(source, { keepResult: true })
  if (!compiled.ok) throw new Error(compiled.rendered)
  return compiled.program.run(event, noMetadata, true)
}

test.each(texts)('the literal of %j gives the text', (text) => {
  expect(resultOf(textLiteral(text))).toBe(text)
})

test.each(texts)('the path of a field %j reads it', (text) => {
  const event: ValueObject = {}
  const below: ValueObject = {}
  setField(below, text, 'found')
  setField(event, text, below)
  expect(resultOf(fieldLiteral([text, text]), event)).toBe('found')
})
