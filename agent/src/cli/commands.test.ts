// The commands that examine configurations and declarations: their output and exit codes.
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: placeholders of configurations

import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { parse } from 'yaml'
import { exitCodeOf } from '../command-line/exit-codes.ts'
import { absentSinks, absentSources, absentTransforms, replacedTransforms } from '../config/elsewhere.ts'
import { loadConfig } from '../config/load.ts'
import { errorCodes, PenstockError } from '../errors.ts'
import { components } from '../registry.ts'
import { indexPage } from '../schema/reference.ts'
import { run as buffer } from './buffer.ts'
import { run as completion } from './completion.ts'
import { run as convertConfig } from './convert-config.ts'
import { run as explain } from './explain.ts'
import { run as generate } from './generate.ts'
import { run as generateSchema } from './generate-schema.ts'
import { run as graph } from './graph.ts'
import { run as list } from './list.ts'
import { pageText } from './page-text.ts'
import { referencePages } from './pages.ts'
import { run as remap } from './remap.ts'
import { run as testCommand } from './test.ts'
import { run as validate } from './validate.ts'

let dir = ''
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'penstock-cli-'))
  vi.stubEnv('PENSTOCK_CONFIG', '')
})
afterEach(() => {
  vi.unstubAllEnvs()
  rmSync(dir, { recursive: true, force: true })
})

type Command = (argv: readonly string[]) => Promise<number>

/** Runs a command; turns a thrown error into an exit code and a message, like the process. */
async function called(command: Command, ...argv: string[]) {
  let output = ''
  const write = (text: unknown) => {
    output += text
    return true
  }
  const streams = [
    vi.spyOn(process.stdout, 'write').mockImplementation(write),
    vi.spyOn(process.stderr, 'write').mockImplementation(write),
  ]
  try {
    const code = await command(argv)
    return { code, output: output.replaceAll(dir, 'DIR') }
  } catch (error) {
    if (!(error instanceof PenstockError)) throw error
    return { code: exitCodeOf(error), output: error.message.replaceAll(dir, 'DIR') }
  } finally {
    for (const stream of streams) stream.mockRestore()
  }
}

function file(name: string, text: string): string {
  writeFileSync(join(dir, name), text)
  return join(dir, name)
}

const good = `sources:
  in: {type: demo_logs, format: json}
sinks:
  out: {type: blackhole, inputs: [in]}
`

