import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { stripVTControlCharacters } from 'node:util'
import { version } from '@penstock/agent/program'
import { Ajv } from 'ajv'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { parse } from 'yaml'

const main = fileURLToPath(new URL('../main.ts', import.meta.url))
let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'penstock-reports-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

const penstock = (args: readonly string[], input = '') => {
  const result = spawnSync(process.execPath, ['--conditions=source', main, ...args], {
    cwd: folder,
    input,
    encoding: 'utf8',
  })
  return { code: result.status, out: result.stdout, err: result.stderr }
}

const pipeline = (name: string, source: string, expected = 'true') => `apiVersion: penstock.dev/v1alpha1
kind: Pipeline
metadata: { name: ${name}, namespace: shop }
spec:
  sources: [{ name: app, type: orchestrator_logs }]
  transforms:
    - name: parse
      type: remap
      config:
        source: |
          ${source}
  sinks: [{ name: out, type: blackhole, config: {} }]
  tests:
    - name: marks "all" & <more>
      insertAt: parse
      input: { log: { message: hi } }
      expect: [{ at: parse, assert: .mark == ${expected} }]
`

test('each error of a program has its own line of the file, in text and SARIF', () => {
  const program = ['# first', '.a = parse_json(.message)', '', '  .b = upcas(.c)'].join('\n          ')
  writeFileSync(join(folder, 'p.yaml'), pipeline('wrong', program))
  expect(penstock(['lint', 'p.yaml']).err).toContain('--> p.yaml:12:16  (spec.transforms[0].config.source)')
  const { results } = JSON.parse(penstock(['lint', 'p.yaml', '-o', 'sarif']).out).runs[0]
  const shown = results.map(
    (result: { locations: [{ physicalLocation: { region: object } }]; message: { text: string } }) => [
      result.locations[0].physicalLocation.region,
      [...result.message.text.matchAll(/error\[(E\d+)\]/g)].map(([, code]) => code),
    ],
  )
  expect(shown).toEqual([
    [{ startLine: 12, startColumn: 16 }, ['E103']],
    [{ startLine: 14, startColumn: 18 }, ['E105']],
  ])
})

test('errors in a quoted or folded program are reported at their place, or at its option', () => {
  const file = join(folder, 'q.yaml')
  const as = (source: string) => {
    writeFileSync(file, pipeline('wrong', '').replace(/source: \|\n\s*\n/, `source: ${source}\n`))
    return /q\.yaml:\d+:\d+/.exec(penstock(['lint', 'q.yaml']).err)?.[0]
  }
  expect(as(`'.a = parse_json(.message)'`)).toBe('q.yaml:10:23')
  expect(as(`.a = parse_json(.message)`)).toBe('q.yaml:10:22')
  expect(as(`>\n          .x = 1;\n          .a = parse_json(.message)`)).toBe('q.yaml:10:9')
})

test('lint warns if an alias changes the names of fields', () => {
  const file = join(folder, 'alias.yaml')
  writeFileSync(file, pipeline('known', '.mark = true').replace('orchestrator_logs', 'kubernetes_logs'))
  const { code, err, out } = penstock(['lint', file])
  expect([code, out]).toEqual([0, `1 Pipeline in ${file}: no errors, 1 warning.\n`])
  expect(err).toContain(
    'warning: `kubernetes_logs` is read as `orchestrator_logs`: it writes pod metadata to `.orchestrator`',
  )
  expect(err).toContain(':5:26  (spec.sources[0].type)')
  writeFileSync(file, pipeline('known', '.mark = true'))
  expect(penstock(['lint', file]).err).toBe('')
})

test('init writes a Pipeline that lint and test accept, and overwrites no file', () => {
  const made = penstock(['init', '--name', 'shop', '-n', 'team'])
  expect([made.code, made.err]).toEqual([0, ''])
  expect(made.out).toContain('penstock run pipeline.yaml')
  const fine = { code: 0, out: '1 Pipeline in pipeline.yaml: no problems.\n', err: '' }
  expect(penstock(['lint', 'pipeline.yaml'])).toEqual(fine)
  expect(penstock(['test', 'pipeline.yaml']).code).toBe(0)
  const text = readFileSync(join(folder, 'pipeline.yaml'), 'utf8')
  expect(text).toContain('name: shop\n  namespace: team\n')

  const again = penstock(['init'])
  expect([again.code, again.out]).toEqual([73, ''])
  expect(again.err).toContain('"pipeline.yaml" cannot be created: it exists already.')
  expect(penstock(['init', 'new/one.yaml']).err).toBe('"new/one.yaml" cannot be created: there is no folder "new".\n')
  expect(readFileSync(join(folder, 'pipeline.yaml'), 'utf8')).toBe(text)
})

