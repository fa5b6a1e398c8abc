// Common configurations: combinations of 8 inputs, 11 chains of filters and 9 outputs. All become Pipelines that pass lint, and parts
// without a counterpart become gaps with line numbers.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { compileFiles } from '../../compile/config.ts'
import { Draft, type Gap } from '../draft.ts'
import { convertFluentBit } from './convert.ts'
import { parsedTime } from './own-time.ts'

const folder = mkdtempSync(join(tmpdir(), 'penstock-corpus-'))
afterAll(() => rmSync(folder, { recursive: true }))

type Options = readonly (readonly [string, string])[]
interface Case {
  readonly about: string
  readonly options: Options
  /** Whether all parts have a counterpart. */
  readonly whole: boolean
}

const pods: Options = [
  ['Name', 'tail'],
  ['Tag', 'kube.*'],
  ['Path', '/var/log/containers/*.log'],
]
const inputs: readonly Case[] = [
  {
    about: 'pods',
    options: [
      ...pods,
      ['multiline.parser', 'docker, cri'],
      ['DB', '/var/log/flb.db'],
      ['Mem_Buf_Limit', '5MB'],
      ['Skip_Long_Lines', 'On'],
    ],
    whole: true,
  },
  {
    about: 'pods by parser',
    options: [...pods, ['Parser', 'cri'], ['Refresh_Interval', '10'], ['Read_from_Head', 'On']],
    whole: true,
  },
  {
    about: 'pods but some',
    options: [
      ...pods,
      ['Parser', 'docker'],
      ['Exclude_Path', '/var/log/containers/*_kube-system_*.log,/var/log/containers/fluent*.log'],
    ],
    whole: true,
  },
  {
    about: 'some pods, without a parser',
    options: [pods[0] ?? ['', ''], ['Tag', 'kube.*'], ['Path', '/var/log/containers/web-*_shop_*.log']],
    whole: false,
  },
  {
    about: 'files',
    options: [
      ['Name', 'tail'],
      ['Tag', 'kube.files'],
      ['Path', '/srv/*.log,/opt/*.log'],
      ['Path_Key', 'path'],
      ['Rotate_Wait', '30'],
      ['Ignore_Older', '1d'],
    ],
    whole: true,
  },
  {
    about: 'web server',
    options: [
      ['Name', 'tail'],
      ['Tag', 'kube.web'],
      ['Path', '/var/log/nginx/access.log'],
      ['Parser', 'nginx'],
    ],
    whole: true,
  },
  {
    about: 'sample records',
    options: [
      ['Name', 'dummy'],
      ['Tag', 'kube.sample'],
      ['Dummy', '{"log": "E1", "code": "7"}'],
      ['Rate', '2'],
    ],
    whole: true,
  },
  {
    about: 'the journal',
    options: [
      ['Name', 'systemd'],
      ['Tag', 'kube.host'],
      ['Systemd_Filter', '_SYSTEMD_UNIT=kubelet.service'],
    ],
    whole: false,
  },
  {
    about: 'a port',
    options: [
      ['Name', 'forward'],
      ['Tag', 'kube.in'],
      ['Listen', '0.0.0.0'],
    ],
    whole: false,
  },
]

