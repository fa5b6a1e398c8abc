import { expect, test } from 'vitest'
import type { KubeClient } from './client.ts'
import { grantsOf, missingRights } from './rights.ts'

const signal = new AbortController().signal

test('missing rights are listed by verb, with the commands that grant them', async () => {
  const allowed: string[] = []
  const kube = {
    async request(
      _: string,
      path: string,
      body: { spec: { resourceAttributes?: { verb: string; resource: string } } },
    ) {
      if (path.endsWith('/selfsubjectrulesreviews')) {
        const resourceRules = [
          { verbs: ['get', 'list'], apiGroups: [''], resources: ['pods', 'secrets'] },
          { verbs: ['*'], apiGroups: ['apps'], resources: ['*'] },
          { verbs: ['get'], apiGroups: [''], resources: ['namespaces'], resourceNames: ['shop'] },
        ]
        return { status: { resourceRules, incomplete: allowed.length > 0 } }
      }
      const { verb, resource } = body.spec.resourceAttributes ?? {}
      return { status: { allowed: allowed.includes(`${verb} ${resource}`) } }
    },
  } as unknown as KubeClient
  const needed = [
    { apiGroups: [''], resources: ['pods', 'secrets'], verbs: ['get', 'list', 'watch'] },
    { apiGroups: ['apps'], resources: ['deployments'], verbs: ['get', 'patch'] },
    { apiGroups: [''], resources: ['namespaces'], resourceNames: ['shop'], verbs: ['get', 'watch'] },
    { apiGroups: ['penstock.dev'], resources: ['pipelines/status'], verbs: ['patch'] },
    { apiGroups: ['coordination.k8s.io'], resources: ['leases'], resourceNames: ['a', 'b'], verbs: ['get'] },
  ]
  const missing = await missingRights(kube, 'shop', needed, signal)
  expect(missing).toEqual([
    { verbs: ['watch'], resource: 'pods', names: [] },
    { verbs: ['watch'], resource: 'secrets', names: [] },
    { verbs: ['watch'], resource: 'namespaces', names: ['shop'] },
    { verbs: ['patch'], resource: 'pipelines/status.penstock.dev', names: [] },
    { verbs: ['get'], resource: 'leases.coordination.k8s.io', names: ['a', 'b'] },
  ])
  const role = (number: number) => `penstock-operator-missing-${number}`
  const bound = (number: number) =>
    `kubectl create rolebinding ${role(number)} -n shop --role=${role(number)} --serviceaccount=system:penstock-operator`
  expect(grantsOf('shop', 'system:penstock-operator', missing)).toEqual([
    `kubectl create role ${role(1)} -n shop --verb=watch --resource=pods,secrets`,
    bound(1),
    `kubectl create role ${role(2)} -n shop --verb=watch --resource=namespaces --resource-name=shop`,
    bound(2),
    `kubectl create role ${role(3)} -n shop --verb=patch --resource=pipelines.penstock.dev/status`,
    bound(3),
    `kubectl create role ${role(4)} -n shop --verb=get --resource=leases.coordination.k8s.io --resource-name=a --resource-name=b`,
    bound(4),
  ])

  // An authorizer that cannot list its permissions is queried for each one.
  allowed.push('watch pods', 'watch namespaces', 'patch pipelines')
  expect((await missingRights(kube, 'shop', needed, signal)).map(({ resource }) => resource)).toEqual([
    'secrets',
    'leases.coordination.k8s.io',
  ])
})