test('init writes the schema for editors next to the Pipeline that names it', () => {
  mkdirSync(join(folder, 'edited'))
  expect(penstock(['init', 'edited/first.yaml', '--schema'])).toMatchObject({ code: 0, err: '' })
  const text = readFileSync(join(folder, 'edited/first.yaml'), 'utf8')
  const [, name = ''] = /^# yaml-language-server: \$schema=(.+)$/m.exec(text) ?? []
  const schema = readFileSync(join(folder, 'edited', name), 'utf8')
  expect(schema).toBe(penstock(['explain', '--schema']).out)
  expect(schema).toBe(readFileSync(join(import.meta.dirname, '../../reference/schema.json'), 'utf8'))
  const validate = new Ajv({ strict: false }).compile(JSON.parse(schema))
  expect(validate(parse(text)), JSON.stringify(validate.errors)).toBe(true)
  expect(penstock(['lint', 'edited/first.yaml'])).toMatchObject({ code: 0, err: '' })
})

test('lint reports a file without resources in a few lines', () => {
  writeFileSync(join(folder, 'notes.md'), '# Notes\n\nSee: `that`: [a](b)\n'.repeat(20))
  const notes = penstock(['lint', 'notes.md'])
  expect(notes.code).toBe(78)
  expect(notes.err.match(/^error: /gm)).toHaveLength(6)
  expect(notes.err).toContain('help: Resources are written in YAML; is this .md file the right one?')
  expect(notes.err).toMatch(/error: \d+ further mistakes of YAML in this file are not shown\n/)

  for (const [name, text] of [
    ['vector.toml', '[sources.in]\ntype = "stdin"\n'],
    ['promtail.yaml', 'scrape_configs: []\n'],
  ] as const) {
    writeFileSync(join(folder, name), text)
    expect(penstock(['lint', name]).err).toContain(
      `help: If this is the configuration of another agent, \`penstock convert -f ${name}\` makes a Pipeline of it.`,
    )
  }

  writeFileSync(join(folder, 'program.yaml'), Buffer.from([0x7f, 0x45, 0x4c, 0x46, 0xff, 0xfe, 0x1b, 0x5b]))
  const program = penstock(['lint', 'program.yaml'])
  expect(program.code).toBe(78)
  expect(program.err).toBe('error: "program.yaml" is not UTF-8 text\n  --> program.yaml\n')
})

test('lint reads several files, arguments, and with -R also subfolders', () => {
  mkdirSync(join(folder, 'tree/apps'), { recursive: true })
  writeFileSync(join(folder, 'tree/apps/one.yaml'), pipeline('one', '.mark = true'))
  writeFileSync(join(folder, 'two.yaml'), pipeline('two', '.mark = true'))

  const none = penstock(['lint', '-f', 'tree'])
  expect(none.code).toBe(78)
  expect(none.err).toContain('"tree" contains no .yaml or .yml file')
  expect(none.err).toContain('`-R` also reads sub-folders, which contain 1 .yaml or .yml file.')

  const fine = (paths: string) => ({ code: 0, err: '', out: `2 Pipelines in ${paths}: no problems.\n` })
  expect(penstock(['lint', '-R', 'tree', 'two.yaml'])).toEqual(fine('tree, two.yaml'))
  expect(penstock(['lint', '-f', 'tree/apps/one.yaml', '-f', 'two.yaml'])).toEqual(fine('tree/apps/one.yaml, two.yaml'))
  expect(penstock(['lint', 'two.yaml', '-'], pipeline('three', '.mark = true'))).toEqual(
    fine('two.yaml, standard input'),
  )
  expect(penstock(['test', '-R', 'tree', 'two.yaml']).code).toBe(0)
  expect(penstock(['render', 'two.yaml']).out).toContain('shop/two')
})

test('lint prints SARIF: the class, the place and the text of each problem', () => {
  writeFileSync(join(folder, 'a b.yaml'), pipeline('wrong', '.a = parse_json(.message)'))
  const { code, out, err } = penstock(['lint', '-f', '.', '-o', 'sarif'])
  expect([code, err]).toEqual([78, ''])
  const log = JSON.parse(out)
  expect(log).toEqual({
    $schema: 'https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json',
    version: '2.1.0',
    runs: [
      {
        tool: {
          driver: {
            name: 'penstock',
            version,
            rules: [{ id: 'CompileFailed', shortDescription: { text: 'A program or condition does not compile.' } }],
          },
        },
        results: [
          {
            ruleId: 'CompileFailed',
            ruleIndex: 0,
            level: 'error',
            message: { text: expect.stringContaining('error[E103]') },
            locations: [
              {
                physicalLocation: {
                  artifactLocation: { uri: 'a%20b.yaml' },
                  region: { startLine: 11, startColumn: 16 },
                },
                logicalLocations: [{ fullyQualifiedName: 'spec.transforms[0].config.source' }],
              },
            ],
          },
        ],
      },
    ],
  })
})

