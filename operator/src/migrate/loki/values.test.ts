// Stages that compute values: JMESPath of `json`, functions of templates, and stages of Alloy. Each case compares with what the old agent
// pushes.

import { expect, test } from 'vitest'
import { converted, lint, withTest } from '../../testing/conversions.ts'
import { convertAlloy } from '../alloy/convert.ts'
import { convertPromtail } from '../promtail/convert.ts'

const promtail = (stages: string) =>
  converted(convertPromtail, [
    {
      file: 'promtail.yaml',
      text: `clients: [{ url: 'http://loki:3100/loki/api/v1/push' }]
scrape_configs:
  - job_name: app
    static_configs: [{ labels: { job: app, __path__: /srv/app.log } }]
    pipeline_stages:
${stages.replace(/^(?=.)/gm, '      ')}
`,
    },
  ])

const alloy = (stages: string) =>
  converted(convertAlloy, [
    {
      file: 'config.alloy',
      text: `loki.source.file "app" {
  targets    = [{"__path__" = "/srv/app.log", "job" = "app"}]
  forward_to = [loki.process.app.receiver]
}
loki.process "app" {
  forward_to = [loki.write.default.receiver]
${stages}
}
loki.write "default" {
  endpoint { url = "http://loki:3100/loki/api/v1/push" }
}
`,
    },
  ])

interface Case {
  readonly name: string
  readonly line: string
  readonly labels?: Readonly<Record<string, string>>
  readonly metadata?: Readonly<Record<string, string>>
  readonly pushed?: string
}

async function compare(
  { document, resource, gaps }: ReturnType<typeof promtail>,
  { line, labels = {}, metadata, pushed }: Case,
): Promise<void> {
  expect(gaps.filter(({ isReplaced }) => isReplaced !== true)).toEqual([])
  const event = { message: line, timestamp: '2026-01-01T00:00:00Z', file: '/srv/app.log' }
  const all = Object.entries({ filename: '/srv/app.log', job: 'app', ...labels }).filter(([, value]) => value !== '')
  withTest(document, resource, event, {
    message: pushed ?? line,
    labels: Object.fromEntries(all),
    ...(metadata === undefined ? {} : { metadata }),
  })
  expect(await lint(String(document))).toEqual([])
}

const line =
  '{"a":"","b":"two","tags":["x","y"],"user":{"id":7,"name":"Ann"},"errors":[{"code":1,"severity":"low"},{"code":2,"severity":"high"},{"note":"none"}],"nested":[[1,2],[3]],"size":12.5,"text":"99","ok":true}'

/** Expressions, and the values that Promtail extracts; empty for those that it leaves alone. */
const expressions: readonly (readonly [string, string])[] = [
  ['a || b', 'two'],
  ['missing || a || user.name', 'Ann'],
  ['user.id && b', 'two'],
  ['missing && b', ''],
  ['!missing', 'true'],
  ["b == 'two'", 'true'],
  ['size > `12`', 'true'],
  ['size <= user.id', 'false'],
  ['b > `1`', ''],
  ['length(tags)', '2'],
  ['length(user)', '2'],
  ['length(size)', ''],
  ["join(', ', tags)", 'x, y'],
  ["join(', ', errors)", ''],
  ['keys(user)', '["id","name"]'],
  ['to_string(user)', '{"id":7,"name":"Ann"}'],
  ['to_string(b)', 'two'],
  ['to_number(text)', '99'],
  ['to_number(b)', ''],
  ['type(tags)', 'array'],
  ["not_null(missing, b, 'none')", 'two'],
  ["contains(tags, 'y')", 'true'],
  ["contains(b, 'w')", 'true'],
  ["starts_with(b, 'tw')", 'true'],
  ['errors[*].code', '[1,2]'],
  ['errors[].code', '[1,2]'],
  ['nested[]', '[1,2,3]'],
  ["errors[?severity=='high'].code | [0]", '2'],
  ['errors[?code].severity', '["low","high"]'],
  ["errors[?contains(tags, 'x')]", '!'],
  ['user.*', '[7,"Ann"]'],
  ['[b, user.id]', '["two",7]'],
  ['{first: tags[0], n: user.name}', '{"first":"x","n":"Ann"}'],
  ['tags | [-1]', 'y'],
  ["'raw'", 'raw'],
  ['b.c[*].d', ''],
  ['tags[0:1]', '!'],
  ['sort(tags)', '!'],
  ['a ||', '!'],
]

