// The Deployment of the operator.

import { Construct } from 'constructs'
import { metricsName, operatorName, operatorPorts } from './installation-names.ts'
import { ObjectConstruct } from './manifest.ts'

export interface DeploymentParts {
  readonly namespace: string
  /** Version of the images. */
  readonly version: string
  readonly labels: Readonly<Record<string, string>>
  readonly selector: Readonly<Record<string, string>>
}

export class OperatorDeployment extends Construct {
  constructor(scope: Construct, { namespace, version, labels, selector }: DeploymentParts) {
    super(scope, 'deployment')
    new ObjectConstruct(this, {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: operatorName, namespace, labels },
      spec: {
        replicas: 2,
        selector: { matchLabels: selector },
        template: { metadata: { labels }, spec: podSpec(namespace, version, selector) },
      },
    })
  }
}

function podSpec(namespace: string, version: string, selector: Readonly<Record<string, string>>) {
  const probe = (path: string, periodSeconds: number, failureThreshold: number) => ({
    httpGet: { path, port: 'http' },
    periodSeconds,
    timeoutSeconds: 5,
    failureThreshold,
  })
  return {
    serviceAccountName: operatorName,
    terminationGracePeriodSeconds: 30,
    securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
    nodeSelector: { 'kubernetes.io/os': 'linux' },
    topologySpreadConstraints: [
      {
        maxSkew: 1,
        topologyKey: 'kubernetes.io/hostname',
        whenUnsatisfiable: 'ScheduleAnyway',
        labelSelector: { matchLabels: selector },
      },
    ],
    containers: [
      {
        name: 'operator',
        image: `penstock/operator:${version}`,
        imagePullPolicy: 'IfNotPresent',
        args: [
          'operator',
          `--agent-image=penstock/agent:${version}`,
          `--agent-namespaces=${namespace}`,
          `--http-address=0.0.0.0:${operatorPorts.http}`,
          `--heartbeat-address=0.0.0.0:${operatorPorts.agents}`,
          `--heartbeat-url=https://${operatorName}.${namespace}.svc:${operatorPorts.agents}`,
          '--network-policies',
          `--metrics-token-secret=${metricsName}`,
          `--webhook-address=0.0.0.0:${operatorPorts.webhook}`,
        ],
        env: [
          { name: 'POD_NAME', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
          { name: 'POD_NAMESPACE', valueFrom: { fieldRef: { fieldPath: 'metadata.namespace' } } },
          { name: 'POD_IP', valueFrom: { fieldRef: { fieldPath: 'status.podIP' } } },
        ],
        ports: [
          { name: 'http', containerPort: operatorPorts.http },
          { name: 'agents', containerPort: operatorPorts.agents },
          { name: 'webhook', containerPort: operatorPorts.webhook },
        ],
        livenessProbe: probe('/healthz', 10, 6),
        readinessProbe: probe('/readyz', 5, 2),
        startupProbe: probe('/healthz', 2, 60),
        resources: { requests: { cpu: '100m', memory: '256Mi' }, limits: { memory: '512Mi' } },
        securityContext: {
          allowPrivilegeEscalation: false,
          capabilities: { drop: ['ALL'] },
          readOnlyRootFilesystem: true,
        },
      },
    ],
  }
}