describe('validate', () => {
  test('says what was loaded, built and checked', async () => {
    const path = file('good.yaml', good)

    expect(await called(validate, path)).toEqual({
      code: 0,
      output: `√ Loaded ["DIR/good.yaml"]
√ Component configuration
${'-'.repeat(path.length + 13)}
${'Validated'.padStart(path.length + 13)}
`,
    })
    expect((await called(validate, '--config', path)).code).toBe(0)
    expect((await called(validate, '--config-dir', dir)).code).toBe(0)
  })

  test('shows every problem, and fails', async () => {
    const path = file('bad.yaml', `${good.replace('blackhole', 'blackhol').replace('[in]', '[inn]')}sink: {}\n`)

    const { code, output } = await called(validate, path)

    expect(code).toBe(78)
    expect(output).toContain('x Failed to load ["DIR/bad.yaml"]\nerror: unknown sink type `blackhol`')
    expect(output).toContain('  --> DIR/bad.yaml:4:15  (sinks.out.type)\n  help: did you mean `blackhole`?\n')
    expect(output).toContain('error: Input "inn" for sink "out" doesn\'t match any components.')
    expect(output).toContain('error: unknown field `sink`')
  })

  test('reports the format of a file whose name shows none', async () => {
    const path = file('agent.conf', good)
    const { code, output } = await called(validate, path)
    expect(code).toBe(78)
    expect(output).toContain(
      '  help: The extension of DIR/agent.conf does not determine a format, so the agent reads it as TOML; `--config-yaml DIR/agent.conf` reads it as YAML.\n',
    )
    expect((await called(validate, '--config-toml', path)).output).not.toContain('does not determine a format')
    expect((await called(validate, '--config-yaml', path)).code).toBe(0)
  })

  test('warnings only fail if they are denied', async () => {
    const path = file('warned.yaml', `${good.replace('sinks:', '  idle: {type: demo_logs, format: json}\nsinks:')}`)

    const { code, output } = await called(validate, path)

    expect(code).toBe(0)
    expect(output).toContain('~ warning: Source "idle" has no consumers\n  --> DIR/warned.yaml:3:3  (sources.idle)\n')
    expect((await called(validate, '--deny-warnings', path)).code).toBe(78)
  })

  test('checks destinations, unless a flag forbids it', async () => {
    const server = createServer((_, response) => response.writeHead(503).end())
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    try {
      const path = file(
        'sink.yaml',
        good.replace(
          '{type: blackhole, inputs: [in]}',
          `{type: log_aggregator, inputs: [in], endpoint: "http://127.0.0.1:${port}", labels: {a: b}, encoding: {codec: text}}`,
        ),
      )

      const { code, output } = await called(validate, path)
      expect(output).toMatch(/√ Component configuration\nx Health check for "out" failed: /)
      expect(code).toBe(78)
      expect((await called(validate, '--skip-healthchecks', path)).code).toBe(0)
      expect((await called(validate, '--no-environment', path)).output).not.toContain('Component configuration')
    } finally {
      server.close()
    }
  })

  test('an unknown flag is a usage error', async () => {
    expect(await called(validate, '--no-enviroment')).toEqual({
      code: 64,
      output: 'There is no flag `--no-enviroment`. Did you mean `--no-environment`?',
    })
  })
})

test('test runs the unit tests and fails with them', async () => {
  const tested = (level: string) =>
    file(
      'tests.yaml',
      `transforms: {up: {type: remap, inputs: [in], source: '.level = upcase(string!(.level))'}}
${good.replace('[in]', '[up]')}tests:
  - name: raises
    inputs: [{insert_at: up, type: log, log_fields: {level: info}}]
    outputs: [{extract_from: up, conditions: ['.level == "${level}"']}]
`,
    )

  expect(await called(testCommand, tested('INFO'))).toEqual({
    code: 0,
    output: 'Running tests\ntest raises ... passed\n',
  })
  const { code, output } = await called(testCommand, tested('info'))
  expect(code).toBe(78)
  expect(output).toContain('test raises ... failed\n\nfailures:\n\ntest raises:\n')
  expect(output).toContain('{"level":"INFO"}')
  expect(await called(testCommand, file('none.yaml', good))).toEqual({ code: 0, output: 'No tests found.\n' })
})

describe('graph', () => {
  const path = () =>
    file('graph.yaml', `${good}  "b \\"c\\"": {type: console, inputs: ["i*"], encoding: {codec: text}}\n`)

  test('dot', async () => {
    expect(await called(graph, path())).toEqual({
      code: 0,
      output: `digraph {
  "in" [shape="trapezium" label="in\\ndemo_logs\\nevents are objects: demo_logs works on objects"]
  "out" [shape="invtrapezium" label="out\\nblackhole\\nevents are objects: in emits objects"]
  "in" -> "out"
  "b \\"c\\"" [shape="invtrapezium" label="b \\"c\\"\\nconsole\\nevents are objects: its codec is \`text\`"]
  "in" -> "b \\"c\\""
}
`,
    })
  })

  test('lines remain bytes from the source to the sink if all components support it; otherwise the reason is shown', async () => {
    const config = `
sources: { in: { type: orchestrator_logs }, again: { type: orchestrator_logs } }
transforms:
  parse: { type: remap, inputs: [in], source: ". = merge(., object!(parse_json!(.message)))" }
  look: { type: remap, inputs: [again], source: ".a = 1\\n.size = length(.)" }
sinks:
  out: { type: http, inputs: [parse], uri: "http://127.0.0.1:1", encoding: { codec: json } }
  other: { type: http, inputs: [look], uri: "http://127.0.0.1:1", encoding: { codec: json } }
`
    const { output } = await called(graph, file('lanes.yaml', config))
    expect(output).toContain('parse\\nremap\\nlines stay bytes')
    expect(output).toContain('in\\norchestrator_logs\\nlines stay bytes')
    expect(output).toContain('out\\nhttp\\nlines stay bytes')
    expect(output).toContain('look\\nremap\\nevents are objects: line 2 of its program reads the event as a whole')
    expect(output).toContain('again\\norchestrator_logs\\nevents are objects: look needs objects')
    expect(output).toContain('other\\nhttp\\nevents are objects: look emits objects')
    const off = await called(graph, file('off.yaml', `remap: { byte_lane: false }\n${config}`))
    expect(off.output).toContain('parse\\nremap\\nevents are objects: `remap.byte_lane` is false')
  })

  test('mermaid', async () => {
    expect((await called(graph, '--format', 'mermaid', path())).output).toBe(`flowchart TD
  n0[/"in<br>demo_logs<br>events are objects: demo_logs works on objects"\\]
  n1[\\"out<br>blackhole<br>events are objects: in emits objects"/]
  n2[\\"b #quot;c#quot;<br>console<br>events are objects: its codec is \`text\`"/]
  n0 --> n1
  n0 --> n2
`)
  })
})

