// Routes of the YAML syntax: the records that arrive at each output.

import { expect, test } from 'vitest'
import { converted, lint } from '../../testing/conversions.ts'
import { convertFluentBit } from './convert.ts'

const output = (alias: string, more = '') => `    - name: 'null'\n      alias: ${alias}\n${more}`
const configuration = (routes: string, outputs: string, filters = '') => `parsers:
  - name: lines
    format: json
pipeline:
  inputs:
    - name: tail
      path: /srv/a.log
      tag: app.web
      parser: lines
      processors:
        logs:
          - name: content_modifier
            action: upsert
            key: seen
            value: first
      routes:
${routes.replace(/^(?=.)/gm, '        ')}
${filters === '' ? '' : `  filters:\n${filters}`}  outputs:
${outputs}`

const levels = `logs:
  - name: errors
    condition:
      op: or
      rules:
        - field: "$level"
          op: eq
          value: error
        - field: "$level"
          op: eq
          value: fatal
    to:
      outputs: [pager, search]
  - name: slow
    condition:
      rules:
        - { field: "$took", op: gt, value: 500 }
        - { field: "$env['name']", op: regex, value: ^prod }
    to:
      outputs:
        - name: search
          fallback: rest
  - name: others
    condition: { default: true }
    to: { outputs: rest }
`
const three = output('pager') + output('search') + output('rest')

/** Numbers of records that arrive at each output, for a line. */
async function arrivals(text: string, message: string, expected: Readonly<Record<string, number>>) {
  const { document, resource, gaps } = converted(convertFluentBit, [{ file: 'fb.yaml', text }])
  for (const [index, { inputs, name }] of resource.spec.sinks.entries()) {
    document.addIn(
      ['spec', 'transforms'],
      document.createNode({ name: `at-${name}`, type: 'remap', inputs, config: { source: '.' } }),
    )
    document.setIn(['spec', 'sinks', index, 'inputs'], [`at-${name}`])
  }
  const expect_ = Object.entries(expected).map(([name, count]) => ({ at: `at-${name}`, count }))
  const insertAt = resource.spec.transforms[0].name
  document.setIn(['spec', 'tests'], [{ name: 'a', insertAt, input: { log: { message } }, expect: expect_ }])
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
  return gaps
}

test.each([
  ['{"level":"error"}', { pager: 1, search: 1, rest: 0 }],
  ['{"level":"error","took":900,"env":{"name":"prod-1"}}', { pager: 1, search: 2, rest: 0 }],
  ['{"level":"info","took":900,"env":{"name":"prod-1"}}', { pager: 0, search: 1, rest: 0 }],
  ['{"level":"info","took":900,"env":{"name":"dev"}}', { pager: 0, search: 0, rest: 1 }],
  ['{"level":"info","took":20}', { pager: 0, search: 0, rest: 1 }],
])('each route whose condition a record meets takes it, or the default one: %s', async (message, expected) => {
  const gaps = await arrivals(configuration(levels, three), message, expected)
  expect(gaps).toMatchObject([{ subject: 'route slow: fallback', isReplaced: true }])
})

test('outputs of other records keep their pattern, and those of routes with a condition lose it', async () => {
  const routes = `logs:
  - name: errors
    condition: { rules: [{ field: "$level", op: eq, value: error }] }
    to: { outputs: [pager] }
metrics:
  - name: all
    to: { outputs: [pager] }
`
  const match = "      match: 'app.*'\n"
  const text = configuration(routes, output('pager', match) + output('rest', match))
  await arrivals(text, '{"level":"error"}', { pager: 1, rest: 1 })
  const gaps = await arrivals(text, '{"level":"info"}', { pager: 0, rest: 1 })
  expect(gaps).toMatchObject([{ subject: 'tail: routes of metrics', isReplaced: true }])
})

test('a route without a condition takes all records', async () => {
  const text = configuration('logs:\n  - name: all\n    to: { outputs: [rest] }\n', three)
  const gaps = await arrivals(text.replace(output('pager') + output('search'), ''), '{}', { rest: 1 })
  expect(gaps).toEqual([])
})

test('a filter applies to the records of a route if it matches its name', async () => {
  const filter = (match: string) => `    - name: grep\n      match: ${match}\n      exclude: seen first\n`
  const routes = 'logs:\n  - name: errors\n    condition: { default: true }\n    to: { outputs: [rest] }\n'
  const run = (match: string, rest: number) =>
    arrivals(configuration(routes, output('rest'), filter(match)), '{}', { rest })
  expect(await run("'*'", 0)).toEqual([])
  expect(await run('err*', 0)).toEqual([])
  expect(await run('app.*', 1)).toMatchObject([{ subject: 'filter grep', isReplaced: true }])
})

test('processors of a route apply to its records', async () => {
  const routes = `logs:
  - name: errors
    condition: { default: true }
    processors:
      - name: grep
        exclude: seen first
    to: { outputs: [rest] }
`
  expect(await arrivals(configuration(routes, output('rest')), '{}', { rest: 0 })).toEqual([])
})

test.each([
  ['    condition: { default: true }\n    to: { outputs: [none] }\n', 'route r: none'],
  [
    '    condition: { rules: [{ field: "$a", op: like, value: b }] }\n    to: { outputs: [rest] }\n',
    'routes: condition',
  ],
])('an unknown output or rule of a route is a gap: %#', (route, subject) => {
  const text = configuration(`logs:\n  - name: r\n${route}`, output('rest', "      match: '*'\n"))
  const { gaps } = converted(convertFluentBit, [{ file: 'fb.yaml', text }])
  expect(gaps).toMatchObject([{ subject, line: expect.any(Number) }])
})
