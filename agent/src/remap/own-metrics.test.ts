import { expect, test } from 'vitest'
import { noMetadata } from '../event/log.ts'
import { Metrics } from '../telemetry/metrics.ts'
import { isFailure } from './function.ts'
import { metricReader } from './own-metrics.ts'
import { compileProgram } from './program.ts'
import { valueText } from './text.ts'

const metrics = new Metrics()
const labels = (id: string) => ({ component_id: id, component_kind: 'sink', component_type: 'blackhole' })
metrics.counter('component_sent_events_total', labels('one')).add(3)
metrics.counter('component_sent_events_total', labels('two')).add(5)

test.each([
  ['get_vector_metric("component_sent_events_total", tags: {"component_id": "two"}).value', '5'],
  ['get_vector_metric("component_sent_events_total").tags.component_id', '["one"]'],
  [
    'names = []\nfor_each(find_vector_metrics("component_sent_events_total")) -> |_i, m| { names = push(names, upcase(m.kind)) }\nnames',
    '["ABSOLUTE", "ABSOLUTE"]',
  ],
  ['length(find_vector_metrics("component_sent_events_total", tags: {"component_id": "*o*"}))', '2'],
  ['find_vector_metrics("component_sent_events_total", tags: {"component_id": "three"})', '[]'],
  ['aggregate_vector_metrics("sum", "component_sent_events_total")', '8'],
  ['aggregate_vector_metrics("avg", "component_sent_events_total")', '4'],
  ['aggregate_vector_metrics("max", "component_sent_events_total")', '5'],
  ['aggregate_vector_metrics("min", "component_sent_events_total")', '3'],
])('%s', (source, result) => {
  const compiled = compileProgram(source, { keepResult: true, metrics: metricReader(metrics) })
  if (!compiled.ok) throw new Error(compiled.rendered)
  const value = compiled.program.run({}, noMetadata, true)
  expect(isFailure(value) ? value.message : valueText(value)).toBe(result)
})
