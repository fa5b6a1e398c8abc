// Options of Alloy's components that become options of sinks, or that have no counterpart.

import { expect, test } from 'vitest'
import { converted, lint } from '../../testing/conversions.ts'
import { convertAlloy } from './convert.ts'

const convert = (endpoint: string, more = '') =>
  converted(convertAlloy, [
    {
      file: 'config.alloy',
      text: `${more}loki.source.file "app" {
  targets    = [{"__path__" = "/srv/app.log"}]
  forward_to = [loki.process.app.receiver]
}
loki.process "app" {
  stage.match {
    selector = "{a=\\"b\\"}"
    action   = "drop"
    stage.decolorize { }
  }
  forward_to = [loki.write.default.receiver]
}
loki.write "default" {
  endpoint {
    url = "http://loki:3100/loki/api/v1/push"
    ${endpoint}
  }
}
`,
    },
  ])

test('headers with lists of values, and hosts without a proxy', () => {
  const { resource, gaps } = convert(`http_headers = { "X-A" = ["b", "c"] }
    proxy_url = "http://proxy:3128"
    no_proxy = "10.0.0.0/8, .local"
    proxy_from_environment = false`)
  expect(gaps.map(({ subject }) => subject)).toEqual(['stage match: stages'])
  expect(resource.spec.sinks).toMatchObject([
    {
      config: {
        proxy: { http: 'http://proxy:3128', no_proxy: ['10.0.0.0/8', '.local'] },
        request: { headers: { 'X-A': 'b, c' } },
      },
    },
  ])
})

test('the log of Alloy itself is a gap, and components that only get this log are left out', () => {
  const own = `logging {
  write_to = [loki.process.own.receiver, loki.write.other.receiver]
}
loki.process "own" {
  forward_to = [loki.write.default.receiver]
}
loki.write "other" {
  endpoint { url = "http://other/loki/api/v1/push" }
}
`
  const { resource, gaps } = convert('', own)
  expect(gaps.map(({ subject, line, isAbsent }) => [subject, line, isAbsent])).toEqual([
    ['logging: write_to', 1, true],
    ['stage match: stages', 15, undefined],
  ])
  expect(resource.spec.sinks).toHaveLength(1)
  expect(convert('', 'logging { level = "info" }\n').gaps).toHaveLength(1)
})

test('namespaces of events that are not valid names give a gap and a Pipeline that lint accepts', async () => {
  const text = `loki.source.kubernetes_events "e" {
  namespaces = ["", "1-shop", "(x)"]
  forward_to = [loki.write.w.receiver]
}
loki.write "w" {
  endpoint { url = "http://loki/loki/api/v1/push" }
}
`
  const { document, resource, gaps } = converted(convertAlloy, [{ file: 'config.alloy', text }])
  expect(gaps.map(({ subject }) => subject)).toEqual(['loki.source.kubernetes_events.e: namespaces'])
  expect(resource.spec.sources[0].config.namespaces).toEqual(['1-shop', 'x'])
  const own = converted(convertAlloy, [{ file: 'config.alloy', text }], 'shop')
  expect(own.gaps.map(({ reason }) => reason)[0]).toContain('TenantPolicy')
  expect(await lint(String(document))).toEqual([])
})