test.each(expressions)('Promtail and the Pipeline extract the same by `%s`', async (expression, value) => {
  const text = `- json: { expressions: { found: ${JSON.stringify(expression)}, b: } }\n- labels: { found: }`
  const made = promtail(text)
  if (value === '!') {
    expect(made.gaps.map(({ subject }) => subject)).toEqual(['stage json'])
    expect(made.gaps[0]?.reason).toContain(expression)
    return
  }
  await compare(made, { name: '', line, labels: { found: value } })
})

const quoted = 'a "b" \\ c\tüé'
const templates: readonly Case[] = [
  { name: '{{ .Value | quote }}', line: quoted, pushed: '"a \\"b\\" \\\\ c\\tüé"' },
  { name: '{{ quote .Value .job }}', line: 'x', pushed: '"x" "app"' },
  { name: '{{ quote .Value }}', line: 'x\u0001\u007f', pushed: '"x\\x01\\x7f"' },
  { name: '{{ squote .Value }}', line: 'x', pushed: "'x'" },
  { name: '{{ .Value | trunc 3 }}', line: 'abcdef', pushed: 'abc' },
  { name: '{{ .Value | trunc 9 }}', line: 'abcdef', pushed: 'abcdef' },
  { name: '{{ .Value | trunc -2 }}', line: 'abcdef', pushed: 'ef' },
  { name: '{{ .Value | substr 1 3 }}', line: 'abcdef', pushed: 'bc' },
  { name: '{{ .Value | substr 2 -1 }}', line: 'abcdef', pushed: 'cdef' },
  { name: '{{ if ge (int .Value) 500 }}error{{ else }}fine{{ end }}', line: '503', pushed: 'error' },
  { name: '{{ if lt (int .Value) 500 }}fine{{ else }}error{{ end }}', line: 'x', pushed: 'fine' },
  { name: '{{ if gt (len .Value) 3 }}long{{ else }}short{{ end }}', line: 'abcd', pushed: 'long' },
  { name: '{{ len .Value }}', line: 'é', pushed: '2' },
  { name: '{{ if gt .Value "b" }}after{{ else }}before{{ end }}', line: 'a', pushed: 'before' },
  { name: '{{ .none | default .job }}', line: 'x', pushed: 'app' },
  { name: '{{ coalesce .none "" .Value }}', line: 'x', pushed: 'x' },
  { name: '{{ ternary "yes" "no" (eq .Value "x") }}', line: 'x', pushed: 'yes' },
  { name: '{{ regexFind "[0-9]+" .Value }}', line: 'a12b3', pushed: '12' },
  { name: '{{ or .none "" .Value "x" }}', line: 'v', pushed: 'v' },
  { name: '{{ or .none "x" | ToUpper }}', line: 'v', pushed: 'X' },
  {
    name: '{{ $up := ToUpper .Value }}{{ $n := 3 }}{{ $up }}{{ if gt (len $up) $n }}!{{ end }}',
    line: 'abcd',
    pushed: 'ABCD!',
  },
  { name: '{{ $l := "low" }}{{ if eq .Value "x" }}{{ $l = "high" }}{{ end }}{{ $l }}', line: 'x', pushed: 'high' },
  { name: '{{ $none := .none }}{{ $none }}', line: 'x', pushed: '<no value>' },
  { name: '{{ .Value | nospace }}', line: 'a b  c', pushed: 'abc' },
  { name: '{{ .Value | b64dec }}', line: 'aGk=', pushed: 'hi' },
  { name: '{{ TrimPrefix .Value "a\'(" }}', line: "a'(b", pushed: 'b' },
]

test.each(templates)('Promtail and the Pipeline write the same by `$name`', async (given) => {
  const stages = `- regex: { expression: '(?s)^(?P<all>.*)$' }\n- template: { source: all, template: ${JSON.stringify(given.name)} }\n- output: { source: all }`
  await compare(promtail(stages), given)
})

