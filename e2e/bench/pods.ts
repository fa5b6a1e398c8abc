// The pods whose logs the benchmark agents read, in the form of the Kubernetes API, with the folder names of the kubelet.

import { Random } from '@penstock/agent/testing/random'

export interface BenchPod {
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly container: string
  /** Folder of the container's logs, relative to the folder of all pods. */
  readonly folder: string
  /** Name of the link to the container's newest log in the folder of links. */
  readonly link: string
  readonly object: { readonly metadata: { readonly name: string; readonly namespace: string; readonly uid: string } }
}

export const benchNode = {
  metadata: {
    name: 'bench',
    uid: '7b0c5b1e-52c2-4f4c-9d8e-1f5d1c0f3a10',
    labels: { 'kubernetes.io/os': 'linux' },
  },
}

const teams = ['shop', 'billing', 'search', 'identity', 'logistics']
const apps = ['checkout', 'cart-api', 'payments', 'frontend', 'shipping', 'inventory', 'mailer', 'gateway']
const letters = 'bcdfghjklmnpqrstvwxz2456789'

export function benchPods(count: number): BenchPod[] {
  const random = new Random(1)
  const text = (length: number, from: string) => Array.from({ length }, () => from[random.below(from.length)]).join('')
  const hex = (length: number) => text(length, '0123456789abcdef')
  return Array.from({ length: count }, (_, index) => {
    const namespace = random.pick(teams)
    const app = random.pick(apps)
    const template = text(9, letters)
    const name = `${app}-${template}-${text(5, letters)}`
    const uid = `${hex(8)}-${hex(4)}-4${hex(3)}-a${hex(3)}-${hex(12)}`
    const image = `${namespace}/${app}`
    const containerId = hex(64)
    const ip = `10.42.${Math.floor(index / 250)}.${(index % 250) + 2}`
    const started = { running: { startedAt: '2026-01-01T00:00:00Z' } }
    return {
      namespace,
      name,
      uid,
      container: app,
      folder: `${namespace}_${name}_${uid}/${app}`,
      link: `${name}_${namespace}_${app}-${containerId}.log`,
      object: {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: {
          name,
          namespace,
          uid,
          resourceVersion: '1',
          labels: { app, 'pod-template-hash': template },
          annotations: { owner: namespace },
          ownerReferences: [
            { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: `${app}-${template}`, uid: hex(12), controller: true },
          ],
        },
        spec: { nodeName: benchNode.metadata.name, containers: [{ name: app, image: `${image}:1.${index % 40}` }] },
        status: {
          phase: 'Running',
          podIP: ip,
          podIPs: [{ ip }],
          containerStatuses: [
            {
              name: app,
              image: `${image}:1.${index % 40}`,
              imageID: `${image}@sha256:${hex(64)}`,
              containerID: `containerd://${containerId}`,
              state: started,
              ready: true,
              restartCount: 0,
            },
          ],
        },
      },
    }
  })
}

export const namespaceOf = (name: string) => ({
  metadata: { name, uid: `namespace-${name}`, labels: { 'kubernetes.io/metadata.name': name } },
})
export const benchNamespaces = teams.map(namespaceOf)

/** The only pod of a namespace. */
export function podOf(namespace: string): Pick<BenchPod, 'folder' | 'object'> {
  const metadata = { name: 'web', namespace, uid: `uid-${namespace}` }
  const spec = { nodeName: benchNode.metadata.name, containers: [{ name: 'app', image: 'shop/web:1' }] }
  return { folder: `${namespace}_web_uid-${namespace}/app`, object: { metadata, spec } as BenchPod['object'] }
}