test.each([
  { command: remap, argv: ['.a', '=', '1'], says: 'Unexpected argument "1": expected one program' },
  { command: remap, argv: ['--program', 'file', '.a'], says: 'Unexpected argument ".a"' },
])('unused arguments are refused: $argv', async ({ command, argv, says }) => {
  const { code, output } = await called(command, ...argv)
  expect(code).toBe(64)
  expect(output).toContain(says)
})

test('list names every component', async () => {
  const { output } = await called(list)
  for (const component of components) expect(output).toContain(`  ${component.type}`)

  const json = JSON.parse((await called(list, '--format', 'json')).output) as Record<string, string[]>
  expect(Object.values(json).flat().toSorted()).toEqual(components.map((component) => component.type).toSorted())
})

test('list has a row for each component in machine formats', async () => {
  const rows = JSON.parse((await called(list, '-o', 'json')).output) as object[]
  expect(rows).toHaveLength(components.length)
  expect(rows).toContainEqual(expect.objectContaining({ kind: 'sink', type: 'log_aggregator' }))
  expect(parse((await called(list, '-o', 'yaml')).output)).toEqual(rows)
  const table = (await called(list, '-o', 'table')).output.split('\n')
  expect(table[0]).toMatch(/^KIND +TYPE +PRODUCTS +SUMMARY$/)
  expect(table).toHaveLength(components.length + 2)
})

test.each([
  {
    words: ['sinks'],
    kinds: ['sink'],
    types: components.filter(({ kind }) => kind === 'sink').map(({ type }) => type),
  },
  { words: ['Transform'], kinds: ['transform'], types: ['filter', 'metric_to_log', 'remap', 'tag_cardinality_limit'] },
  { words: ['loki'], kinds: ['sink'], types: ['log_aggregator'] },
  { words: ['new-relic', 'sinks'], kinds: ['sink'], types: ['observability_d'] },
  { words: ['file', 'stdin'], kinds: ['source', 'sink'], types: ['file', 'stdin', 'file'] },
  { words: ['kubernetes_logs'], kinds: ['source'], types: ['orchestrator_logs'] },
])('list $words prints these kinds, types and products only', async ({ words, kinds, types }) => {
  const rows = JSON.parse((await called(list, ...words, '-o', 'json')).output) as { kind: string; type: string }[]
  expect([...new Set(rows.map(({ kind }) => kind))]).toEqual(kinds)
  expect(rows.map(({ type }) => type)).toEqual(types.length > 4 ? types.toSorted() : types)
  const { output } = await called(list, ...words)
  expect(output.match(/^\w+s(?=:$)/gm)).toEqual(kinds.map((kind) => `${kind[0]?.toUpperCase()}${kind.slice(1)}s`))
})

