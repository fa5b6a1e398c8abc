// Whether an agent can keep its positions and buffers.

import { accessSync, constants } from 'node:fs'
import { dirname } from 'node:path'

/** Why nothing can be written below a folder; undefined if it can. The folder itself may not be there yet. */
export function unwritable(folder: string): string | undefined {
  for (let place = folder; ; place = dirname(place)) {
    try {
      accessSync(place, constants.W_OK | constants.X_OK)
      return undefined
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code === 'ENOENT' && place !== dirname(place)) continue
      return `The data folder ${folder} cannot be written (${code}): set its owner, or \`node.dataDir.hostPath\` of the Agent.`
    }
  }
}
