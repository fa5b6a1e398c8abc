// Filebeat reads YAML 1.1, in which more words are booleans.

import { expect, test } from 'vitest'
import { converted } from '../../testing/conversions.ts'
import { convertedCase, corpus } from '../../testing/corpus.ts'
import { convertFilebeat } from './convert.ts'

const words = (text: string, yes: string, no: string) =>
  text.replace(/(?<=: )(true|false)(?=[ ,}]|$)/gm, (word) => (word === 'true' ? yes : no))

const cases = corpus.filter(({ agent, text }) => agent === 'filebeat' && words(text, 'yes', 'no') !== text)

test('the corpus has options that are booleans', () => {
  expect(cases.length).toBeGreaterThan(50)
})

test.each(cases)('other words for booleans mean the same: $about', (given) => {
  const resultOf = (text: string) => {
    const { draft } = convertedCase({ ...given, text })
    const documents = [...draft.agents({ name: 'converted' }), ...draft.documents({ name: 'converted' })]
    return { documents: documents.map(String), gaps: draft.gaps.map(({ line, reason }) => ({ line, reason })) }
  }
  const wanted = resultOf(given.text)
  for (const [yes, no] of [
    ['yes', 'no'],
    ['On', 'OFF'],
  ] as const)
    expect(resultOf(words(given.text, yes, no))).toEqual(wanted)
})

test('in quotes, the words are texts', () => {
  const text =
    'filebeat.inputs:\n- type: filestream\n  id: a\n  paths: [/a.log]\n  fields: { a: yes, b: "yes", c: \'off\', d: off }\n  fields_under_root: yes\noutput.console: {}\n'
  const { resource } = converted(convertFilebeat, [{ file: 'filebeat.yml', text }])
  expect(JSON.stringify(resource.spec.transforms)).toContain(
    JSON.stringify('.a = true\n.b = "yes"\n.c = "off"\n.d = false').slice(1, -1),
  )
})
