// Records of the input `tail`, for combinations of options that Fluent Bit resolves in its own way.

import { expect, test } from 'vitest'
import { converted, lint, withTest } from '../../testing/conversions.ts'
import { convertFluentBit } from './convert.ts'

const section = (kind: string, ...lines: string[]) => `[${kind}]\n${lines.map((line) => `    ${line}\n`).join('')}`
const end = section('OUTPUT', 'Name stdout', 'Match *', 'Format json_lines', 'Json_Date_Key false')
const files = (...lines: string[]) => section('INPUT', 'Name tail', 'Tag app', 'Path /srv/*.log', ...lines)
const pods = (...lines: string[]) =>
  section('INPUT', 'Name tail', 'Tag kube.*', 'Path /var/log/containers/*.log', ...lines)
const own = (...lines: string[]) =>
  section(
    'MULTILINE_PARSER',
    'Name own',
    'Type regex',
    ...lines,
    'Rule "start_state" "/^a/" "c"',
    'Rule "c" "/^b/" "c"',
  )

test('a parser does not read lines that multiline.parser joins', async () => {
  const text = files('multiline.parser ruby', 'Parser json') + end
  const { document, resource, gaps } = converted(convertFluentBit, [{ file: 'fb.conf', text }])
  expect(gaps).toMatchObject([{ subject: 'tail: parser json', isReplaced: true }])
  withTest(document, resource, { message: '{"a":1}' }, { log: '{"a":1}' })
  expect(await lint(String(document))).toEqual([])
})

test.each([
  [files('multiline.parser docker, cri'), ['multiline.parser docker', 'multiline.parser cri']],
  [files('Docker_Mode On'), ['docker_mode']],
  [own('Parser json', 'Key_Content text') + files('multiline.parser own'), ['multiline_parser own: parser']],
  [
    own('Parser json') + pods('multiline.parser own'),
    ['multiline_parser own: parser', 'tail: no parser of the runtime'],
  ],
  [own('Key_Content log') + files('multiline.parser own'), []],
])('lines that a source cannot join are gaps: %#', (text, subjects) => {
  const { gaps } = converted(convertFluentBit, [{ file: 'fb.conf', text: text + end }])
  expect(gaps.filter(({ isReplaced }) => isReplaced !== true).map(({ subject }) => subject)).toEqual(subjects)
})

test('rules that read the text of the runtime apply to the lines of pods', () => {
  const text = own('Parser cri', 'Key_Content log') + pods('multiline.parser cri, own') + end
  const { resource, gaps } = converted(convertFluentBit, [{ file: 'fb.conf', text }])
  expect(resource.spec.sources).toMatchObject([{ multiline: { custom: { start: '(?m)^a' } } }])
  expect(gaps).toMatchObject([
    { subject: 'multiline.parser own', reason: expect.stringContaining('first parser'), isReplaced: true },
  ])
})

test.each([
  ['/srv/*.log', '*.gz, /srv/old*.log', ['/**/*.gz', '/srv/old*.log']],
  ['/srv/**/*.log', '/srv/*debug*', ['/srv/{*,*/**/*}debug{*,*/**/*}']],
])('an asterisk matches names in %s, and also folders in %s', (path, excluded, exclude) => {
  const text = section('INPUT', 'Name tail', `Path ${path}`, `Exclude_Path ${excluded}`) + end
  const { resource } = converted(convertFluentBit, [{ file: 'fb.conf', text }])
  expect(resource.spec.sources).toMatchObject([{ config: { include: [path.replace('**', '*')], exclude } }])
})

test.each([
  ['/var/log/containers/*.log', '*_kube-system_*', 'kube-system', 0],
  ['/var/log/containers/*.log', '*_kube-system_*', 'shop', 1],
  ['/var/log/pods/*/*/*.log', '*/kube-system_*', 'kube-system', 0],
])(
  'a pattern without a folder applies to the paths of %s: %s, namespace %s',
  async (path, excluded, namespace, count) => {
    const input = section('INPUT', 'Name tail', `Path ${path}`, 'Parser cri', `Exclude_Path ${excluded}`)
    const { document, resource } = converted(convertFluentBit, [{ file: 'fb.conf', text: input + end }])
    const orchestrator = {
      pod_name: 'a',
      pod_namespace: namespace,
      container_name: 'c',
      container_id: 'containerd://1',
    }
    const event = { message: 'x', stream: 'stdout', file: `/var/log/pods/${namespace}_a_1/c/0.log`, orchestrator }
    withTest(document, resource, event, count === 0 ? undefined : { message: 'x' })
    expect(await lint(String(document))).toEqual([])
  },
)

test.each([
  ['8MB', 8_000_000],
  ['64k', undefined],
])('lines of files may be as long as Buffer_Max_Size %s', (size, max_line_bytes) => {
  const { resource, gaps } = converted(convertFluentBit, [
    { file: 'fb.conf', text: files(`Buffer_Max_Size ${size}`) + end },
  ])
  expect(resource.spec.sources[0].config.max_line_bytes).toBe(max_line_bytes)
  expect(gaps).toEqual([])
})

test('lines that Fluent Bit does not skip are skipped, which is reported', () => {
  const { gaps } = converted(convertFluentBit, [{ file: 'fb.conf', text: files('Skip_Long_Lines Off') + end }])
  expect(gaps).toMatchObject([{ subject: 'tail: skip_long_lines', isReplaced: true }])
})

test('lines of pods that multiline.parser reads have its fields, also with a parser', async () => {
  const text = pods('Parser cri', 'multiline.parser cri') + end
  const { document, resource, gaps } = converted(convertFluentBit, [{ file: 'fb.conf', text }])
  expect(gaps).toMatchObject([{ subject: 'tail: parser cri', isReplaced: true }])
  const event = { message: 'x', stream: 'stdout', timestamp: '2026-01-01T00:00:00Z', orchestrator: {} }
  const record = { log: 'x', stream: 'stdout', _p: 'F', time: '2026-01-01T00:00:00Z' }
  withTest(document, resource, event, record)
  expect(await lint(String(document))).toEqual([])
})

test('fields of all lines of an event stay, also those with types', async () => {
  const parsers = [
    section('PARSER', 'Name first', 'Format regex', 'Regex ^# (?<user>\\S+) (?<query>.*)$'),
    section('PARSER', 'Name more', 'Format regex', 'Regex ^rows=(?<rows>\\d+)$', 'Types rows:integer'),
  ].join('')
  const text = parsers + files('Multiline On', 'Parser_Firstline first', 'Parser_1 more') + end
  const { document, resource } = converted(convertFluentBit, [{ file: 'fb.conf', text }])
  const record = { user: 'bob', query: 'select 1\nlimit 2', rows: 12 }
  withTest(document, resource, { message: '# bob select 1\nrows=12\nlimit 2' }, record)
  expect(await lint(String(document))).toEqual([])
})
