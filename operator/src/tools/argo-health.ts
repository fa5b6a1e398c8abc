// operator/resource_customizations: Argo CD health checks for all kinds, in the layout of Argo CD's own repository. The rule comes from the
// guide; the test objects have the status that the operator itself would write.

import { stringify } from 'yaml'
import type { Finding } from '../api/conditions.ts'
import { kinds, type ResourceKind } from '../api/kinds.ts'
import { group, version } from '../api/object.ts'
import { type StatusObject, statusOf } from '../controllers/status.ts'

interface Case {
  readonly name: string
  readonly expected: { readonly status: string; readonly message: string }
  readonly object: object
}

const now = new Date('2026-01-02T03:04:05Z')

/** Files by path below resource_customizations. */
export function argoHealthFiles(guide: string): Map<string, string> {
  const rule = /```lua\n(.*?)```/s.exec(guide)?.[1]
  if (rule === undefined)
    throw new Error('operator/guide/gitops.md has no ```lua block; expected the rule for Argo CD in one.')
  return new Map(
    kinds.flatMap((kind): [string, string][] => {
      const folder = `${group}/${kind.kind}`
      const cases = casesOf(kind)
      const tests = cases.map(({ name, expected }) => ({ healthStatus: expected, inputPath: `testdata/${name}.yaml` }))
      return [
        [`${folder}/health.lua`, rule],
        [`${folder}/health_test.yaml`, stringify({ tests }, { lineWidth: 0 })],
        ...cases.map(({ name, object }): [string, string] => [
          `${folder}/testdata/${name}.yaml`,
          stringify(object, { lineWidth: 0 }),
        ]),
      ]
    }),
  )
}

const accepted: readonly Finding[] = [
  { type: 'Accepted', status: 'True', reason: 'Valid', message: '' },
  { type: 'ResolvedRefs', status: 'True', reason: 'Resolved', message: '' },
]
const running: readonly Finding[] = [
  { type: 'Available', status: 'True', reason: 'Available', message: '' },
  { type: 'Programmed', status: 'True', reason: 'Programmed', message: '' },
]
const refused: Finding = {
  type: 'Accepted',
  status: 'False',
  reason: 'InvalidConfig',
  message: '`spec` holds a mistake.',
}

function casesOf(kind: ResourceKind): readonly Case[] {
  const runs = kind.kind.endsWith('Pipeline') || kind.kind === 'Agent'
  const found = accepted.filter(({ type }) => type === 'Accepted' || !['Agent', 'TenantPolicy'].includes(kind.kind))
  const ran = running.filter(({ type }) => type === 'Programmed' || kind.kind === 'Agent')
  const compiled = statusCase(kind, { findings: found })
  const healthy = runs ? statusCase(kind, { findings: found, rollout: ran }) : compiled
  const cases: Case[] = [
    {
      name: 'progressing_new',
      expected: { status: 'Progressing', message: 'Waiting for the operator' },
      object: objectOf(kind),
    },
    {
      name: 'progressing_changed',
      expected: { status: 'Progressing', message: 'Waiting for the operator' },
      object: { ...healthy, metadata: { ...objectOf(kind).metadata, generation: 4 } },
    },
    { name: 'healthy', expected: { status: 'Healthy', message: '' }, object: healthy },
    {
      name: 'degraded',
      expected: { status: 'Degraded', message: refused.message },
      object: statusCase(kind, { findings: [refused, ...found.slice(1)] }),
    },
  ]
  if (runs)
    cases.push({
      name: 'progressing_rollout',
      expected: { status: 'Progressing', message: 'Nothing is known yet.' },
      object: compiled,
    })
  if (kind.kind.endsWith('Pipeline'))
    cases.push({
      name: 'suspended',
      expected: { status: 'Suspended', message: 'suspended' },
      object: statusCase(kind, { findings: found, spec: { suspend: true } }),
    })
  if (kind.kind === 'Agent')
    cases.push({
      name: 'suspended',
      expected: { status: 'Suspended', message: 'spec.managementState is Unmanaged: the operator changes nothing.' },
      object: statusCase(kind, { findings: found, spec: { managementState: 'Unmanaged' } }),
    })
  return cases
}

function objectOf(kind: ResourceKind, spec: object = {}) {
  const metadata = { name: 'example', ...(kind.namespaced ? { namespace: 'shop' } : {}), generation: 3 }
  return { apiVersion: `${group}/${version}`, kind: kind.kind, metadata, spec } satisfies StatusObject
}

interface Reported {
  readonly findings: readonly Finding[]
  readonly rollout?: readonly Finding[]
  readonly spec?: object
}

function statusCase(kind: ResourceKind, { findings, rollout, spec }: Reported) {
  const object = objectOf(kind, spec)
  const reports = {
    compile: { generation: 3, findings },
    ...(rollout === undefined ? {} : { rollout: { generation: 3, findings: rollout } }),
  }
  return { ...object, status: statusOf(kind, object, reports, now) }
}
