// Tasks of the stream processor: which records arrive at the outputs.

import { expect, test } from 'vitest'
import { converted, lint } from '../../testing/conversions.ts'
import { Draft } from '../draft.ts'
import { convertFluentBit } from './convert.ts'

const input = (more: string) => `[INPUT]\n    Name tail\n    Path /srv/a.log\n    Parser json\n    ${more}\n`
const output = (name: string, match: string) => `[OUTPUT]\n    Name null\n    Alias ${name}\n    Match ${match}\n`
const filter = '[FILTER]\n    Name modify\n    Match errors\n    Add seen yes\n'
const task = (exec: string) => `[STREAM_TASK]\n    Name t\n    Exec ${exec}\n`
const create = "CREATE STREAM errors WITH (tag='errors') AS SELECT"

test.each([
  [
    input('Tag app'),
    task(`${create} n FROM TAG:'app' WHERE level = 'error';`),
    '.n == 1 && .seen == "yes" && !exists(.level)',
  ],
  [input('Tag app\n    Alias web'), task(`${create} * FROM STREAM:web WHERE n = 1;`), '.n == 1 && .level == "error"'],
  [input('Tag app'), task(`${create} * FROM STREAM:tail.0;`), '.n == 1'],
  [input('Tag app'), task('CREATE STREAM errors AS SELECT * FROM TAG:app;'), '.n == 1'],
  [
    input('Tag app'),
    task("CREATE STREAM all WITH (tag='all') AS SELECT * FROM TAG:'a*';") +
      task(`${create} * FROM STREAM:all WHERE n = 1;`),
    '.n == 1',
  ],
])('results start again with their tag: %#', async (from, tasks, assert) => {
  const text = `${from}${filter}${tasks}${output('all', 'app')}${output('some', 'errors')}`
  const { document, resource, gaps } = converted(convertFluentBit, [{ file: 'fb.conf', text }])
  expect(gaps).toEqual([])
  const log = { message: '{"n":1,"level":"error"}' }
  const ends = new Map(
    resource.spec.sinks.map(({ name, inputs }: { name: string; inputs: string[] }) => [name, inputs[0]]),
  )
  const [{ name: insertAt }] = resource.spec.transforms
  const expected = [
    { at: ends.get('some'), assert },
    { at: ends.get('all'), assert: '.n == 1 && .level == "error" && !exists(.seen)' },
  ]
  document.setIn(['spec', 'tests'], [{ name: 'a', insertAt, input: { log }, expect: expected }])
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test('tasks of files that the service names, and of the YAML syntax', () => {
  const draft = new Draft()
  const text = `[SERVICE]\n    Streams_File streams.conf\n${input('Tag app')}${output('some', 'errors')}`
  const included = (path: string) =>
    path === 'streams.conf' ? [{ file: path, text: task(`${create} * FROM TAG:app;`) }] : []
  convertFluentBit([{ file: 'fb.conf', text }], included, draft)
  expect(draft.gaps.filter(({ isReplaced }) => isReplaced !== true)).toEqual([])
  expect(draft.document({ name: 'x' }).toJSON().spec.sinks).toMatchObject([{ name: 'some' }])
  const yaml = `stream_processor:\n  - name: t\n    exec: "${create} * FROM TAG:'app';"\npipeline:\n  inputs:\n    - name: tail\n      path: /srv/a.log\n      tag: app\n  outputs:\n    - name: null\n      match: errors\n`
  const { gaps, resource } = converted(convertFluentBit, [{ file: 'fb.yaml', text: yaml }])
  expect(gaps).toEqual([])
  expect(resource.spec.sinks).toMatchObject([{ type: 'blackhole' }])
})

test.each([
  [`${create} COUNT(*) FROM TAG:'app' WINDOW TUMBLING (5 SECOND);`, 'stream task t', false],
  [`${create} * FROM STREAM:none;`, 'stream task t', false],
  ['SELECT * FROM TAG:app;', 'stream task t', true],
])('a task without a counterpart is reported: %s', (exec, subject, isReplaced) => {
  const text = `${input('Tag app')}${task(exec)}${output('all', 'app')}`
  const { gaps } = converted(convertFluentBit, [{ file: 'fb.conf', text }])
  expect(gaps).toMatchObject([isReplaced ? { subject, line: 6, isReplaced } : { subject, line: 6 }])
})