/** Templates for a line whose member `none` is null, which no stage finds as `gone`; undefined if Go's template fails. */
const ofMissing: readonly (readonly [string, string | undefined])[] = [
  ['{{ .gone }}|{{ .none }}', '<no value>|<no value>'],
  ['{{ ToUpper .none }}x', undefined],
  ['{{ ToUpper .gone }}x', undefined],
  ['{{ if .a }}{{ ToUpper .gone }}{{ end }}x', undefined],
  ['{{ if .gone }}{{ ToUpper .gone }}{{ end }}x', 'x'],
  ['{{ if and .gone (contains "a" .gone) }}y{{ else }}n{{ end }}', 'n'],
  ['{{ if or .a (contains "a" .gone) }}y{{ else }}n{{ end }}', 'y'],
  ['{{ if or .gone (contains "a" .gone) }}y{{ else }}n{{ end }}', undefined],
  ['{{ if contains "a" .gone }}y{{ else }}n{{ end }}', undefined],
  ['{{ if .a }}1{{ else if contains "a" .gone }}2{{ end }}', '1'],
  ['{{ if eq .gone "" }}y{{ else }}n{{ end }}', 'n'],
  ['{{ if eq .none "" }}y{{ else }}n{{ end }}', 'n'],
  ['{{ if ne .gone "x" }}y{{ else }}n{{ end }}', 'y'],
  ['{{ if eq .gone .none }}y{{ else }}n{{ end }}', 'y'],
  ['{{ if eq .gone .away }}y{{ else }}n{{ end }}', 'y'],
  ['{{ if lt .gone "x" }}y{{ else }}n{{ end }}', undefined],
  ['{{ if ge (int .gone) 1 }}y{{ else }}n{{ end }}', 'n'],
  ['{{ if eq .n 12 }}y{{ else }}n{{ end }}', undefined],
  ['{{ if eq .gone 12 }}y{{ else }}n{{ end }}', 'n'],
  ['{{ if ge .n 1 }}y{{ end }}', undefined],
  ['{{ if eq (int .n) "12" }}y{{ end }}', undefined],
  ['{{ if gt (float64 .f) 1 }}y{{ end }}', undefined],
  ['{{ if gt (float64 .f) 1.25 }}y{{ else }}n{{ end }}', 'y'],
  ['{{ add .gone 2 }}', '2'],
  ['{{ default .gone .none }}', '<no value>'],
  ['{{ coalesce .gone .none }}', '<no value>'],
  ['{{ and .gone .a }}|{{ and .a .b }}|{{ or .none .gone }}', '<no value>|B b|<no value>'],
  ['{{ quote .gone }}|{{ quote .none .gone .a }}', '|"A a"'],
  ['{{ toString .gone }}', '<nil>'],
  ['{{ printf "%s:%v" .gone .gone }}', '%!s(<nil>):<nil>'],
  ['{{ ternary "y" "n" .a }}', undefined],
]

test.each(ofMissing)('Promtail and the Pipeline treat missing values the same in `%s`', async (template, written) => {
  const stages = `- json: { expressions: { a: , b: , n: , f: , none: } }\n- template: { source: made, template: ${JSON.stringify(template)} }\n- labels: { made: }`
  await compare(promtail(stages), {
    name: '',
    line: '{"a":"A a","b":"B b","n":12,"f":1.5,"none":null}',
    labels: written === undefined ? {} : { made: written },
  })
})

