// The webhook configurations of the operator.

import { Construct } from 'constructs'
import { kinds } from '../api/kinds.ts'
import { version as apiVersionName, group } from '../api/object.ts'
import { configurationName, webhookName } from './installation-names.ts'
import { ObjectConstruct } from './manifest.ts'

const plurals = kinds.map((kind) => kind.plural)

/** The expression by which the webhook only receives pods that ask for a sidecar. */
const asksForSidecar = (from: string) => `has(${from}.annotations) && 'penstock.dev/sidecar' in ${from}.annotations`

/**
 * Without `caBundle` and `path`: the operator applies them, and a renderer of the chart sees no difference. Until then the API server
 * cannot reach a webhook, and `failurePolicy` decides.
 */
export class Webhooks extends Construct {
  constructor(scope: Construct, namespace: string, labels: Readonly<Record<string, string>>) {
    super(scope, 'webhooks')
    const common = {
      admissionReviewVersions: ['v1'],
      sideEffects: 'None',
      timeoutSeconds: 5,
      clientConfig: { service: { name: webhookName, namespace, port: 443 } },
    }
    const here = { key: 'kubernetes.io/metadata.name', operator: 'NotIn', values: [namespace, 'kube-system'] }
    new ObjectConstruct(this, {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'ValidatingWebhookConfiguration',
      metadata: { name: configurationName, labels },
      webhooks: [
        {
          name: 'resources.penstock.dev',
          ...common,
          // The webhook may record the author of a ClusterPipeline.
          sideEffects: 'NoneOnDryRun',
          failurePolicy: 'Ignore',
          // An object written in another served version is converted to this one for the webhook.
          matchPolicy: 'Equivalent',
          rules: [
            {
              apiGroups: [group],
              apiVersions: [apiVersionName],
              operations: ['CREATE', 'UPDATE'],
              resources: plurals,
              scope: '*',
            },
          ],
        },
        {
          name: 'workloads.penstock.dev',
          ...common,
          failurePolicy: 'Ignore',
          namespaceSelector: { matchExpressions: [here] },
          matchConditions: [{ name: 'annotation-beside-the-template', expression: asksForSidecar('object.metadata') }],
          rules: [
            {
              apiGroups: ['apps'],
              apiVersions: ['v1'],
              operations: ['CREATE', 'UPDATE'],
              resources: ['deployments', 'statefulsets', 'daemonsets'],
              scope: 'Namespaced',
            },
            {
              apiGroups: ['batch'],
              apiVersions: ['v1'],
              operations: ['CREATE', 'UPDATE'],
              resources: ['jobs', 'cronjobs'],
              scope: 'Namespaced',
            },
          ],
        },
      ],
    })
    const inject = (name: string, value: string, failurePolicy: string) => ({
      name,
      ...common,
      failurePolicy,
      reinvocationPolicy: 'IfNeeded',
      namespaceSelector: { matchLabels: { 'penstock.dev/inject': value }, matchExpressions: [here] },
      matchConditions: [{ name: 'asks-for-a-sidecar', expression: asksForSidecar('object.metadata') }],
      rules: [
        { apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'], scope: 'Namespaced' },
      ],
    })
    new ObjectConstruct(this, {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'MutatingWebhookConfiguration',
      metadata: { name: configurationName, labels },
      webhooks: [
        inject('sidecar.penstock.dev', 'enabled', 'Ignore'),
        inject('strict.sidecar.penstock.dev', 'strict', 'Fail'),
      ],
    })
  }
}
