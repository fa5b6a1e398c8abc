// Stages without a counterpart.

import type { Refusal } from '../page.ts'

const none = (name: string, reason: string, nearest: string): Refusal => ({ name, reason, nearest })
const windows = 'events of Windows have no source'
const host = 'Keep the old agent on these machines.'

export const refusedStages: readonly Refusal[] = [
  none(
    'limit',
    'no transform limits the rate of events',
    'Give the Pipeline `limits.perContainer.linesPerSecond`; `onLimit: Drop` drops what is above, `Lag` reads it later.',
  ),
  none('metrics', 'no transform counts lines as metrics', 'Count by rules of Loki, or at the destination.'),
  none('geoip', 'a Pipeline has no tables of addresses', 'Let the destination look addresses up.'),
  none('eventlogmessage', windows, host),
  none('windowsevent', windows, host),
  none(
    'luhn',
    'no function tests the digits of card numbers',
    'Mask them by their form: `redact` with `us_social_security_number` or a pattern.',
  ),
  {
    name: 'truncate',
    reason: 'lines are cut by the source',
    nearest: 'Cut in a remap transform: `truncate(string!(.message), limit: CHARACTERS)`.',
    isHere: true,
  },
]
