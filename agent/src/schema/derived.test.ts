// Files derived from declarations: reference pages, JSON Schema, skeletons and completion. agent/reference contains the exact text for
// the real components; these tests check the rules.
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: placeholders of configurations

import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { expect, test } from 'vitest'
import { describedComponents } from '../cli/pages.ts'
import { type CompletionCommand, completionScript } from '../command-line/completion.ts'
import { globalOptions } from '../config/globals.ts'
import { loadConfigObject } from '../config/load.ts'
import { renderProblems } from '../config/render.ts'
import { testOptions } from '../config/unit-test-shape.ts'
import { components } from '../testing/components.ts'
import { configurationSchema } from './json-schema.ts'
import { componentPage } from './reference.ts'

const described = (type: string) => {
  const found = describedComponents(components.all).find((component) => component.type === type)
  if (found === undefined) throw new Error(`There is no component ${type}.`)
  return found
}

test('a page describes a component completely', async () => {
  await expect(componentPage(described('log_output')).text).toMatchFileSnapshot('testdata/log_output.md')
  await expect(componentPage(described('log_input')).text).toMatchFileSnapshot('testdata/log_input.md')
})

test('a skeleton is a valid configuration', () => {
  const out = described('log_output')
  const result = loadConfigObject(
    {
      sources: { in: { type: 'log_input', ...described('log_input').example } },
      sinks: { out: { type: 'log_output', inputs: ['in'], ...out.example } },
    },
    { components },
  )

  expect(result.ok ? '' : renderProblems(result.problems)).toBe('')
})

const valid = {
  timezone: 'UTC',
  sources: { in: { type: 'old_log_input', port: 80 } },
  transforms: { change: { type: 'change', inputs: ['in'], source: '.' } },
  sinks: {
    out: {
      type: 'log_output',
      inputs: ['change'],
      endpoint: 'http://x',
      encoding: { codec: 'json' },
      auth: { strategy: 'bearer', token: 'x' },
      request: { concurrency: 'adaptive' },
      tls: { ca_path: '/ca.pem' },
    },
  },
  tests: [{ name: 'a', inputs: [{ insert_at: 'change', value: 'x' }], no_outputs_from: ['change'] }],
}

const changed = (change: (config: typeof valid) => void) => {
  const config = structuredClone(valid)
  change(config)
  return config
}

test.each([
  { name: 'everything in order', config: valid, ok: true },
  { name: 'an unknown setting', config: { ...valid, timezon: 'UTC' }, ok: false },
  { name: 'an unknown type', config: changed(({ sources }) => (sources.in.type = 'log_inputt')), ok: false },
  { name: 'a sink as source', config: changed(({ sources }) => (sources.in.type = 'log_output')), ok: false },
  {
    name: 'a missing option',
    config: changed(({ sinks }) => delete (sinks.out as object as { endpoint?: 1 }).endpoint),
    ok: false,
  },
  { name: 'a codec of another sink', config: changed(({ sinks }) => (sinks.out.encoding.codec = 'gelf')), ok: false },
  {
    name: 'a strategy without its secret',
    config: changed(({ sinks }) => (sinks.out.auth.strategy = 'basic')),
    ok: false,
  },
])('the JSON Schema and the loader agree about $name', ({ config, ok }) => {
  const schema = configurationSchema(describedComponents(components.all), globalOptions, testOptions)
  const validate = new Ajv2020({ strict: false }).compile(schema)

  expect(validate(config)).toBe(ok)
  expect(loadConfigObject(config, { components }).ok).toBe(ok)
})

test('the JSON Schema accepts variables in place of values', () => {
  const config = structuredClone(valid) as Record<string, unknown>
  config['sources'] = { in: { type: 'log_input', port: '${PORT}' } }
  config['healthchecks'] = { enabled: '${CHECK:-true}' }
  config['wildcard_matching'] = '$MODE'
  const schema = configurationSchema(describedComponents(components.all), globalOptions, testOptions)
  const validate = new Ajv2020({ strict: false }).compile(schema)

  expect(validate(config)).toBe(true)
  config['wildcard_matching'] = 'MODE'
  expect(validate(config)).toBe(false)
})

const commands: CompletionCommand[] = [
  {
    name: 'list',
    help: "Lists the agent's [types].",
    flags: [
      { name: 'format', short: 'f', help: 'Form.', takesValue: true, values: ['text', 'json'] },
      { name: 'help', help: "It's help.", takesValue: false },
    ],
    words: [],
  },
  { name: 'explain', help: 'Explains.', flags: [], words: ['console', 'filter'] },
]
const root = [{ name: 'config', short: 'c', help: 'Path.', takesValue: true }]

test('completion scripts are valid and offer commands, flags and words', async () => {
  for (const shell of ['bash', 'zsh', 'fish'] as const) {
    await expect(completionScript(shell, 'penstock-agent', root, commands)).toMatchFileSnapshot(
      `testdata/completion.${shell}.txt`,
    )
  }
  const dir = mkdtempSync(join(tmpdir(), 'penstock-completion-'))
  try {
    const script = join(dir, 'completion.bash')
    writeFileSync(script, completionScript('bash', 'penstock-agent', root, commands))
    const complete = (...words: string[]) =>
      execFileSync(
        'bash',
        [
          '-c',
          `source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _penstock_agent; printf '%s\\n' "\${COMPREPLY[@]}"`,
          'bash',
          script,
          'penstock-agent',
          ...words,
        ],
        { encoding: 'utf8', cwd: dir },
      )
        .split('\n')
        .filter((line) => line !== '')

    expect(complete('')).toEqual(['--config', 'list', 'explain'])
    expect(complete('e')).toEqual(['explain'])
    expect(complete('explain', 'c')).toEqual(['console'])
    expect(complete('list', '--f')).toEqual(['--format'])
    expect(complete('list', '--format', 'j')).toEqual(['json'])
  } finally {
    rmSync(dir, { recursive: true })
  }
})