const kubernetes: Options = [
  ['Name', 'kubernetes'],
  ['Match', 'kube.*'],
  ['Kube_URL', 'https://kubernetes.default.svc:443'],
  ['Merge_Log_Key', 'data'],
  ['Merge_Log', 'On'],
  ['Keep_Log', 'Off'],
  ['Labels', 'On'],
  ['Annotations', 'Off'],
]
const filters: readonly { about: string; sections: readonly Options[]; whole: boolean }[] = [
  { about: 'none', sections: [], whole: true },
  { about: 'kubernetes', sections: [kubernetes], whole: true },
  {
    about: 'grep of a namespace',
    sections: [
      kubernetes,
      [
        ['Name', 'grep'],
        ['Match', 'kube.*'],
        ['Exclude', "$kubernetes['namespace_name'] ^(kube-system|monitoring)$"],
      ],
    ],
    whole: true,
  },
  {
    about: 'lifted labels',
    sections: [
      kubernetes,
      [
        ['Name', 'nest'],
        ['Match', '*'],
        ['Operation', 'lift'],
        ['Nested_under', 'kubernetes'],
        ['Add_prefix', 'kubernetes_'],
      ],
      [
        ['Name', 'modify'],
        ['Match', '*'],
        ['Hard_rename', 'kubernetes_pod_name pod'],
        ['Remove_regex', '^kubernetes_.*(hash|id)$'],
      ],
    ],
    whole: true,
  },
  {
    about: 'nested fields',
    sections: [
      [
        ['Name', 'nest'],
        ['Match', '*'],
        ['Operation', 'nest'],
        ['Wildcard', 'app.*'],
        ['Wildcard', 'level'],
        ['Nest_under', 'app'],
        ['Remove_prefix', 'app.'],
        ['Add_prefix', 'x_'],
      ],
    ],
    whole: true,
  },
  {
    about: 'fixed fields',
    sections: [
      [
        ['Name', 'record_modifier'],
        ['Match', '*'],
        ['Record', "cluster o'hare"],
        ['Record', 'quote "a b"'],
        ['Remove_key', 'time'],
      ],
    ],
    whole: true,
  },
  {
    about: 'conditions',
    sections: [
      [
        ['Name', 'modify'],
        ['Match', '*'],
        ['Condition', 'Key_Exists log'],
        ['Condition', 'Key_Value_Does_Not_Match log "^\\s*$"'],
        ['Add', 'seen yes'],
      ],
    ],
    whole: true,
  },
  {
    about: 'parsers',
    sections: [
      [
        ['Name', 'parser'],
        ['Match', '*'],
        ['Key_Name', 'log'],
        ['Parser', 'json'],
        ['Parser', 'logfmt'],
        ['Reserve_Data', 'On'],
      ],
    ],
    whole: true,
  },
  {
    about: 'lua',
    sections: [
      [
        ['Name', 'lua'],
        ['Match', '*'],
        ['call', 'f'],
        ['code', 'function f(a, b, c) return 0, b, c end'],
      ],
    ],
    whole: false,
  },
  {
    about: 'throttle',
    sections: [
      [
        ['Name', 'throttle'],
        ['Match', '*'],
        ['Rate', '100'],
        ['Window', '5'],
      ],
    ],
    whole: false,
  },
  {
    about: 'rewrite_tag and type_converter',
    sections: [
      [
        ['Name', 'rewrite_tag'],
        ['Match', 'kube.*'],
        ['Rule', '$log ^E errors true'],
        ['Emitter_Name', 're_emitted'],
      ],
      [
        ['Name', 'type_converter'],
        ['Match', 'errors'],
        ['str_key', 'code code_number int'],
      ],
    ],
    whole: true,
  },
]

const outputs: readonly Case[] = [
  {
    about: 'loki',
    options: [
      ['Name', 'loki'],
      ['Host', 'loki.svc'],
      ['Labels', "job=fb, ns=$kubernetes['namespace_name'], $stream"],
      ['tenant_id', 'shop'],
    ],
    whole: true,
  },
  {
    about: 'es',
    options: [
      ['Name', 'es'],
      ['Host', 'es.svc'],
      ['Logstash_Format', 'On'],
      ['Replace_Dots', 'On'],
      ['Suppress_Type_Name', 'On'],
      ['tls', 'On'],
      ['tls.verify', 'Off'],
      ['HTTP_User', 'u'],
      ['HTTP_Passwd', '$'.concat('{ES_PASS}')],
    ],
    whole: true,
  },
  {
    about: 'opensearch',
    options: [
      ['Name', 'opensearch'],
      ['Host', 'os.svc'],
      ['Index', 'logs'],
      ['Write_Operation', 'index'],
      ['Retry_Limit', 'False'],
    ],
    whole: true,
  },
  {
    about: 'http',
    options: [
      ['Name', 'http'],
      ['Host', 'in.svc'],
      ['Format', 'json'],
      ['compress', 'gzip'],
      ['Json_date_key', 'false'],
    ],
    whole: true,
  },
  {
    about: 'splunk',
    options: [
      ['Name', 'splunk'],
      ['Host', 'hec.svc'],
      ['Splunk_Token', '$'.concat('{HEC}')],
      ['TLS', 'On'],
      ['Splunk_Send_Raw', 'On'],
    ],
    whole: true,
  },
  {
    about: 'kafka-rest',
    options: [
      ['Name', 'kafka-rest'],
      ['Host', 'proxy.svc'],
      ['Topic', 'logs'],
      ['Message_Key', 'node'],
      ['Retry_Limit', '3'],
    ],
    whole: true,
  },
  {
    about: 'datadog',
    options: [
      ['Name', 'datadog'],
      ['Host', 'http-intake.logs.datadoghq.com'],
      ['TLS', 'on'],
      ['apikey', '$'.concat('{DD}')],
      ['dd_tags', 'env:prod'],
      ['dd_message_key', 'log'],
    ],
    whole: true,
  },
  {
    about: 'stdout',
    options: [
      ['Name', 'stdout'],
      ['Format', 'json_lines'],
      ['json_date_format', 'epoch'],
    ],
    whole: true,
  },
  {
    about: 'kafka',
    options: [
      ['Name', 'kafka'],
      ['Brokers', 'b:9092'],
      ['Topics', 'logs'],
    ],
    whole: false,
  },
  {
    about: 's3',
    options: [
      ['Name', 's3'],
      ['bucket', 'logs'],
      ['region', 'eu-west-1'],
    ],
    whole: false,
  },
]

