// Decides which Secrets of users the operator may use.

import type { KubeObject } from '../api/object.ts'
import type { OperatorSettings } from '../context.ts'

/** Whether the operator may use a Secret. In mode Label, its owner must have set the label. */
export function isAllowed(
  { secretsMode }: Pick<OperatorSettings, 'secretsMode'>,
  secret: KubeObject | undefined,
): boolean {
  return secretsMode !== 'Label' || secret?.metadata.labels?.['penstock.dev/allow'] === 'true'
}
