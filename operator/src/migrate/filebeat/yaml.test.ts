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

test('keys of a map take precedence over merged ones, and earlier merged maps over later ones', () => {
  const configOf = (input: string) => `x-app: &app
  tags: [app]
  fields: { team: a }
x-web: &web
  tags: [web]
  exclude_lines: [debug]
filebeat.inputs:
  - ${input}
output.elasticsearch.hosts: ['http://search:9200']
`
  const merged = (keys: string) => {
    const text = configOf(`{ type: filestream, id: web, paths: [/var/log/web.log], ${keys} }`)
    return JSON.stringify(converted(convertFilebeat, [{ file: 'filebeat.yml', text }]).resource.spec)
  }
  const plain = merged('tags: [own], fields: { team: a }, exclude_lines: [debug]')
  expect(merged('tags: [own], <<: [*app, *web]')).toBe(plain)
  expect(merged('<<: [*app, *web], tags: [own]')).toBe(plain)
  expect(merged('<<: [*app, *web]')).toBe(plain.replaceAll('own', 'app'))
})