const ofFunctions: readonly (readonly [string, string | undefined])[] = [
  ['{{ with .a }}{{ . | lower }}{{ else }}none{{ end }}', 'one.two/three'],
  ['{{ with .gone }}{{ . }}{{ else }}none{{ end }}', 'none'],
  ['{{ with .a }}{{ $.b }}{{ end }}', 'x-y'],
  ['{{ with $x := .a }}{{ $x }}{{ end }}', 'One.two/three'],
  ['{{ if $n := int .n }}{{ $n }}{{ end }}', '7'],
  ['{{ last (splitList "." .a) }}', 'two/three'],
  ['{{ $p := splitList "/" .a }}{{ first $p }} {{ len $p }}', 'One.two 2'],
  ['{{ splitList "." .a | initial | join "+" }}', 'One'],
  ['{{ join "," (list .b .gone "z") }}', 'x-y,z'],
  ['{{ join "," (list "y" "z") }}', 'y,z'],
  ['{{ index (splitList "." .a) 1 }}', 'two/three'],
  ['{{ index (splitList "." .a) 5 }}', undefined],
  ['{{ (split "." .a)._0 }}|{{ (split "." .a)._9 }}', 'One|<no value>'],
  ['{{ has "y" (splitList "-" .b) }}', 'true'],
  ['{{ printf "%.1sxx|%.1s" .b .gone }}', 'xxx|%!s(<nil>)'],
  ['{{ printf "%5s|%-5s|%%" .b .b }}', '  x-y|x-y  |%'],
  ['{{ printf "%03d|%3d" (int .n) (int .n) }}', '007|  7'],
  ['{{ printf "%.2f|%f" (float64 .f) (float64 .n) }}', '1.24|7.000000'],
  ['{{ printf "%q" "a" }}', '"a"'],
  ['{{ atoi "010" }}|{{ int "010" }}|{{ int "12.00" }}|{{ int "12.5" }}', '10|8|12|0'],
  ['{{ mod 7 4 }}|{{ max 1 3 2 }}|{{ min 3 1 2 }}|{{ add1 1 }}', '3|3|1|2'],
  ['{{ if eq (div .n 2) 3 }}y{{ end }}', 'y'],
  ['{{ round .f 1 }}|{{ floor .f }}|{{ ceil .f }}', '1.2|1|2'],
  ['{{ title "a bc-de_f" }}|{{ untitle "AB CD" }}', 'A Bc-De_f|aB cD'],
  ['{{ TrimPrefix .b "x" | TrimSuffix "y" }}', 'y'],
  ['{{ TrimSuffix .b .c }}|{{ trimPrefix "One." .a }}', 'x|two/three'],
  ['{{ repeat 3 "ab" }}|{{ repeat 0 "a" }}', 'ababab|'],
  ['{{ slice .a 0 3 }}|{{ slice .a 4 }}', 'One|two/three'],
  ['{{ slice .b 0 9 }}', undefined],
  ['{{ base .a }}|{{ base "/a/" }}|{{ base "" }}', 'three|a|.'],
  ['{{ eq .b "x-y" }}', 'true'],
  ['{{ toJson .b }}', '"x-y"'],
]

test.each(ofFunctions)('Promtail and the Pipeline compute the same by `%s`', async (template, written) => {
  const stages = `- json: { expressions: { a: , b: , c: , n: , f: } }\n- template: { source: made, template: ${JSON.stringify(template)} }\n- labels: { made: }`
  await compare(promtail(stages), {
    name: '',
    line: '{"a":"One.two/three","b":"x-y","c":"-y","n":7,"f":1.239}',
    labels: written === undefined ? {} : { made: written },
  })
})

