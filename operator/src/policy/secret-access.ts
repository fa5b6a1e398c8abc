// Which Secrets of users the operator may use.

import type { KubeObject } from '../api/object.ts'
import type { OperatorSettings } from '../context.ts'

/** Whether a Secret may be used: in mode Label, if its owner has said so. */
export function isAllowed(
  { secretsMode }: Pick<OperatorSettings, 'secretsMode'>,
  secret: KubeObject | undefined,
): boolean {
  return secretsMode !== 'Label' || secret?.metadata.labels?.['penstock.dev/allow'] === 'true'
}
