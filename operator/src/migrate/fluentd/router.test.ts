// The output `label_router`: the rules of a route are looked at in order, an event takes all routes that it meets, and others the default.

import { expect, test } from 'vitest'
import { converted, lint, withTest } from '../../testing/conversions.ts'
import { convertFluentd } from './convert.ts'

const configuration = `<source>
  @type tail
  path /var/log/containers/*.log
  tag kube.*
  <parse>
    @type cri
  </parse>
</source>
<filter **>
  @type kubernetes_metadata
</filter>
<match **>
  @type label_router
  emit_mode record
  default_route @rest
  <route>
    @label @web
    <match>
      negate true
      labels app:web,tier:test
    </match>
    <match>
      namespaces shop,other
      container_names web
      hosts n1
      labels {"app":"web"}
    </match>
  </route>
  <route>
    @label @system
    <match>
      namespaces kube-system
    </match>
  </route>
</match>
<label @web>
  <match **>
    @type stdout
    @id web
  </match>
</label>
<label @system>
  <match **>
    @type stdout
    @id system
  </match>
</label>
<label @rest>
  <match **>
    @type stdout
    @id rest
  </match>
</label>
`

const web = { pod_namespace: 'shop', container_name: 'web', pod_node_name: 'n1', pod_labels: { app: 'web' } }

test.each([
  { name: 'all conditions', facts: web, sink: 'web' },
  { name: 'an exclusion', facts: { ...web, pod_labels: { app: 'web', tier: 'test' } }, sink: 'rest' },
  { name: 'another container', facts: { ...web, container_name: 'proxy' }, sink: 'rest' },
  { name: 'another host', facts: { ...web, pod_node_name: 'n2' }, sink: 'rest' },
  { name: 'another route', facts: { ...web, pod_namespace: 'kube-system' }, sink: 'system' },
  { name: 'no facts', facts: {}, sink: 'rest' },
])('an event with $name goes to $sink alone', async ({ facts, sink }) => {
  for (const name of ['web', 'system', 'rest']) {
    const { document, resource, gaps } = converted(convertFluentd, [{ file: 'fluent.conf', text: configuration }])
    expect(gaps.filter(({ isReplaced }) => isReplaced !== true)).toEqual([])
    const sinks = resource.spec.sinks.filter((each: { name: string }) => each.name === name)
    expect(sinks).toHaveLength(1)
    const event = { message: 'x', stream: 'stdout', timestamp: '2026-11-24T10:11:12.5Z', orchestrator: facts }
    withTest(document, { spec: { ...resource.spec, sinks } }, event, name === sink ? { message: 'x' } : undefined)
    expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
  }
})

test.each([
  { name: 'an unknown label', change: ['<label @web>', '<label @no>'], subject: 'label_router @web' },
  { name: 'an unknown condition', change: ['hosts n1', 'pods a'], subject: 'label_router: pods' },
])('$name is a gap', ({ change: [from = '', to = ''], subject }) => {
  const { gaps } = converted(convertFluentd, [{ file: 'fluent.conf', text: configuration.replace(from, to) }])
  expect(gaps.map((gap) => gap.subject)).toContain(subject)
})