const stages: readonly (Case & { readonly stages: string })[] = [
  {
    name: 'structured_metadata moves a label',
    stages: '- structured_metadata: { job: , path: filename, none: }',
    line: 'x',
    labels: { job: '', filename: '' },
    metadata: { job: 'app', path: '/srv/app.log' },
  },
  {
    name: 'structured_metadata takes an extracted value and a label',
    stages: '- json: { expressions: { id: } }\n- labels: { id: }\n- structured_metadata: { id: , again: id }',
    line: '{"id":5}',
    labels: { id: '' },
    metadata: { id: '5', again: '5' },
  },
  {
    name: 'replace: a group with others inside is replaced as a whole',
    stages: "- replace: { expression: 'card=(\\d{4}(-(\\d{4}))+)', replace: '****' }",
    line: 'card=1234-5678-9012 ok',
    pushed: 'card=**** ok',
  },
  {
    name: 'replace: the named groups of the first match become values',
    stages: "- replace: { expression: 'id=(?P<id>\\w+)', replace: '<{{ .Value }}>' }\n- labels: { id: }",
    line: 'id=a id=b',
    pushed: 'id=<a> id=<b>',
    labels: { id: '<a>' },
  },
  {
    name: 'replace: groups in alternatives, and one that is optional',
    stages:
      "- replace: { expression: 'password=(\\S+)|(?:token|key)=(\\w+)(-\\w+)?', replace: '***' }\n- replace: { expression: '(?i)(?:user=(\\w+)|id=(?P<id>\\d+))', replace: '{{ .Value | ToUpper }}!' }\n- labels: { id: }",
    line: 'password=a token=b-c key=d User=ann id=7',
    pushed: 'password=*** token=****** key=*** User=ANN! id=7!',
    labels: {},
  },
  {
    name: 'replace: an empty source is the line',
    stages: "- replace: { source: '', expression: '(a)', replace: 'b' }\n- drop: { source: '', expression: 'nothing' }",
    line: 'a',
    pushed: 'b',
  },
  {
    name: 'replace: a template that fails changes nothing',
    stages:
      "- replace: { expression: 'id=(\\w+)', replace: '{{ ToUpper .gone }}' }\n- replace: { expression: 'id=(\\w+)', replace: '{{ if eq .Value \"b\" }}{{ ToUpper .gone }}{{ end }}' }",
    line: 'id=a id=b',
  },
  {
    name: 'regex: the last of several groups with the same name counts',
    stages: "- regex: { expression: '^(?P<_>\\S+) [(?P<x>] ?(?P<_>\\S+) (?P<verb>\\S+)' }\n- labels: { verb: , _: }",
    line: 'a ( b GET',
    labels: { verb: 'GET', _: 'b' },
  },
  {
    name: 'logfmt: the last of several values',
    stages: '- logfmt: { mapping: { level: , flag: } }\n- labels: { level: , flag: }',
    line: 'level=info flag level=warn',
    labels: { level: 'warn' },
  },
  {
    name: 'logfmt: an empty value before the next key',
    stages: '- logfmt: { mapping: { level: , b: , user: } }\n- labels: { level: , b: , user: }',
    line: 'level= user="" b=2',
    labels: { b: '2' },
  },
  {
    name: 'logfmt: the keys before a quotation mark inside of a word',
    stages: '- logfmt: { mapping: { level: , b: , user: } }\n- labels: { level: , b: , user: }',
    line: 'b=1 GET "/x" level=info',
    labels: { b: '1' },
  },
  {
    name: 'logfmt: a value with a sign is an error',
    stages: '- logfmt: { mapping: { level: , b: , user: } }\n- labels: { level: , b: , user: }',
    line: 'level=info b=x=y user=z',
    labels: { level: 'info' },
  },
  {
    name: 'logfmt: a value that does not end',
    stages: '- logfmt: { mapping: { level: , b: , user: } }\n- labels: { level: , b: , user: }',
    line: 'level=info b="x user=z',
    labels: { level: 'info' },
  },
  {
    name: 'logfmt: lines of a joined event',
    stages: '- logfmt: { mapping: { level: , b: , user: } }\n- labels: { level: , b: , user: }',
    line: 'level=info x\nb=2',
    labels: { level: 'info', b: '2' },
  },
  {
    name: 'logfmt: a key behind a value in quotation marks',
    stages: '- logfmt: { mapping: { level: , b: , user: } }\n- labels: { level: , b: , user: }',
    line: 'level="a\\"b\\u0041"b=2 user=\'c\'',
    labels: { level: 'a"bA', b: '2', user: "'c'" },
  },
  {
    name: 'template: a value that JSON does not have changes nothing',
    stages:
      "- json: { expressions: { level: , text: } }\n- template: { source: text, template: '{{ ToLower .level }} x' }\n- output: { source: text }",
    line: '{"text":"y"}',
    pushed: 'y',
  },
  {
    name: 'drop: a missing value is an empty one for an expression',
    stages: "- drop: { source: level, expression: '^debug$' }\n- static_labels: { kept: yes }",
    line: 'x',
    labels: { kept: 'yes' },
  },
]

test.each(stages)('Promtail and the Pipeline push the same: $name', async (given) => {
  await compare(promtail(given.stages), given)
})

test('drop: an expression that matches the empty text drops events without the value', async () => {
  const { document, resource } = promtail("- drop: { source: [level, other], expression: '^$' }")
  withTest(document, resource, { message: 'x', timestamp: '2026-01-01T00:00:00Z', file: '/srv/app.log' }, undefined)
  expect(await lint(String(document))).toEqual([])
})

