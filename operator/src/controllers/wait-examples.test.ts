// The `kubectl wait` commands of the guide: the kind is one of ours, and the operator always writes the condition, so that no wait is
// in vain.

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { kinds } from '../api/kinds.ts'
import { statusOf } from './status.ts'

const guide = join(import.meta.dirname, '../../guide')
const examples = readdirSync(guide)
  .filter((page) => page.endsWith('.md'))
  .flatMap((page) => {
    const text = readFileSync(join(guide, page), 'utf8')
    return [...text.matchAll(/kubectl wait --for=condition=(\w+) ([\w.]+)/g)].map(
      ([command, type, resource]) => [`${page}: ${command}`, type, resource] as const,
    )
  })

test('the guide shows how to wait for a Pipeline, a Sink and an Agent', () => {
  expect(examples.map(([, , resource]) => resource)).toEqual(expect.arrayContaining(['pipeline', 'sink', 'agent']))
})

test.each(examples)('%s', (_, type, resource) => {
  const kind = kinds.find(({ singular, plural, shortName }) => [singular, plural, shortName].includes(resource ?? ''))
  if (kind === undefined) throw new Error(`No kind of Penstock is named ${resource}.`)
  const object = { apiVersion: 'penstock.dev/v1alpha1', kind: kind.kind, metadata: { name: 'example', generation: 1 } }
  const { conditions } = statusOf(kind, object, { compile: { generation: 1, findings: [] } }, new Date(0))
  expect(conditions.map((condition) => condition.type)).toContain(type)
})
