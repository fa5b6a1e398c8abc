// Configurations in chart templates: values in the file replace their references, and other references become variables.

import { expect, test } from 'vitest'
import { agentFor } from './agents.ts'
import { rendered } from './chart-templates.ts'
import { Draft } from './draft.ts'

const tail = (outputs: string) =>
  `config:\n  inputs: |\n    [INPUT]\n        Name tail\n        Path /srv/*.log\n  outputs: |\n    [OUTPUT]\n        Name http\n        Match *\n${outputs}`

function converted(text: string) {
  const found = agentFor([{ file: 'values.yaml', text }])
  if (found === undefined) throw new Error('No agent knows the file.')
  const draft = new Draft()
  draft.gaps.push(...found.gaps)
  found.agent.convert(found.files, () => [], draft)
  const [sink] = draft.document({ name: 'x' }).toJS().spec.sinks as { config: { uri: string } }[]
  return { uri: sink?.config.uri, gaps: draft.gaps.filter(({ subject }) => subject.includes('{{')) }
}

test('a value in the file replaces its reference', () => {
  const { uri, gaps } = converted(
    `${tail('        Host {{ .Values.sink.host | quote }}\n        Port 80\n')}sink: { host: store }\n`,
  )
  expect(uri).toMatch(/^http:\/\/store(:80)?\//)
  expect(gaps).toEqual([])
})

test.each([
  ['{{ .Release.Name }}', 'RELEASE_NAME'],
  ['{{- .Values.other.esHost -}}', 'OTHER_ES_HOST'],
  ['{{ $.Chart.Name }}', 'CHART_NAME'],
])('%s becomes a key of the Secret, with a row in the report', (reference, key) => {
  const { uri, gaps } = converted(tail(`        Host ${reference}\n        Port 80\n`))
  expect(uri).toContain(`SECRET[env.${key}]`)
  expect(gaps).toMatchObject([{ line: 10, subject: reference, isReplaced: true }])
})

test.each([
  ['template = "{{ "{{" }} .Value {{ "}}" }}"', 'template = "{{ .Value }}"'],
  ['template = "{{ `{{ .a }}` }}-{{`{{ .b }}`}}"', 'template = "{{ .a }}-{{ .b }}"'],
  ['{{ "a\\nb" }}', 'a\nb'],
  ['{{ ToLower "a" }} {{ .Value }}', '{{ ToLower "a" }} {{ .Value }}'],
])('a chart renders actions with only a literal: %s', (given, text) => {
  expect(rendered(given)).toBe(text)
})

test('Alloy in chart values: references in texts and with quotes', () => {
  const text = `alloy:
  configMap:
    content: |
      loki.write "a" {
        endpoint {
          url       = "http://{{ .Values.global.loki }}/loki/api/v1/push"
          tenant_id = {{ .Values.tenant | quote }}
          headers   = { "X-Release" = "{{ .Release.Name }}" }
        }
      }
global: { loki: "loki:3100" }
tenant: ops
`
  const { agent, files, gaps } = agentFor([{ file: 'values.yaml', text }]) ?? {}
  expect(agent?.name).toBe('alloy')
  const found = files?.[0]?.text ?? ''
  expect(found).toContain('url       = "http://loki:3100/loki/api/v1/push"')
  expect(found).toContain('tenant_id = "ops"')
  expect(found).toContain('"X-Release" = "$'.concat('{RELEASE_NAME}"'))
  expect(gaps?.map(({ subject }) => subject)).toEqual(['{{ .Release.Name }}'])
})

test('Vector in chart values: escaped templates', () => {
  const text = `role: Agent
customConfig:
  sources: { s: { type: stdin } }
  sinks:
    out:
      type: loki
      inputs: [s]
      endpoint: http://loki:3100
      encoding: { codec: json }
      labels:
        a: '{{ print "{{ host }}" }}'
        b: |-
          {{ print "{{ source_type }}" }}
        c: "{{\`{{ message }}\`}}-x"
        d: '{{ "{{" }} stream {{ "}}" }}'
        e: '{{ printf "{{ tag }}" }}'
`
  const { agent, files } = agentFor([{ file: 'values.yaml', text }]) ?? {}
  const draft = new Draft()
  agent?.convert(files ?? [], () => [], draft)
  expect(draft.document({ name: 'x' }).toJS().spec.sinks[0].config.labels).toEqual({
    a: '{{ host }}',
    b: '{{ source_type }}',
    c: '{{ message }}-x',
    d: '{{ stream }}',
    e: '{{ tag }}',
  })
  expect(draft.gaps).toEqual([])
})
