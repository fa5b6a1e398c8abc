import { Registry } from 'prom-client'
import { expect, test } from 'vitest'
import type { CustomResource } from '../api/object.ts'
import { stateMetrics } from './state-metrics.ts'

const condition = (type: string, status: string, reason: string) => ({ type, status, reason, message: '' })
const object = (kind: string, name: string, status: object): CustomResource<unknown, unknown> => ({
  apiVersion: 'penstock.dev/v1alpha1',
  kind,
  metadata: { name, namespace: 'shop' },
  spec: {},
  status,
})

test('conditions are counted by reason, and agents by state, at each request', async () => {
  const fine = { conditions: [condition('Ready', 'True', 'Ready')] }
  const rolledBack = { conditions: [condition('Programmed', 'False', 'RolledBack')] }
  const objects = new Map([
    ['Pipeline', [object('Pipeline', 'a', fine), object('Pipeline', 'b', fine), object('Pipeline', 'c', rolledBack)]],
    ['Agent', [object('Agent', 'node', { nodes: { desired: 3, ready: 2, current: 1 } })]],
    ['Sink', [object('Sink', 'new', {})]],
  ])
  const metrics = new Registry()
  stateMetrics(metrics, ({ kind }) => objects.get(kind))

  const lines = (text: string) => text.split('\n').filter((line) => line.startsWith('penstock_'))
  expect(lines(await metrics.metrics())).toEqual([
    'penstock_conditions{kind="Pipeline",type="Ready",status="True",reason="Ready"} 2',
    'penstock_conditions{kind="Pipeline",type="Programmed",status="False",reason="RolledBack"} 1',
    'penstock_agents{agent="shop/node",state="desired"} 3',
    'penstock_agents{agent="shop/node",state="ready"} 2',
    'penstock_agents{agent="shop/node",state="current"} 1',
  ])

  objects.set('Pipeline', [object('Pipeline', 'a', fine)])
  objects.delete('Agent')
  expect(lines(await metrics.metrics())).toEqual([
    'penstock_conditions{kind="Pipeline",type="Ready",status="True",reason="Ready"} 1',
  ])
})