const ofAlloy: readonly (Case & { readonly stages: string })[] = [
  {
    name: 'luhn',
    stages: '  stage.luhn { }',
    line: 'card 4111111111111111, id 4111111111111112, 00 and 79927398713',
    pushed: 'card **REDACTED**, id 4111111111111112, 00 and 79927398713',
  },
  {
    name: 'luhn: numbers with signs in them',
    stages: '  stage.luhn {\n    replacement = "X"\n    delimiters = " -"\n    min_length = 11\n  }',
    line: '4111-1111 1111-1111, 7992 7398713; 7992-7398714, 4111111111111111 - end, 9999999999999999999999',
    pushed: 'X, X; 7992-7398714, X end, 9999999999999999999999',
  },
  {
    name: 'drop: an empty option is not set',
    stages: '  stage.logfmt { mapping = { "a" = "" } }\n  stage.drop {\n    source = "b"\n    value = ""\n  }',
    line: 'a=1',
  },
  {
    name: 'structured metadata by pattern, from values and labels',
    stages: `  stage.logfmt { mapping = { "trace_id" = "", "user" = "" } }
  stage.static_labels { values = { trace_flag = "1" } }
  stage.structured_metadata {
    values = { "u" = "user" }
    regex  = "^trace_"
  }`,
    line: 'trace_id=t user=ann',
    labels: {},
    metadata: { trace_id: 't', trace_flag: '1', u: 'ann' },
  },
  {
    name: 'structured metadata that is dropped, and one that becomes a label',
    stages: `  stage.logfmt { mapping = { "a" = "", "b" = "" } }
  stage.structured_metadata { values = { "a" = "", "b" = "" } }
  stage.labels {
    values      = { "from" = "b" }
    source_type = "structured_metadata"
  }
  stage.structured_metadata_drop { values = ["b", "none"] }`,
    line: 'a=1 b=2',
    labels: { from: '2' },
    metadata: { a: '1' },
  },
  {
    name: 'logfmt by pattern',
    stages: `  stage.logfmt {
    mapping = { "level" = "lvl" }
    regex   = "^x_"
  }
  stage.labels { values = { "level" = "", "x_a" = "", "y" = "" } }`,
    line: 'lvl=warn x_a=1 y=2',
    labels: { level: 'warn', x_a: '1' },
  },
  {
    name: 'pattern',
    stages: `  stage.pattern {
    pattern            = "<ip> - <_> [<time>] \\"<verb> "
    labels_from_groups = true
  }`,
    line: '10.0.0.1 - ann [now] "GET /a"',
    labels: { ip: '10.0.0.1', time: 'now', verb: 'GET' },
  },
  {
    name: 'pattern: the rest of a line without the next text',
    stages: `  stage.pattern { pattern = "<a>|<b>;<c>" }
  stage.labels { values = { "a" = "", "b" = "", "c" = "" } }`,
    line: '1|2|3',
    labels: { a: '1', b: '2|3' },
  },
  {
    name: 'truncate counts bytes',
    stages: `  stage.truncate {
    rule { limit = "6B" }
    rule {
      limit       = "8B"
      suffix      = "~"
      source_type = "label"
      sources     = ["filename"]
    }
  }
  stage.labels { values = { "truncated" = "" } }`,
    line: 'abcdéfgh',
    pushed: 'abcdé',
    labels: { filename: '/srv/ap~', truncated: 'label,line' },
  },
]

test.each(ofAlloy)('Alloy and the Pipeline push the same: $name', async (given) => {
  await compare(alloy(given.stages), given)
})

test.each([
  ['stage.pattern { pattern = "<a><b>" }', 'stage pattern'],
  ['stage.pattern { pattern = "none" }', 'stage pattern'],
  ['stage.truncate { }', 'stage truncate'],
  ['stage.template {\n    source = "a"\n    template = "{{ .Value | trunc 3 .Value }}"\n  }', 'stage template'],
  ['stage.truncate {\n    rule {\n      limit = "1KiB"\n      source_type = "moon"\n    }\n  }', 'stage truncate'],
  ['stage.labels {\n    values = { "a" = "" }\n    source_type = "moon"\n  }', 'stage.labels: source_type'],
])('%s is a gap', (text, subject) => {
  expect(alloy(`  ${text}`).gaps.map((gap) => gap.subject)).toEqual([subject])
})