test('lint prints JUnit: a suite for each file, a failed case for each error', () => {
  writeFileSync(join(folder, 'good.yaml'), pipeline('good', '.mark = true'))
  writeFileSync(join(folder, 'wrong.yaml'), pipeline('wrong', '.a = 1').replace('blackhole', 'black<hole'))
  const { code, out } = penstock(['lint', '-f', '.', '--output', 'junit'])
  expect(code).toBe(78)
  const [head, ...lines] = out.trimEnd().split('\n')
  expect(head).toBe('<?xml version="1.0" encoding="UTF-8"?>')
  expect(lines.slice(0, 6)).toEqual([
    '<testsuites name="penstock lint" tests="2" failures="1" errors="0">',
    '  <testsuite name="good.yaml" tests="1" failures="0" errors="0">',
    '    <testcase name="lint" classname="good.yaml"/>',
    '  </testsuite>',
    '  <testsuite name="wrong.yaml" tests="1" failures="1" errors="0">',
    expect.stringMatching(
      /^ {4}<testcase name="line 12, column \d+: spec\.sinks\[0\]\.type" classname="wrong\.yaml">$/,
    ),
  ])
  expect(out).toContain('black&lt;hole')
  expect(out).not.toContain('black<hole')
})

test('test prints JUnit: a suite for each Pipeline, a case for each test', () => {
  writeFileSync(join(folder, 'a.yaml'), pipeline('good', '.mark = true'))
  writeFileSync(join(folder, 'b.yaml'), pipeline('bad', '.mark = false'))
  const { code, out, err } = penstock(['test', '-f', '.', '-o', 'junit'])
  expect([code, err]).toEqual([78, ''])
  expect(out).toBe(`<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="penstock test" tests="2" failures="1" errors="0">
  <testsuite name="shop/good" tests="1" failures="0" errors="0">
    <testcase name="marks &quot;all&quot; &amp; &lt;more&gt;" classname="shop/good"/>
  </testsuite>
  <testsuite name="shop/bad" tests="1" failures="1" errors="0">
    <testcase name="marks &quot;all&quot; &amp; &lt;more&gt;" classname="shop/bad">
      <failure message="check[0] for &quot;shop/bad/parse&quot;: no event meets all conditions" type="TestsFailed">check[0] for &quot;shop/bad/parse&quot;: no event meets all conditions
  {&quot;mark&quot;:false,&quot;message&quot;:&quot;hi&quot;}
    condition[0]: is not true</failure>
    </testcase>
  </testsuite>
</testsuites>
`)
})

test('resources can come from standard input, and a report without problems is valid', () => {
  const { code, out } = penstock(['lint', '-f', '-', '-o', 'sarif'], pipeline('good', '.mark = true'))
  expect(code).toBe(0)
  expect(JSON.parse(out).runs[0].results).toEqual([])
})

const noTerminals = spawnSync('script', ['--version']).status !== 0

test.skipIf(noTerminals)('on a terminal, - asks for resources, and reads what is typed', () => {
  const command = `${process.execPath} --conditions=source ${main} lint -`
  const { stdout } = spawnSync('script', ['-qec', command, '/dev/null'], {
    encoding: 'utf8',
    input: 'kind: Pipelin\n\u0004',
  })
  expect(stdout).toContain('Type or paste resources. Ctrl-D ends them.')
  expect(stdout).toContain('Did you mean `Pipeline`?')
})

test.skipIf(noTerminals)('on a terminal, the page of a field has colours, and its lines end at the edge', () => {
  const command = `stty cols 50; ${process.execPath} --conditions=source ${main} explain Pipeline.spec.sources`
  const { stdout } = spawnSync('script', ['-qec', command, '/dev/null'], {
    encoding: 'utf8',
    env: { ...process.env, TERM: 'xterm-256color', NO_COLOR: undefined, CI: undefined },
  })
  expect(stdout).toContain('\u001b[36m"pods"\u001b[0m')
  const lines = stripVTControlCharacters(stdout).split('\r\n')
  expect(lines.filter((line) => line.length > 50)).toEqual([])
  expect(lines).toContain('      Options of the component, with the names of')
})