test.each([
  {
    columns: 100,
    lines: ['Sinks:', '  log_aggregator (Grafana Loki)  Delivers log events to a log aggregation system.', ''],
  },
  {
    columns: 40,
    lines: [
      'Sinks:',
      '  log_aggregator (Grafana Loki)',
      '      Delivers log events to a log',
      '      aggregation system.',
      '',
    ],
  },
])('list on a terminal of $columns columns wraps its lines', async ({ columns, lines }) => {
  const { isTTY, columns: before } = process.stdout
  Object.assign(process.stdout, { isTTY: true, columns })
  try {
    expect((await called(list, 'loki')).output.split('\n')).toEqual(lines)
  } finally {
    Object.assign(process.stdout, { isTTY, columns: before })
  }
})

test('list reports a name that no component has', async () => {
  expect(await called(list, 'kafka')).toEqual({
    code: 64,
    output:
      'No component has "kafka" in its type or products. `penstock-agent explain kafka` names a replacement if another agent has one.',
  })
})

test('explain prints the page of a component, an alias, a metric and an error code', async () => {
  expect((await called(explain, 'console')).output).toMatch(/^# console\n\nSink\. /)
  expect((await called(explain, 'loki')).output).toMatch(/^# log_aggregator\n/)
  expect((await called(explain, 'component_errors_total')).output).toMatch(
    /^# component_errors_total\n\nMetric, counter/,
  )
  for (const code of Object.keys(errorCodes)) expect((await called(explain, code)).code).toBe(0)
  for (const code of ['E103', '103'])
    expect((await called(explain, code)).output).toMatch(/^# E103\n\nError code of remap programs\. /)
  expect(await called(explain, 'consol')).toEqual({
    code: 64,
    output: 'Nothing is named "consol". Did you mean "console"?',
  })
  // Half of the letters would have to change to give `now` or `get`, so they are not suggested.
  for (const name of ['nope', 'agent'])
    expect(await called(explain, name)).toEqual({
      code: 64,
      output: `Nothing is named "${name}". \`penstock-agent list\` prints the components; \`penstock explain\` also describes Kubernetes resources.`,
    })
})

test('explain describes an option with the components that have it', async () => {
  expect(await called(explain, 'buffer')).toEqual({
    code: 0,
    output: expect.stringMatching(
      /^Option of all sinks:\n\n- `buffer` \(table\): .*\n {2}- `type` \(one of `memory`, `disk`, /,
    ),
  })
  const { output } = await called(explain, 'read_from')
  expect(output.match(/^Option of .*:$/gm)).toEqual([
    'Option of file (source), orchestrator_logs (source):',
    'Option of orchestrator_events (source):',
  ])
  // Each component describes its own.
  expect((await called(explain, 'endpoint')).output).toMatch(
    /^Components with an option `endpoint`: .*log_aggregator \(sink\).*\.\n\nName one of them to see its page\.\n$/,
  )
})

test('explain names the counterparts of components of other agents', async () => {
  // By spelling alone, the nearest functions would be `redact`, `round` and `to_string`.
  expect(await called(explain, 'reduce')).toEqual({
    code: 0,
    output: `Penstock has no component named reduce. Other agents do; Penstock replaces it as follows:

reduce  (transform)
  A transform processes one event at a time. Join lines with \`multiline\` of the source.
`,
  })
  expect((await called(explain, 'route')).output).toContain('Use a `filter` for each route, and one for `_unmatched`.')
  expect((await called(explain, 'S3')).output).toContain('There is no sink for object stores.')
  expect((await called(explain, 'otlp')).output).toMatch(/^opentelemetry {2}\(sink\)$/m)
  for (const [name, counterpart] of [
    ['Amazon S3', 'aws_s3'],
    ['Google Cloud Logging', 'gcp_stackdriver_logs'],
    ['EventHubs', 'azure_event_hubs'],
    ['postgresql', 'postgres'],
  ] as const)
    expect((await called(explain, name)).output).toMatch(new RegExp(`^${counterpart} {2}\\(sink\\)$`, 'm'))
  for (const name of ['Dynatrace', 'Sumo Logic', 'sumo', 'gelf'])
    expect(await called(explain, name)).toEqual({
      code: 0,
      output: `Penstock has no component for ${name}. Use the sink \`http\` with the address of its API, and matching \`framing\` and \`encoding\`.\n`,
    })
  const absent = [...absentSources, ...absentTransforms, ...absentSinks].map((each) => each.name)
  const own = new Set(referencePages().flatMap((page) => page.names))
  for (const name of [...absent, ...Object.keys(replacedTransforms)])
    if (!own.has(name)) expect((await called(explain, name)).output).toMatch(new RegExp(`^${name} {2}\\(`, 'm'))
})

test('pages of explain have no links that do not work in a terminal', async () => {
  for (const page of referencePages()) {
    const text = pageText(page.text, { color: false })
    expect(text.replace(/^```.*?^```$/gms, '').replace(/`[^`\n]*`/g, ''), page.file).not.toMatch(/\]\(/)
  }
  expect((await called(explain, 'language')).output).toContain(
    '- Failures (explain fallibility): which expressions can fail',
  )
})

test('every product is in list and in the index, and explain finds it', async () => {
  const { output } = await called(list)
  const index = indexPage(referencePages())
  const known = components.flatMap(({ type, products = [] }) => products.map((product) => ({ type, product })))
  expect(known.length).toBeGreaterThan(15)
  for (const { type, product } of known) {
    expect(output.split('\n').find((line) => line.includes(`  ${type} (`))).toContain(product)
    expect(index.split('\n').find((line) => line.includes(`[${type}]`))).toContain(product)
    const joined = ['', '-', '_'].map((separator) => product.replaceAll(' ', separator))
    for (const word of [product, product.toUpperCase(), ...product.split(' '), ...joined]) {
      const explained = await called(explain, word)
      expect([explained.code, explained.output]).toEqual([0, expect.stringContaining(type)])
    }
  }
  expect((await called(explain, 'datadog')).output).toMatch(
    /^Components for datadog:\n {2}monitor_a_logs .*\n {2}monitor_a_metrics /,
  )
})

describe('generate', () => {
  test('a skeleton can be loaded', async () => {
    const path = join(dir, 'made.yaml')
    expect((await called(generate, 'demo_logs,mine:stdin//console,blackhole', '--fragment', '--file', path)).code).toBe(
      0,
    )

    expect(parse(readFileSync(path, 'utf8'))).toMatchObject({
      sources: { source0: { type: 'demo_logs' }, mine: { type: 'stdin' } },
      sinks: { sink0: { type: 'console', inputs: ['source0', 'mine'] }, sink1: { type: 'blackhole' } },
    })
    expect((await loadConfig({ paths: [path] })).ok).toBe(true)
    // Existing files are never overwritten.
    expect(await called(generate, 'stdin//console', '--file', path)).toEqual({
      code: 73,
      output: '"DIR/made.yaml" cannot be created: it exists already.',
    })
  })

  test('a skeleton contains a data directory only if a component stores positions', async () => {
    expect(parse((await called(generate, 'demo_logs/remap,filter/console')).output)).not.toHaveProperty('data_dir')
    expect(parse((await called(generate, 'file//console')).output)).toHaveProperty('data_dir', '/var/lib/penstock/')
    const made = file('runs.yaml', (await called(generate, 'demo_logs/remap,filter/console')).output)
    expect((await loadConfig({ paths: [made] })).ok).toBe(true)
  })

  test.each(components)('the skeleton of the $kind $type is valid', async (component) => {
    const { kind, type } = component
    const input = kind !== 'source' && !component.accepts.includes('log') ? 'internal_metrics' : 'demo_logs'
    const expression = {
      source: `${type}//blackhole`,
      transform: `${input}/${type}/blackhole`,
      sink: `${input}//${type}`,
    }
    const { output } = await called(generate, '--fragment', expression[kind])
    const result = await loadConfig({ paths: [file('made.yaml', output)], checkMachine: false })

    expect(result.ok ? [] : result.problems).toEqual([])
  })

  test.each([
    {
      argv: ['console'],
      output: 'There is no source of type "console". It is a sink; for no transforms, leave the part empty',
    },
    { argv: ['stdin//consol'], output: 'There is no sink of type "consol". Did you mean "console"?' },
    { argv: ['a/b/c/d'], output: '"a/b/c/d" has more than three parts' },
    { argv: [], output: 'Give one of: types, such as stdin/remap/console; --schema; --from PATH.' },
  ])('$argv: $output', async ({ argv, output }) => {
    const result = await called(generate, ...argv)
    expect(result.code).toBe(64)
    expect(result.output).toContain(output)
  })

  test('the schema describes the whole configuration', async () => {
    const schema = JSON.parse((await called(generateSchema)).output) as Record<string, object>
    expect(schema['$schema']).toBe('https://json-schema.org/draft/2020-12/schema')
    expect(Object.keys(schema['$defs'] ?? {})).toContain('sink_console')
  })

  test('a configuration converted to another syntax has the same meaning', async () => {
    const text = `${good.replace('json', '"${FORMAT}"')}timezone: UTC\n`
    const from = file('from.yaml', text)
    const env = { FORMAT: 'json' }
    const before = await loadConfig({ paths: [from], env })

    for (const name of ['to.toml', 'to.json', 'to.yaml']) {
      const to = join(dir, name)
      expect((await called(convertConfig, from, to)).code).toBe(0)
      expect(existsSync(to)).toBe(true)
      expect(readFileSync(to, 'utf8')).toContain('${FORMAT}')
      const after = await loadConfig({ paths: [to], env })
      expect(after.ok && after.config.sources.get('in')?.fingerprint).toBe(
        before.ok && before.config.sources.get('in')?.fingerprint,
      )
    }
    expect(await called(convertConfig, file('broken.json', '{"a": }'))).toEqual({
      code: 78,
      output: 'DIR/broken.json:1:7: not valid JSON: expected a value, found `}`',
    })
  })
})

test.each([
  { command: remap, argv: ['--input', 'gone.json', '.a = 1'], reason: 'no such file or directory' },
  { command: remap, argv: ['--input', '.', '.a = 1'], reason: 'it is a folder' },
  { command: remap, argv: ['--input', 'gone.json'], reason: 'no such file or directory' },
  { command: remap, argv: ['--program', 'gone.remap'], reason: 'no such file or directory' },
  { command: remap, argv: ['--program', '.'], reason: 'it is a folder' },
  { command: validate, argv: ['gone.yaml'], reason: 'no such file or directory' },
  { command: generate, argv: ['--from', 'gone.yaml'], reason: 'no such file or directory' },
  { command: generate, argv: ['stdin//console', '--file', 'gone/a.yaml'], reason: 'no such file or directory' },
  { command: buffer, argv: ['inspect', 'gone'], reason: 'no such file or directory' },
])('$command.name $argv names the path and says $reason', async ({ command, argv, reason }) => {
  const path = argv.find((word) => word.startsWith('gone')) ?? '.'
  const { code, output } = await called(command, ...argv.map((word) => (word === path ? join(dir, path) : word)))
  expect(code).not.toBe(0)
  expect(output).toContain(join('DIR', path))
  expect(output).toContain(reason)
  expect(output).not.toMatch(/\bE[A-Z]{4,}\b|syscall|\bscandir\b/)
})

test.each(['bash', 'zsh', 'fish'])('completion for %s knows commands, flags and components', async (shell) => {
  const { code, output } = await called(completion, shell)
  expect(code).toBe(0)
  const words = [
    'validate',
    'no-environment',
    'log_aggregator',
    'config-dir',
    'require-healthy',
    'outputs-of',
    'human-metrics',
  ]
  for (const word of words) expect(output).toContain(word)
})