const section = (kind: string, options: Options) =>
  `[${kind}]\n${options.map(([key, value]) => `    ${key} ${value}\n`).join('')}`
const item = (options: Options) => {
  const keys = [...new Set(options.map(([key]) => key))]
  return `    - ${keys
    .map((key) => {
      const values = options.filter(([name]) => name === key).map(([, value]) => value)
      return `${JSON.stringify(key.toLowerCase())}: ${JSON.stringify(values.length === 1 ? values[0] : values)}`
    })
    .join('\n      ')}\n`
}

/** Each chain of filters with six inputs and outputs, so that all neighbouring pairs occur: 60 configurations. */
const cases = filters.flatMap((chain, row) =>
  [0, 1, 2, 3, 4, 5].flatMap((column) => {
    const input = inputs[(row + column * 3) % inputs.length]
    const output = outputs[(row * 2 + column) % outputs.length]
    if (input === undefined || output === undefined) return []
    const out: Options = [...output.options, ['Match', '*']]
    const classic = `${section('INPUT', input.options)}${chain.sections.map((options) => section('FILTER', options)).join('')}${section('OUTPUT', out)}`
    const list = chain.sections.map(item).join('')
    const yaml = `pipeline:\n  inputs:\n${item(input.options)}${list === '' ? '' : `  filters:\n${list}`}  outputs:\n${item(out)}`
    const about = `${input.about} / ${chain.about} / ${output.about}`
    return [{ about, classic, yaml, whole: input.whole && chain.whole && output.whole }]
  }),
)

let written = 0
function convert(file: string, text: string) {
  const draft = new Draft()
  convertFluentBit([{ file, text }], () => [], draft)
  const document = String(draft.document({ name: 'corpus' }))
  const path = join(folder, `${++written}.yaml`)
  const values = ['ES_PASS', 'HEC', 'DD'].map((name) => `  ${name}: x\n`).join('')
  const secret = `---\napiVersion: v1\nkind: Secret\nmetadata: { name: corpus-environment, namespace: penstock-system }\nstringData:\n${values}`
  writeFileSync(path, `${document}${secret}`)
  const problems = compileFiles([path], { ownMachine: false }).problems.map(
    ({ path: at, message, rendered }) => `${at}: ${message} ${rendered ?? ''}`,
  )
  return { document, gaps: draft.gaps, problems, lines: text.split('\n').length }
}

test('the corpus has 66 configurations, most of which convert completely', () => {
  expect(new Set(cases.map(({ classic }) => classic)).size).toBe(66)
  expect(cases.filter(({ whole }) => whole).length).toBeGreaterThan(20)
})

test.each(cases)('$about', ({ classic, yaml, whole }) => {
  const found = convert('fluent-bit.conf', classic)
  expect(found.problems).toEqual([])
  const renamed = (gap: Gap) => gap.subject === parsedTime
  if (whole) expect(found.gaps.filter((gap) => !renamed(gap))).toEqual([])
  else expect(found.gaps.length).toBeGreaterThan(0)
  for (const gap of found.gaps) {
    expect(gap.line).toBeGreaterThan(0)
    expect(gap.line).toBeLessThanOrEqual(found.lines)
    expect([gap.file, gap.reason === '', gap.nearest === '']).toEqual(['fluent-bit.conf', false, false])
  }

  const other = convert('fluent-bit.yaml', yaml)
  expect(other.problems).toEqual([])
  expect(other.gaps.map(({ subject, reason }) => [subject, reason])).toEqual(
    found.gaps.map(({ subject, reason }) => [subject, reason]),
  )
  const bare = (text: string) => text.replace(/\(fluent-bit\.(conf|yaml):\d+\)/g, '')
  expect(bare(other.document)).toBe(bare(found.document))
})
