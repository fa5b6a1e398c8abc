// Kubernetes' own types that the operator reads or writes.

import type { ResourceType } from '../api/object.ts'

const define = (group: string, version: string, kind: string, plural: string, namespaced = true): ResourceType => ({
  group,
  version,
  kind,
  plural,
  namespaced,
})

export const secretType = define('', 'v1', 'Secret', 'secrets')
export const configMapType = define('', 'v1', 'ConfigMap', 'configmaps')
export const namespaceType = define('', 'v1', 'Namespace', 'namespaces', false)
export const nodeType = define('', 'v1', 'Node', 'nodes', false)
export const podType = define('', 'v1', 'Pod', 'pods')
export const endpointSliceType = define('discovery.k8s.io', 'v1', 'EndpointSlice', 'endpointslices')
export const serviceType = define('', 'v1', 'Service', 'services')
export const serviceAccountType = define('', 'v1', 'ServiceAccount', 'serviceaccounts')
export const persistentVolumeClaimType = define('', 'v1', 'PersistentVolumeClaim', 'persistentvolumeclaims')
/** Like `eventType`, in the group that the Kubernetes role `view` covers. */
export const coreEventType = define('', 'v1', 'Event', 'events')
export const eventType = define('events.k8s.io', 'v1', 'Event', 'events')
export const customResourceDefinitionType = define(
  'apiextensions.k8s.io',
  'v1',
  'CustomResourceDefinition',
  'customresourcedefinitions',
  false,
)
export const leaseType = define('coordination.k8s.io', 'v1', 'Lease', 'leases')
export const daemonSetType = define('apps', 'v1', 'DaemonSet', 'daemonsets')
export const deploymentType = define('apps', 'v1', 'Deployment', 'deployments')
export const statefulSetType = define('apps', 'v1', 'StatefulSet', 'statefulsets')
export const jobType = define('batch', 'v1', 'Job', 'jobs')
export const podDisruptionBudgetType = define('policy', 'v1', 'PodDisruptionBudget', 'poddisruptionbudgets')
export const horizontalPodAutoscalerType = define(
  'autoscaling',
  'v2',
  'HorizontalPodAutoscaler',
  'horizontalpodautoscalers',
)
export const networkPolicyType = define('networking.k8s.io', 'v1', 'NetworkPolicy', 'networkpolicies')
export const clusterRoleType = define('rbac.authorization.k8s.io', 'v1', 'ClusterRole', 'clusterroles', false)
export const clusterRoleBindingType = define(
  'rbac.authorization.k8s.io',
  'v1',
  'ClusterRoleBinding',
  'clusterrolebindings',
  false,
)
export const roleBindingType = define('rbac.authorization.k8s.io', 'v1', 'RoleBinding', 'rolebindings')
export const podMonitorType = define('monitoring.coreos.com', 'v1', 'PodMonitor', 'podmonitors')
export const validatingWebhookConfigurationType = define(
  'admissionregistration.k8s.io',
  'v1',
  'ValidatingWebhookConfiguration',
  'validatingwebhookconfigurations',
  false,
)
export const mutatingWebhookConfigurationType = define(
  'admissionregistration.k8s.io',
  'v1',
  'MutatingWebhookConfiguration',
  'mutatingwebhookconfigurations',
  false,
)
export const tokenReviewType = define('authentication.k8s.io', 'v1', 'TokenReview', 'tokenreviews', false)
export const subjectAccessReviewType = define(
  'authorization.k8s.io',
  'v1',
  'SubjectAccessReview',
  'subjectaccessreviews',
  false,
)
export const localSubjectAccessReviewType = define(
  'authorization.k8s.io',
  'v1',
  'LocalSubjectAccessReview',
  'localsubjectaccessreviews',
)
export const selfSubjectReviewType = define(
  'authentication.k8s.io',
  'v1',
  'SelfSubjectReview',
  'selfsubjectreviews',
  false,
)
export const selfSubjectRulesReviewType = define(
  'authorization.k8s.io',
  'v1',
  'SelfSubjectRulesReview',
  'selfsubjectrulesreviews',
  false,
)
export const selfSubjectAccessReviewType = define(
  'authorization.k8s.io',
  'v1',
  'SelfSubjectAccessReview',
  'selfsubjectaccessreviews',
  false,
)
