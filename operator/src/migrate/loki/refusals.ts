// Stages without a counterpart.

import { type Exception, none, type Refusal } from '../page.ts'

const windows = 'there is no source for Windows events'
const host = 'Keep the old agent on these machines.'

/** The option of a source of files. */
export const decompression: Exception = {
  how: 'files are read as they are',
  unless: /^true$/i,
  reason: 'the source does not decompress files',
  nearest: 'Keep the old agent for compressed files.',
  isAbsent: true,
}

export const refusedStages: readonly Refusal[] = [
  none(
    'limit',
    'no transform limits the rate of events',
    'Set `limits.perContainer.linesPerSecond` of the Pipeline; `onLimit: Drop` drops lines above the limit, `Lag` reads them later.',
  ),
  none('metrics', 'no transform derives metrics from lines', 'Count with rules of Loki, or at the destination.'),
  none('geoip', 'Penstock has no tables of IP addresses', 'Look up addresses at the destination.'),
  none('eventlogmessage', windows, host),
  none('windowsevent', windows, host),
]
