// Filters and matches that join lines: the sources that have their rules.

import { expect, test } from 'vitest'
import { converted, lint } from '../../testing/conversions.ts'
import { convertFluentd } from './convert.ts'

const source = (parse: string, path: string) =>
  `<source>\n  @type tail\n  path ${path}\n  tag k.*\n  <parse>\n    @type ${parse}\n  </parse>\n</source>\n`
const pods = source('cri', '/var/log/containers/*.log')
const concat = (tag: string, start: string) =>
  `<filter ${tag}>\n  @type concat\n  key message\n  multiline_start_regexp ${start}\n</filter>\n`
const end = '<match **>\n  @type stdout\n</match>\n'
const convert = (text: string) => converted(convertFluentd, [{ file: 'fluent.conf', text }])
const missing = (gaps: readonly { isReplaced?: true }[]) => gaps.filter(({ isReplaced }) => isReplaced !== true)
const starts = (sources: readonly { multiline?: { custom: { start: string } } }[]) =>
  sources.map(({ multiline }) => multiline?.custom.start)

test('rules for some of the tags have a source for each, and one for the rest', async () => {
  const text = `${pods}${concat('k.var.log.containers.api-**', '/^a/')}${concat('k.var.log.containers.job-**', '/^b/')}${end}`
  const { document, resource, gaps } = convert(text)
  expect(missing(gaps)).toEqual([])
  expect(gaps.map(({ line }) => line)).toEqual([9, 14])
  expect(starts(resource.spec.sources)).toEqual(['^a', '^b', undefined])
  const conditions = resource.spec.transforms.flatMap(
    ({ config: { condition } }: { config: { condition?: string } }) =>
      condition === undefined ? [] : [condition.split('\n').at(-1)],
  )
  expect(conditions).toEqual([
    expect.stringMatching(/^\(is_object.*api-.*\)$/),
    expect.stringMatching(/^!\(.*api-.*\) && \(is_object.*job-.*\)$/),
    expect.stringMatching(/^!\(.*api-.*\) && !\(.*job-.*\)$/),
  ])
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test('a label that all events reach may contain the rules', () => {
  const label = `<label @L>\n${concat('**', '/^a/')}${end}</label>\n`
  const { resource, gaps } = convert(`${pods}<match **>\n  @type relabel\n  @label @L\n</match>\n${label}`)
  expect(missing(gaps)).toEqual([])
  expect(starts(resource.spec.sources)).toEqual(['^a'])
})

test('a match before the rules takes its events away from them', () => {
  const { resource, gaps } = convert(
    `${pods}<match k.var.log.containers.sys-**>\n  @type null\n</match>\n${concat('**', '/^a/')}${end}`,
  )
  expect(missing(gaps)).toEqual([])
  expect(starts(resource.spec.sources)).toEqual(['^a', undefined])
})

test.each([
  ['a source that parses its lines', source('json', '/srv/*.log'), concat('**', '/^a/')],
  [
    'rules behind a new tag',
    pods,
    `<match k.**>\n  @type rewrite_tag_filter\n  <rule>\n    key stream\n    pattern /(.+)/\n    tag s.$1\n  </rule>\n</match>\n${concat('s.**', '/^a/')}`,
  ],
])('%s gives a gap', (_, start, rules) => {
  const { resource, gaps } = convert(`${start}${rules}${end}`)
  expect(missing(gaps)).toMatchObject([{ subject: 'concat' }])
  expect(starts(resource.spec.sources)).toEqual([undefined])
})

test('rules for a field that the parser does not find have no effect', () => {
  const { gaps } = convert(`${source('nginx', '/srv/*.log')}${concat('**', '/^a/')}${end}`)
  expect(missing(gaps)).toEqual([])
})
