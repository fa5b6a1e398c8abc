// A write that the API server denied, as conditions of the Agent.

import { expect, test } from 'vitest'
import type { Agent } from '../../api/agent.ts'
import type { OperatorContext } from '../../context.ts'
import { KubeError } from '../../kube/client.ts'
import { refusedWrite } from './refusals.ts'

const agent = { metadata: { name: 'beside', namespace: 'shop' }, spec: { mode: 'Sidecar' } } as unknown as Agent
const settings = { namespace: 'system', rolesOnly: false } as OperatorContext['settings']
const forbidden = (message: string, status = 403) => new KubeError(message, { status, reason: 'Forbidden' })

test.each([
  {
    what: 'a missing right',
    error: forbidden('secrets "x" is forbidden: User "operator" cannot create resource "secrets"'),
    lacksRights: true,
    reasons: ['NamespaceNotAllowed'],
  },
  {
    what: 'a missing right in the words of another authorizer',
    error: forbidden('secrets "x" is forbidden: no policy matched'),
    lacksRights: true,
    reasons: ['NamespaceNotAllowed'],
  },
  {
    what: 'an admission plugin that says "cannot"',
    error: forbidden('pods "x" is forbidden: its image cannot be verified'),
    lacksRights: false,
    reasons: ['Valid', 'PodsNotReady'],
  },
  {
    what: 'an invalid object',
    error: forbidden('Service "x" is invalid', 422),
    lacksRights: false,
    reasons: ['Valid', 'PodsNotReady'],
  },
])('$what gives $reasons', ({ error, lacksRights, reasons }) => {
  const { findings } = refusedWrite(agent, error, settings, lacksRights) ?? { findings: [] }
  expect(findings.map(({ reason }) => reason)).toEqual(reasons)
})

test('ignores other failures', () => {
  expect(refusedWrite(agent, new Error('connection reset'), settings, true)).toBeUndefined()
})
