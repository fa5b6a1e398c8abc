// Parsers for complete lines of a container runtime: the record of a pod's line has the fields that their groups match.

import { expect, test } from 'vitest'
import { converted, lint, withTest } from '../../testing/conversions.ts'
import { convertFluentBit } from './convert.ts'

const section = (kind: string, ...lines: string[]) => `[${kind}]\n${lines.map((line) => `    ${line}\n`).join('')}`
const input = section('INPUT', 'Name tail', 'Tag kube.*', 'Path /var/log/containers/*.log', 'Parser own')
const end = section('OUTPUT', 'Name stdout', 'Match *', 'Format json_lines', 'Json_Date_Key false')
const timed = ['Time_Key time', 'Time_Format %Y-%m-%dT%H:%M:%S.%L%z']
const start = '^(?<time>[^ ]+) (?<stream>stdout|stderr)'
const time = '2026-11-24T10:11:12.25Z'
/** The record without the time of the event. */
const whole = 'timestamp != null && (filter(.) -> |key, _value| { key != "timestamp" })'
const shown = '2026-11-24T10:11:12.250Z'

test.each<[about: string, regex: string, options: readonly string[], message: string, record: object]>([
  ['all parts', `${start} (?<logtag>[FP]) (?<log>.*)$`, timed, 'a b', { stream: 'stderr', logtag: 'F', log: 'a b' }],
  [
    'other names',
    '^(?<t>[^ ]+) (?<out>\\w+) (?<flags>\\w) (?<text>.*)$',
    ['Time_Key t', 'Time_Format %Y-%m-%dT%H:%M:%S.%L%z'],
    'a',
    { out: 'stderr', flags: 'F', text: 'a' },
  ],
  ['a part without a group', `${start} [^ ]* (?<log>.*)$`, timed, 'a', { stream: 'stderr', log: 'a' }],
  [
    'two parts in a group',
    '^(?<time>[^ ]+) (?<stream>\\w+ \\w+) (?<log>.*)$',
    timed,
    'a',
    { stream: 'stderr F', log: 'a' },
  ],
  [
    'a time that is a text',
    `${start} (?<logtag>[FP]) (?<log>.*)$`,
    [],
    'a',
    { time: shown, stream: 'stderr', logtag: 'F', log: 'a' },
  ],
  [
    'a time that it keeps',
    `${start} . (?<log>.*)$`,
    [...timed, 'Time_Keep On'],
    'a',
    { time: shown, stream: 'stderr', log: 'a' },
  ],
  ['no text', `${start} (?<logtag>[FP]) (?<log>.*)$`, timed, '', { stream: 'stderr', logtag: 'F' }],
  [
    'empty texts',
    `${start} (?<logtag>[FP]) (?<log>.*)$`,
    [...timed, 'Skip_Empty_Values Off'],
    '',
    { stream: 'stderr', logtag: 'F', log: '' },
  ],
  ['a name of its own time', '^(?<timestamp>[^ ]+) (?<log>.*)$', [], 'a', { log_timestamp: shown, log: 'stderr F a' }],
  [
    'parts of the text',
    `${start} F (?<level>[A-Z]+) (?<message>.*)$`,
    timed,
    'WARN a b',
    { stream: 'stderr', level: 'WARN', message: 'a b' },
  ],
  ['parts of another text', `${start} F (?<level>[A-Z]+) (?<message>.*)$`, timed, 'a', { log: `${shown} stderr F a` }],
  [
    'parts of few texts',
    `${start} F (?<code>\\d{3}) (?<size>\\d+)$`,
    [...timed, 'Types code:integer'],
    '404 5',
    { stream: 'stderr', code: 404, size: '5' },
  ],
  ['blanks', '^(?<time>.+)\\b(?<stream>stdout|stderr)\\b(?<log>.*)$', timed, 'a', { stream: 'stderr', log: ' F a' }],
])('a parser finds %s in the line of a pod', async (_, regex, options, message, record) => {
  const parser = section('PARSER', 'Name own', 'Format regex', `Regex ${regex}`, ...options)
  const { document, resource, gaps } = converted(convertFluentBit, [{ file: 'fb.conf', text: parser + input + end }])
  expect(gaps).toEqual([])
  const event = { message, stream: 'stderr', timestamp: time, orchestrator: { pod_name: 'web' } }
  withTest(document, resource, event, { [whole]: record })
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test.each([
  ['a line of Docker', '^\\{"log":"(?<log>.*)","stream":"(?<stream>.*)","time"', []],
  ['another line', '^<(?<pri>\\d+)>(?<text>.*)$', ['tail: parser own']],
])('a parser for %s does not read that of containerd', (_, regex, subjects) => {
  const parser = section('PARSER', 'Name own', 'Format regex', `Regex ${regex}`)
  const { gaps } = converted(convertFluentBit, [{ file: 'fb.conf', text: parser + input + end }])
  expect(gaps.map(({ subject }) => subject)).toEqual(subjects)
})

test('the parser cri of Fluent Bit reads files, too', async () => {
  const files = section('INPUT', 'Name tail', 'Tag app', 'Path /srv/*.log', 'Parser cri')
  const { document, resource, gaps } = converted(convertFluentBit, [{ file: 'fb.conf', text: files + end }])
  expect(gaps).toEqual([])
  const expected = { stream: 'stdout', logtag: 'F', message: 'a b', timestamp: '2026-01-02T03:04:05.5Z' }
  withTest(document, resource, { message: '2026-01-02T03:04:05.5Z stdout F a b', timestamp: time }, expected)
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test('the filter multiline joins the field with the text, whatever its name is', () => {
  const parser = section('PARSER', 'Name own', 'Format regex', `Regex ${start} [FP] (?<text>.*)$`, ...timed)
  const filter = section('FILTER', 'Name multiline', 'Match *', 'multiline.parser go', 'multiline.key_content text')
  const { resource, gaps } = converted(convertFluentBit, [{ file: 'fb.conf', text: parser + input + filter + end }])
  expect(gaps.filter(({ isReplaced }) => isReplaced !== true)).toEqual([])
  expect(resource.spec.sources[0]).toHaveProperty('multiline')
})
