// `penstock webhook`: serves the admission webhooks in a separate process, with the flags of `penstock operator`.

import { run as runOperator } from './operator.ts'

export { options, webhookUsage as usage } from './operator-flags.ts'

export const run = (argv: string[]): Promise<number> => runOperator(argv, { webhooksOnly: true })
