// The places of programs that do not compile: each row names the file, line and column of the mistake in the old configuration.
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: variables of the old agent are meant

import { expect, test } from 'vitest'
import { agentFor } from '../agents.ts'
import { Draft, type Included } from '../draft.ts'

/** The rows about programs, and the text at the place of each. */
function rowsOf(file: string, text: string, included: Included = () => [], texts = new Map([[file, text]])) {
  const found = agentFor([{ file, text }])
  if (found === undefined) throw new Error('No agent knows the file.')
  const draft = new Draft()
  found.agent.convert(found.files, included, draft)
  return draft.gaps
    .filter(({ reason }) => /does not compile|not valid/.test(reason))
    .map(({ file: place, line, column = 0, subject, reason, rendered = '' }) => {
      const at = (texts.get(place)?.split('\n')[line - 1] ?? '').slice(column - 1)
      return { subject, place: `${place}:${line}`, at, reason, code: /\[(E\d+)\]/.exec(rendered)?.[1] }
    })
}

const sink = '[sinks.out]\ntype = "console"\ninputs = ["t"]\nencoding.codec = "json"\n'

test.each([
  {
    form: 'TOML with a text of several lines',
    file: 'v.toml',
    text: `[sources.s]\ntype = "stdin"\n[transforms.t]\ntype = "remap"\ninputs = ["s"]\nsource = '''\n  .a = 1\n    .b = parse_json(.message)\n'''\n${sink}`,
    place: 'v.toml:8',
    at: 'parse_json(.message)',
    code: 'E103',
  },
  {
    form: 'TOML with a text of one line',
    file: 'v.toml',
    text: `[sources.s]\ntype = "stdin"\n[transforms.t]\ntype = "remap"\ninputs = ["s"]\nsource = '.a = 1; .b = nope(.c)'\n${sink}`,
    place: 'v.toml:6',
    at: "nope(.c)'",
    code: 'E105',
  },
  {
    form: 'JSON',
    file: 'v.json',
    text: `{"sources":{"s":{"type":"stdin"}},"transforms":{"t":{"type":"remap","inputs":["s"],\n"source":".a = \\"\\u00e9\\"\\n.b = 1; .c = nope(.d)\\n"}},"sinks":{"o":{"type":"blackhole","inputs":["t"]}}}`,
    place: 'v.json:2',
    at: 'nope(.d)\\n"}},"sinks":{"o":{"type":"blackhole","inputs":["t"]}}}',
    code: 'E105',
  },
  {
    form: 'YAML',
    file: 'v.yaml',
    text: 'sources: { s: { type: stdin } }\ntransforms:\n  t:\n    type: remap\n    inputs: [s]\n    source: |\n      .a = 1\n      .c = parse_grok!(.message, "%{NOPE:x}")\nsinks: { out: { type: blackhole, inputs: [t] } }\n',
    place: 'v.yaml:8',
    at: 'parse_grok!(.message, "%{NOPE:x}")',
    code: 'E610',
  },
  {
    form: 'the condition of a filter',
    file: 'v.yaml',
    text: 'sources: { s: { type: stdin } }\ntransforms:\n  t:\n    type: filter\n    inputs: [s]\n    condition:\n      type: vrl\n      source: |\n        .a == 1 &&\n          nope(.b)\nsinks: { out: { type: blackhole, inputs: [t] } }\n',
    place: 'v.yaml:10',
    at: 'nope(.b)',
    code: 'E105',
  },
  {
    form: 'the condition of a route',
    file: 'v.yaml',
    text: "sources: { s: { type: stdin } }\ntransforms:\n  t:\n    type: route\n    inputs: [s]\n    route:\n      good: .a == 1\n      bad: '.a == 1 && nope(.b)'\nsinks: { out: { type: blackhole, inputs: [t.good, t.bad, t._unmatched] } }\n",
    place: 'v.yaml:8',
    at: "nope(.b)'",
    code: 'E105',
  },
  {
    form: 'a variable with a default before the mistake',
    file: 'v.yaml',
    text: 'sources: { s: { type: stdin } }\ntransforms:\n  t:\n    type: remap\n    inputs: [s]\n    source: |\n      .a = "${ZONE:-eu-central-1}"; .b = nope(.c)\nsinks: { out: { type: blackhole, inputs: [t] } }\n',
    place: 'v.yaml:7',
    at: 'nope(.c)',
    code: 'E105',
  },
  {
    form: 'a condition whose lines YAML joins',
    file: 'v.yaml',
    text: 'sources: { s: { type: stdin } }\ntransforms:\n  t:\n    type: filter\n    inputs: [s]\n    condition: >-\n      .a == 1 ||\n      .b == 2 ||\n      nope(.c)\nsinks: { out: { type: blackhole, inputs: [t] } }\n',
    place: 'v.yaml:9',
    at: 'nope(.c)',
    code: 'E105',
  },
  {
    form: 'a ConfigMap',
    file: 'v.yaml',
    text: 'apiVersion: v1\nkind: ConfigMap\nmetadata: { name: v }\ndata:\n  vector.yaml: |\n    sources: { s: { type: stdin } }\n    transforms:\n      t:\n        type: remap\n        inputs: [s]\n        source: |\n          .b = nope(.c)\n    sinks: { out: { type: blackhole, inputs: [t] } }\n',
    place: 'v.yaml:12',
    at: 'nope(.c)',
    code: 'E105',
  },
  {
    form: 'a text in the values of the first chart',
    file: 'v.yaml',
    text: "kubernetesLogsSource: { enabled: true }\ntransforms:\n  t:\n    type: remap\n    inputs: [kubernetes_logs]\n    rawConfig: |\n      source = '''\n        .b = nope(.c)\n      '''\nsinks: { o: { type: blackhole, inputs: [t] } }\n",
    place: 'v.yaml:8',
    at: 'nope(.c)',
    code: 'E105',
  },
  {
    form: 'chart values as a text of an Application',
    file: 'v.yaml',
    text: 'apiVersion: argoproj.io/v1alpha1\nkind: Application\nspec:\n  source:\n    helm:\n      values: |\n        role: Agent\n        customConfig:\n          sources: { s: { type: stdin } }\n          transforms:\n            t:\n              type: remap\n              inputs: [s]\n              source: |\n                .b = nope(.c)\n          sinks: { out: { type: blackhole, inputs: [t] } }\n',
    place: 'v.yaml:15',
    at: 'nope(.c)',
    code: 'E105',
  },
])('$form', ({ file, text, place, at, code }) => {
  expect(rowsOf(file, text)).toMatchObject([{ place, at, code }])
})

