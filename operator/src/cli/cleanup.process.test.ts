// The real command with a double of the API server that records the requests: which changes `cleanup` makes, and when it
// makes none.

import { expect, test } from 'vitest'
import { notFound, runAtDouble } from '../testing/command.ts'

const system = 'penstock-system'
const deployment = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'penstock-operator', namespace: system },
}

/** Runs `penstock cleanup`; returns its exit code, its output and each request other than GET. */
async function cleanup(existing: Readonly<Record<string, object>>, flags: readonly string[] = []) {
  const changes: string[] = []
  const run = await runAtDouble(
    () => ['cleanup', ...flags],
    ({ pathname }, { method }) => {
      const resource = pathname.split('/').at(-1) ?? ''
      if (method !== 'GET') changes.push(`${method} ${pathname}`)
      const found = existing[pathname] ?? existing[resource]
      if (found !== undefined) return { status: 200, body: found }
      return resource.startsWith('penstock-')
        ? notFound('not found')
        : { status: 200, body: { metadata: {}, items: [] } }
    },
    { namespace: system },
  )
  return { ...run, changes }
}

const rbac = '/apis/rbac.authorization.k8s.io/v1'
const own = { 'app.kubernetes.io/managed-by': 'penstock' }
const bindingOf = (labels: object, namespace: string) => ({
  metadata: { name: 'penstock-agent-node', uid: 'u', labels },
  subjects: [{ kind: 'ServiceAccount', namespace, name: 'penstock-node' }],
})
const agentOf = (owner: string) => ({
  metadata: { name: 'node', namespace: system, ownerReferences: [{ kind: 'ConfigMap', name: owner, uid: 'c' }] },
})
const scaled = `PATCH /apis/apps/v1/namespaces/${system}/deployments/penstock-operator`

test.each([
  {
    what: 'the operator, its Agents and bindings end',
    existing: {
      'penstock-operator': deployment,
      agents: { metadata: {}, items: [agentOf('penstock-defaults')] },
      'penstock-agent-node': bindingOf(own, 'gone'),
    },
    changes: [
      scaled,
      `DELETE /apis/penstock.dev/v1alpha1/namespaces/${system}/agents/node`,
      `DELETE ${rbac}/clusterrolebindings/penstock-agent-node`,
    ],
  },
  {
    what: 'Agents of users stay, with their rights, and so do bindings of others',
    existing: {
      'penstock-operator': deployment,
      agents: { metadata: {}, items: [agentOf('mine')] },
      'penstock-agent-node': bindingOf(own, system),
      'penstock-agent-events': bindingOf({}, 'gone'),
    },
    changes: [scaled],
  },
  { what: 'nothing is there', existing: {}, changes: [] },
])('$what', async ({ existing, changes }) => {
  const result = await cleanup(existing)
  expect(result.changes, result.output).toEqual(changes)
  expect(result.code, result.output).toBe(0)
})

test('bindings of agents in other namespaces are removed with their Agent, and only then', async () => {
  const agents = (namespace: string) => `/apis/penstock.dev/v1alpha1/namespaces/${namespace}/agents`
  const bindings = `${rbac}/namespaces/shop/rolebindings`
  const bindingFor = (name: string, agent: string, namespace: string) => ({
    metadata: {
      ...{ name, namespace: 'shop', uid: name },
      labels: { ...own, 'penstock.dev/agent': agent, 'penstock.dev/agent-namespace': namespace },
    },
  })
  const mine = { metadata: { name: 'mine', namespace: system } }
  const result = await cleanup(
    {
      'penstock-operator': deployment,
      [agents(system)]: { metadata: {}, items: [mine] },
      [agents('shop')]: { metadata: {}, items: [] },
      [bindings]: {
        metadata: {},
        items: [bindingFor('of-mine', 'mine', system), bindingFor('of-gone', 'node', system)],
      },
    },
    ['-n', system, '--namespaces', 'shop'],
  )
  expect(result.changes, result.output).toEqual([scaled, `DELETE ${bindings}/of-gone`])
  expect(result.code, result.output).toBe(0)
})
