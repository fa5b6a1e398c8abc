// Checks whether an agent can store its positions and buffers.

import { accessSync, constants } from 'node:fs'
import { dirname } from 'node:path'

/** Why the agent cannot write below a folder; undefined if it can. The folder itself may not exist yet. */
export function unwritable(folder: string): string | undefined {
  for (let place = folder; ; place = dirname(place)) {
    try {
      accessSync(place, constants.W_OK | constants.X_OK)
      return undefined
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code === 'ENOENT' && place !== dirname(place)) continue
      return `Cannot write to the data folder ${folder} (${code}): set its owner, or \`node.dataDir.hostPath\` of the Agent.`
    }
  }
}
