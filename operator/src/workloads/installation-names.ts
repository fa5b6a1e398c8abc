// Names and ports of the operator's own installation. They are fixed: a cluster has one operator, and its roles are referred to by
// name.

export const operatorName = 'penstock-operator'
export const webhookName = 'penstock-webhook'
export const configurationName = 'penstock'
export const defaultsName = 'penstock-defaults'
export const cliRole = 'penstock-cli'
export const authoritySecretName = 'penstock-operator-ca'
/** A ServiceAccount that may read metrics, its binding and the Secret with its token. */
export const metricsName = 'penstock-metrics'
export const certificateSecretName = 'penstock-operator-tls'
/** The secret in the paths of the webhooks. */
export const webhookTokenSecretName = 'penstock-webhook-token'
/** Path of each webhook. The operator appends a secret and writes the path into the webhook configurations. */
export const webhookPaths: Readonly<Record<string, string>> = {
  'resources.penstock.dev': '/validate',
  'workloads.penstock.dev': '/warn',
  'sidecar.penstock.dev': '/inject',
  'strict.sidecar.penstock.dev': '/inject',
}
export const operatorPorts = { http: 8080, agents: 9443, webhook: 9444 } as const