const withFile = (path: string) =>
  `sources: { s: { type: stdin } }\ntransforms: { t: { type: remap, inputs: [s], ${path} } }\nsinks: { out: { type: blackhole, inputs: [t] } }\n`

test('a program in a file of its own', () => {
  const programs = new Map([
    ['a.vrl', '.a = 1\n'],
    ['b.vrl', '.b = 2\n.c = nope(.d)\n'],
  ])
  const included: Included = (path) => [{ file: path, text: programs.get(path) ?? '' }]
  expect(rowsOf('v.yaml', withFile('file: b.vrl'), included, programs)).toMatchObject([
    { place: 'b.vrl:2', at: 'nope(.d)' },
  ])
  expect(rowsOf('v.yaml', withFile('files: [a.vrl, b.vrl]'), included, programs)).toMatchObject([
    { place: 'b.vrl:2', at: 'nope(.d)' },
  ])
})

test('a program in a ConfigMap beside the configuration', () => {
  const text = `apiVersion: v1\nkind: ConfigMap\nmetadata: { name: v }\ndata:\n  p.vrl: |\n    .a = 1\n    .b = nope(.c)\n  vector.yaml: |\n${withFile('file: /etc/vector/p.vrl').replace(/^/gm, '    ')}`
  expect(rowsOf('v.yaml', text)).toMatchObject([{ place: 'v.yaml:7', at: 'nope(.c)' }])
})

test('each mistake of a program has a row', () => {
  const text =
    'sources: { s: { type: stdin } }\ntransforms:\n  t:\n    type: remap\n    inputs: [s]\n    source: |\n      .a = parse_json(.message)\n      .b = to_int(.b)\nsinks: { out: { type: blackhole, inputs: [t] } }\n'
  expect(rowsOf('v.yaml', text).map(({ place, code }) => [place, code])).toEqual([
    ['v.yaml:7', 'E103'],
    ['v.yaml:8', 'E103'],
  ])
})
