// The agent of every node. It reads the pods' log files through its group, without capabilities; it only has access to that
// folder of the node and to a folder of its own, which an init container hands over.

import { Construct } from 'constructs'
import { type Agent, agentDefaults } from '../api/agent.ts'
import { ObjectConstruct } from './manifest.ts'
import { dataFolder, labels, objectLabels, ownedBy, paths, podLabels, workloadName } from './names.ts'
import {
  agentContainer,
  agentUser,
  bundleVolumes,
  imageOf,
  podSecurity,
  pullSecrets,
  restricted,
  serviceAccountVolume,
  templateMetadata,
  type WorkloadInput,
} from './pod.ts'
import { patched } from './pod-template.ts'

export class NodeAgent extends Construct {
  constructor(scope: Construct, agent: Agent, input: WorkloadInput) {
    super(scope, 'node-agent')
    const { namespace } = agent.metadata
    new ObjectConstruct(this, {
      apiVersion: 'apps/v1',
      kind: 'DaemonSet',
      metadata: {
        name: workloadName(agent),
        ...(namespace === undefined ? {} : { namespace }),
        labels: { ...objectLabels(agent), [labels.component]: 'node' },
        ownerReferences: ownedBy(agent),
      },
      spec: {
        selector: { matchLabels: podLabels(agent) },
        updateStrategy: {
          type: 'RollingUpdate',
          rollingUpdate: {
            maxUnavailable: agent.spec.node?.updateStrategy?.maxUnavailable ?? agentDefaults.node.maxUnavailable,
          },
        },
        template: patched(podTemplate(agent, input), agent),
      },
    })
  }
}

function podTemplate(agent: Agent, input: WorkloadInput) {
  const node = agent.spec.node ?? {}
  const user = node.runAsRoot === true ? 0 : agentUser
  const logs = node.logPaths?.pods ?? paths.logs
  const folders = [
    { name: 'logs', path: logs },
    ...(node.logPaths?.extraReadOnly ?? []).map((path, index) => ({ name: `logs-${index}`, path })),
  ]
  const { maxOpenRotatedFilesPerContainer: maxRotated, metadata: podMetadata } = node
  const flags = [
    ...['--logs-dir', logs],
    ...(maxRotated === undefined ? [] : ['--max-rotated-files', String(maxRotated)]),
    ...(input.namespaces === undefined ? [] : ['--namespaces', input.namespaces.join()]),
    ...(podMetadata?.source === 'Kubelet' ? ['--kubelet-address', '$(NODE_IP)'] : []),
  ]
  const container = agentContainer(agent, input, flags, {
    requests: { cpu: '100m', memory: '128Mi' },
    limits: { memory: '512Mi' },
  })
  const priority = node.priorityClassName ?? agentDefaults.node.priorityClassName
  const { labels: templateLabels, annotations } = templateMetadata(agent)
  return {
    // Otherwise the agent would read its own log lines about a failed delivery, and fail to deliver them as well.
    metadata: { labels: { ...templateLabels, [labels.exclude]: 'true' }, annotations },
    spec: {
      serviceAccountName: workloadName(agent),
      automountServiceAccountToken: false,
      ...(priority === '' ? {} : { priorityClassName: priority }),
      terminationGracePeriodSeconds: 60,
      nodeSelector: { ...node.nodeSelector, 'kubernetes.io/os': 'linux' },
      tolerations: node.tolerations ?? [{ operator: 'Exists' }],
      securityContext: podSecurity(user),
      ...pullSecrets(agent, input),
      initContainers: [dataFolderContainer(agent, input, user)],
      containers: [
        {
          ...container,
          ...(podMetadata?.source === 'Kubelet' ? { env: [...container.env, nodeAddress] } : {}),
          volumeMounts: [
            ...container.volumeMounts,
            { name: 'data', mountPath: paths.data },
            ...folders.map(({ name, path }) => ({ name, mountPath: path, readOnly: true })),
          ],
        },
      ],
      volumes: [
        ...bundleVolumes(agent),
        serviceAccountVolume,
        { name: 'data', hostPath: { path: dataFolder(agent), type: 'DirectoryOrCreate' } },
        ...folders.map(({ name, path }) => ({ name, hostPath: { path, type: '' } })),
      ],
    },
  }
}

// The kubelet listens on the node's own address.
const nodeAddress = { name: 'NODE_IP', valueFrom: { fieldRef: { fieldPath: 'status.hostIP' } } }

// Changes the owner of the folder, and of files left in it by a former user id. The image has no shell. Root without capabilities
// can only open folders that it owns, so it owns each folder while processing it. It processes all folders, because an earlier run
// may have been interrupted.
const handOver = `
const { chmodSync, lchownSync, lstatSync, readdirSync } = require('node:fs')
const [folder, user] = [process.argv[1], Number(process.argv[2])]
const give = (path) => {
  const found = lstatSync(path)
  if (found.isDirectory()) {
    lchownSync(path, 0, 0)
    for (const name of readdirSync(path)) give(path + '/' + name)
    lchownSync(path, user, 0)
  } else if (found.uid !== user || found.gid !== 0) lchownSync(path, user, 0)
}
give(folder)
chmodSync(folder, 0o750)
`

/** The only container that runs as root, and with only the capability to change owners. */
function dataFolderContainer(agent: Agent, input: WorkloadInput, user: number) {
  return {
    name: 'data-dir',
    image: imageOf(agent, input),
    ...(agent.spec.image?.pullPolicy === undefined ? {} : { imagePullPolicy: agent.spec.image.pullPolicy }),
    command: ['/usr/local/bin/node', '-e', handOver.trim(), paths.data, String(user)],
    resources: { requests: { cpu: '10m', memory: '32Mi' }, limits: { memory: '128Mi' } },
    securityContext: {
      ...restricted,
      runAsNonRoot: false,
      runAsUser: 0,
      capabilities: { drop: ['ALL'], add: ['CHOWN', 'FOWNER'] },
    },
    volumeMounts: [{ name: 'data', mountPath: paths.data }],
  }
}
